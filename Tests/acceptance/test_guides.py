"""The guides: commands that run, names that exist, figures that were measured."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from harness.sfud import REPOSITORY

DOCS = REPOSITORY / "docs"
SFUCTL = REPOSITORY / ".build/release/sfuctl"

#: Words of browsers, of Linux and of JavaScript in the guides; all others are sfud's.
FOREIGN = set(
    """
    a=candidate chrome://webrtc-internals framesDecoded freezeCount getStats() muted restartIce()
    setRemoteDescription RTCPeerConnection <video> net.core.rmem_max net.core.wmem_max steal
    /proc/stat top 69
    """.split()
)


def code(text: str) -> list[str]:
    """Returns what stands in backticks, outside of blocks."""
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`\n]+)`", prose)


def named(value) -> set[str]:
    """Returns the names and the permitted values in a description of the API."""
    found: set[str] = set()
    if isinstance(value, dict):
        found |= set(value.get("properties", {})) | {str(one) for one in value.get("enum", [])}
        found |= {value[key] for key in ("name", "reason") if isinstance(value.get(key), str)}
        for key in ("required", "data"):
            found |= set(value[key]) if isinstance(value.get(key), list) else set()
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            found |= named(one)
    return found


def known() -> set[str]:
    """Returns all words of sfud's that a guide may use."""
    words = named(json.loads((DOCS / "openrpc.json").read_text()))
    for page in ("ipc.md", "limits.md", "metrics.md", "operating.md", "gateway.md"):
        for text in code((DOCS / page).read_text()):
            words |= {text, text.split("{")[0], text.split(" ")[0]}
    drops = (REPOSITORY / "Sources/WorkerInterface/Statistics.swift").read_text()
    reasons = drops.split("enum DropReason")[1].split("\n}")[0]
    cases = re.findall(r'case (\w+)(?: = "([\w-]+)")?', reasons)
    return words | {quoted or name for name, quoted in cases}


@pytest.mark.parametrize("page", ["troubleshooting", "capacity", "start"])
def test_a_guide_names_what_there_is(page):
    words, wrong = known() | FOREIGN, []
    reports = "".join(path.read_text() for path in (REPOSITORY / "Sources/sfuctl").glob("*.swift"))
    commands = subprocess.run([SFUCTL, "--help"], capture_output=True, text=True).stdout
    tools = ("make ", "sfu-bench", "sudo make install", "git")
    for text in code((DOCS / f"{page}.md").read_text()):
        if text.startswith("sfuctl "):
            assert re.search(rf"^  {text.split()[1]}\b", commands, re.MULTILINE), text
        elif text.startswith("rate(") or text.startswith("increase("):
            assert re.search(r"\((\w+)\[", text)[1] in words, text
        elif " / " in text:
            assert set(text.split(" / ")) <= words, text
        elif text.isupper() or " " in text or text in ("off", "yes"):
            # What sfuctl prints, or a flag with its value.
            if not (text.split()[0] in words or text in reports or text.startswith(tools)):
                wrong.append(text)
        elif text not in words and not text.startswith(tools):
            wrong.append(text)
    # Placeholders, and examples of values.
    allowed = {"ROOM", "vp8 (off)"}
    assert not [one for one in wrong if one not in allowed]


def test_troubleshooting_has_every_limit_hop_and_state():
    page = (DOCS / "troubleshooting.md").read_text()
    schemas = json.loads((DOCS / "openrpc.json").read_text())["components"]["schemas"]
    report = (REPOSITORY / "Sources/sfuctl/ExplainReport.swift").read_text()
    for name in ("LayerLimitReason", "FreezeHopName", "ConnectionState"):
        for value in schemas[name]["enum"]:
            assert f"| `{value}` |" in page, f"{name}: {value}"
    # What sfuctl prints for a limit stands beside it.
    for limit, words in re.findall(r"^\| `(\w+)` \| ([a-z][^|`]*) \| \S", page, re.MULTILINE):
        assert f'case .{limit}: "{words}"' in report, (limit, words)


def rows(text: str, header: str) -> list[dict[str, str]]:
    """Returns the rows of the table whose header begins so, by column."""
    table = text[text.index(header) :].split("\n\n")[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    return [dict(zip(cells[0], row)) for row in cells[2:]]


def test_capacity_has_the_figures_of_the_report():
    page = (DOCS / "capacity.md").read_text()
    report = (REPOSITORY / "benchmarks/report.md").read_text()
    measured = rows(report, "| scenario | system | size |")
    told = rows(page, "| | scenario | size | packets/s |")
    assert len(told) > 5
    for row in told:
        wanted = {name: value for name, value in row.items() if name}
        assert any(
            one["system"] == "sfud" and one["SRTP"] == "gcm" and wanted.items() <= one.items()
            and float(one["video lost %"]) == float(one["audio lost %"]) == 0
            for one in measured
        ), f"the report has no {row}: it is newer than docs/capacity.md"  # fmt: skip
    for figure in (
        "1070", "967", "5339; 1.18 ms", "1.66 (", "1.40 (", "2.66 to 3.12", "6.300)",
    ):  # fmt: skip
        assert re.search(rf"(?<![\d.]){re.escape(figure)}", report), f"the report has no {figure}"


def test_the_first_commands_run_as_they_stand(sfud, tmp_path):
    text = (DOCS / "start.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    mine = [block for block in blocks if "sfuctl call" in block or "sfuctl drop" in block]
    script = "\n".join(["set -eu", "shopt -s expand_aliases", *mine])
    script = script.replace("/tmp/sfud.sock", str(sfud.ipc))
    assert script.count(str(sfud.ipc)) == 1
    script = script.replace(".build/release/sfuctl", str(SFUCTL))
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "SFUD_IPC"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    examples = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    [shown] = [block for block in examples if "NAME" in block]
    assert shown in done.stdout
    rooms = subprocess.run([SFUCTL, "--ipc", sfud.ipc, "rooms"], capture_output=True, text=True)
    assert "standup" not in rooms.stdout


def test_the_ready_line_is_like_the_one_shown(sfud):
    shown = re.search(r"^ready .*$", (DOCS / "start.md").read_text(), re.MULTILINE)[0]
    shape = re.sub(r"[\d.]+:\d+", "A", shown).replace("/tmp/sfud.sock", "S")
    assert re.sub(r"[\d.]+:\d+", "A", sfud.ready_line).replace(str(sfud.ipc), "S") == shape


def test_encryption_is_told_as_the_package_has_it():
    page = (DOCS / "e2ee.md").read_text()
    types = (REPOSITORY / "clients/js/src/index.d.ts").read_text()
    for name in ("useKey", "encryptionCounts", "sealed", "opened", "refused", "withoutKey"):
        assert name in page and re.search(rf"\b{name}\b", types), name
    cipher = (REPOSITORY / "clients/js/src/cipher.js").read_text()
    lengths = re.search(r"\[TRAILER, NONCE\] = \[(\d+), (\d+)\]", cipher)
    trailer, nonce = int(lengths[1]), int(lengths[2])
    assert f"{trailer + 16} bytes more a frame" in page and f"nonce of {nonce} bytes" in page
    clear = re.search(r'undefined \? (\d+) : type === "key" \? (\d+) : (\d+)', cipher).groups()
    assert f"the first {clear[1]} bytes of a VP8 keyframe, {clear[2]} of other" in page
    assert f"frames, {clear[0]} of Opus" in page


@pytest.mark.parametrize("section", ["mediasoup", "Janus", "LiveKit"])
def test_migrating_names_methods_and_events_that_there_are(section):
    text = (DOCS / "migrating.md").read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    spec = json.loads((DOCS / "openrpc.json").read_text())
    there = {one["name"] for one in spec["methods"] + spec["x-events"]} | known()
    words = [
        word
        for row in re.findall(r"^\|.*\|$", text, re.MULTILINE)
        for word in code(re.split(r"(?<!\\)\|", row)[2])
    ]
    ours = set(re.findall(r"\w+", (REPOSITORY / "clients/js/README.md").read_text()))
    foreign = {"restartIce()", "PipeTransport", "DataProducer", "false", "sfuctl compose", "sfuctl"}
    assert len(words) > 10
    for word in words:
        assert word in there or word.partition("(")[0] in ours or word in foreign, word
