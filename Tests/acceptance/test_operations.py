"""What operators have: metrics, alerts, the dashboard, and sfuctl's top and doctor."""

import asyncio
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import urllib.request
from fcntl import ioctl

import pytest

from harness import expect, prometheus
from harness.looks import ALICE
from harness.process import until
from harness.prometheus import Prometheus, promtool
from harness.room import Room
from harness.sfud import REPOSITORY, binary, free_ports
from test_sfuctl import sfuctl

ALERTS = REPOSITORY / "docs/alerts.md"
METRICS = REPOSITORY / "docs/metrics.md"
#: Its section about nodes.
NODES = re.compile(r"^## Nodes$.*?(?=^## )", re.MULTILINE | re.DOTALL)


def page(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        return reply.read().decode()


async def test_the_metrics_are_as_prometheus_wants_them(start_sfud):
    port = free_ports()
    await start_sfud("--http", f"127.0.0.1:{port}")
    text = await asyncio.to_thread(page, port)
    assert promtool("check", "metrics", text=text) == (0, "")

    # A metric that breaks the conventions is told, so the check looks at all.
    status, words = promtool("check", "metrics", text=f"{text}# TYPE x counter\nx 1\n")
    assert status != 0 and 'counter metrics should have "_total" suffix' in words

    # All that is listed in the document is there, and nothing else; test_nodes.py has the nodes'.
    exposed = set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))
    document = NODES.sub("", METRICS.read_text())
    listed = re.findall(r"^\| `(\w+)` \| (?:counter|gauge|histogram) \|", document, re.MULTILINE)
    assert exposed == set(listed) and len(listed) == len(exposed)


async def test_rules_and_dashboard_name_what_a_daemon_exposes(start_sfud):
    port = free_ports()
    await start_sfud("--http", f"127.0.0.1:{port}", "--tcp", f"127.0.0.1:{free_ports(2)}")
    exposed = prometheus.samples(await asyncio.to_thread(page, port))
    rules = prometheus.rules()
    # A daemon alone has none of the nodes' metrics; test_nodes.py compares their list with a node.
    nodes = re.findall(r"^\| `(\w+)` \|", NODES.search(METRICS.read_text())[0], re.MULTILINE)
    known = exposed.keys() | rules.keys() | prometheus.OWN | set(nodes)
    expressions = [*rules.values(), *prometheus.queries()]
    assert len(expressions) > 70
    used = set()
    for expression in expressions:
        named = prometheus.selectors(expression)
        assert named, expression
        for name, matchers in named:
            used.add(name)
            assert name in known, f"there is no {name}: {expression}"
            for label, operator, value in matchers:
                if label in ("job", "instance") or name not in exposed:
                    continue
                values = {labels.get(label) for labels in exposed[name]}
                assert None not in values, f"{name} has no label {label}"
                choices = value.split("|") if operator in ("=~", "!~") else [re.escape(value)]
                for choice in choices:
                    found = any(re.fullmatch(choice, one) for one in values)
                    assert found, f"{name} has no {label}={choice}: {sorted(values)}"
    # What is recorded is used, or nobody would notice that it is wrong.
    recorded = {name for name in rules if ":" in name}
    assert recorded <= used, recorded - used


def test_the_rules_are_valid_and_each_alert_is_tested_and_explained():
    status, words = promtool("check", "rules", prometheus.RULES)
    assert status == 0, words
    status, words = promtool("test", "rules", prometheus.TESTS)
    assert status == 0, words

    text = prometheus.RULES.read_text()
    alerts = re.findall(r"- alert: (\w+)", text)
    assert len(alerts) == len(set(alerts)) > 20
    tested = set(re.findall(r"- name: (\w+)", prometheus.TESTS.read_text()))
    assert tested == set(alerts)
    explained = re.findall(r"^### (\w+)$", ALERTS.read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(alerts)
    runbooks = re.findall(r"runbook: (\S+)", text)
    assert runbooks == [f"docs/alerts.md#{alert.lower()}" for alert in alerts]
    assert text.count("summary: ") == text.count("severity: ") == len(alerts)


def test_what_the_sections_name_exists():
    text = ALERTS.read_text()
    metrics = set(re.findall(r"^\| `(\w+)` \|", METRICS.read_text(), re.M))
    named = set(re.findall(r"\b((?:sfud|process)_\w+)", text))
    assert len(named) > 10 and named <= metrics, named - metrics
    limits = (REPOSITORY / "docs/limits.md").read_text()
    for limit in re.findall(r"`limits\.(\w+)`", text):
        assert f"| `{limit}` |" in limits, limit
    help_text = subprocess.run(
        [binary().with_name("sfuctl"), "--help"], capture_output=True, text=True
    ).stdout
    commands = set(re.findall(r"`(?:sudo )?sfuctl(?: --ipc \S+)? (\w+)", text))
    assert {"top", "doctor", "explain"} <= commands
    for command in commands:
        assert re.search(rf"^  {command}\b", help_text, re.MULTILINE), command
    for sort in re.findall(r"`sfuctl top --sort (\w+)", text):
        done = subprocess.run(
            [binary().with_name("sfuctl"), "top", "--sort", sort, "--help"], capture_output=True
        )
        assert done.returncode == 0, sort


def test_the_dashboard_is_whole(tmp_path):
    """Grafana is in no package of Debian, so this checks the structure and the queries."""
    board = json.loads(prometheus.DASHBOARD.read_text())
    assert board["title"] == "sfud" and board["uid"] == "sfud" and board["schemaVersion"] >= 36
    variables = {one["name"]: one["type"] for one in board["templating"]["list"]}
    assert variables == {"datasource": "datasource", "instance": "query"}
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == [
        "Overview", "Quality", "Joins", "Overload", "Recordings and live streams", "Cluster",
    ]  # fmt: skip
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24 and panel["title"], panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on another panel"
                taken.add((x, y))
        if panel["type"] == "row":
            continue
        assert panel["type"] in ("stat", "timeseries")
        assert panel["datasource"]["uid"] == "${datasource}"
        references = [target["refId"] for target in panel["targets"]]
        assert references and len(references) == len(set(references))
        for target in panel["targets"]:
            assert 'instance=~"$instance"' in target["expr"] and target["legendFormat"]

    # Each query parses, as Prometheus checks the expressions of rules.
    checked = tmp_path / "queries.yml"
    rules = [
        f"  - {{record: 'query:{number}', expr: {json.dumps(query)}}}"
        for number, query in enumerate(prometheus.queries())
    ]
    checked.write_text("\n".join(["groups:", "- name: dashboard", "  rules:", *rules, ""]))
    status, words = promtool("check", "rules", checked)
    assert status == 0, words


@pytest.mark.slow
@pytest.mark.seconds(150)
async def test_prometheus_scrapes_a_call_with_the_rules(start_sfud, peers, tmp_path):
    port = free_ports()
    daemon = await start_sfud("--http", f"127.0.0.1:{port}")
    server = await Prometheus.start(tmp_path, f"127.0.0.1:{port}")
    try:
        async with daemon.client() as ipc:
            # Counters begin to count for Prometheus when it has seen them once.
            async def is_scraped():
                return await server.query("sfud_connect_seconds_count == 0")

            await until(is_scraped, "a first scrape", 10, every=0.2)
            room = await Room(ipc).open()
            alice = await room.join("alice", await peers("Chromium"), **ALICE)
            bob = await room.join("bob", await peers("Chromium"), slots=1)
            seen = await bob.subscribe(alice.stream)
            await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

            wanted = [
                f'sfud:{name}:p95_5m{{peer="{peer}"}} >= 0'
                for name in ("packet_loss_ratio", "jitter_seconds", "round_trip_seconds")
                for peer in ("publisher", "viewer")
            ] + ["sfud:connect_attempts:rate10m > 0", "sfud:forwarding_seconds:p99_5m > 0"]
            for query in wanted:

                async def is_measured(query=query):
                    return await server.query(query)

                await until(is_measured, query, 30, every=0.5)
            [bad] = await server.query('sfud:packet_loss:bad_ratio5m{peer="viewer"}')
            assert float(bad["value"][1]) == 0
            [joined] = await server.query("sfud_participants_joined_total")
            assert joined["value"][1] == "2"
            [connected] = await server.query("sfud_connect_seconds_count")
            assert connected["value"][1] == "2"

            for query in prometheus.queries():
                await server.query(query)
            groups = (await server.ask("/api/v1/rules"))["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            assert len(rules) == len(prometheus.rules())
            for rule in rules:
                assert rule["health"] == "ok" and not rule.get("lastError"), rule
            firing = await server.query('ALERTS{alertstate="firing"}')
            assert firing == [], firing
            assert await server.query("count(up == 1)")
            await alice.leave()
            await bob.leave()

        await daemon.stop()

        async def is_told():
            return await server.query('ALERTS{alertname="SfudDown",alertstate="pending"}')

        await until(is_told, "an alert that the daemon is down", 15, every=0.5)
    finally:
        await server.stop()


async def test_top_shows_who_sends_and_who_receives(sfud, room, peers):
    alice = await room.join("alice", await peers("aiortc"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    status, output, errors = await sfuctl("--ipc", sfud.ipc, "--json", "top")
    assert (status, errors) == (0, "")
    shown = json.loads(output)
    assert shown["server"]["participants"] == 2
    by_name = {one["participant"]: one for one in shown["participants"]}
    assert by_name.keys() == {"alice", "bob"}
    assert by_name["alice"]["room"] == room.id
    assert by_name["alice"]["bitrateIn"] > 20_000 and by_name["bob"]["bitrateOut"] > 20_000
    assert by_name["alice"]["lossIn"] == 0 and by_name["bob"]["lossOut"] == 0
    assert by_name["bob"]["videos"] == [seen.id] and by_name["bob"]["limit"] == "none"
    assert by_name["bob"]["remote"].startswith("127.0.0.1:")

    # Where there is no terminal, once and as text.
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "top", "--sort", "out")
    assert (status, errors) == (0, "")
    lines = output.splitlines()
    assert "2 participants" in lines[0] and "worker 1:" in lines[1]
    assert [line.split()[1] for line in lines[-3:]] == ["PARTICIPANT", "bob", "alice"]
    status, output, _ = await sfuctl("--ipc", sfud.ipc, "top", "--once", "nowhere")
    assert status == 0 and output.splitlines()[-1].startswith("ROOM")


async def test_top_follows_in_a_terminal_and_leaves_it_as_it_was(sfud, room, peers):
    await room.join("alice", await peers("aiortc"), **ALICE)
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 120, 0, 0))
    before = termios.tcgetattr(theirs)
    child = subprocess.Popen(
        [binary().with_name("sfuctl"), "--ipc", sfud.ipc, "top"],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.set_blocking(ours, False)
    seen = b""

    async def shows(*words: str):
        nonlocal seen

        async def all_there():
            nonlocal seen
            try:
                seen += os.read(ours, 1 << 16)
            except BlockingIOError:
                return False
            # The last whole screen.
            screen = seen.rsplit(b"\x1b[H", 2)[-2:][0].decode(errors="replace")
            return all(word in screen for word in words)

        await until(all_there, f"{words} on the screen", 10)

    try:
        await shows("alice", "connected", "[l loss]", "1 participants")
        assert termios.tcgetattr(theirs)[3] & (termios.ICANON | termios.ECHO) == 0
        os.write(ours, b"t")
        await shows("[t rtt]")
        os.write(ours, b"r")
        await shows("r participants", "PARTICIPANTS")
        os.write(ours, b"q")

        async def ended():
            return child.poll() is not None

        await until(ended, "its end", 5)
        assert child.returncode == 0
        seen += os.read(ours, 1 << 16)
        assert seen.startswith(b"\x1b[?1049h") and seen.rstrip().endswith(b"\x1b[?1049l")
        assert termios.tcgetattr(theirs) == before
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        os.close(ours)
        os.close(theirs)


async def test_doctor_finds_a_daemon_well(sfud):
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "--json", "doctor")
    assert errors == ""
    findings = {one["check"]: one for one in json.loads(output)}
    assert status == 0, findings
    assert "sfud" in findings["daemon"]["text"] and "0 rooms" in findings["daemon"]["text"]
    assert f"process {sfud.process.pid}" in findings["daemon"]["text"]
    assert sfud.udp in findings["udp"]["text"] and findings["udp"]["state"] == "ok"
    # In this namespace there is nothing but loopback.
    assert findings["addresses"]["state"] == "warning"
    assert "127.0.0.1" in findings["addresses"]["text"]
    assert str(sfud.directory / "recordings") in findings["disk"]["text"]
    assert "libssl.so" in findings["libraries"]["text"]
    assert findings["buffers"]["text"].startswith("receive ")
    # The figures are what the kernel granted, which /proc tells otherwise.
    limit = int(open("/proc/sys/net/core/rmem_max").read())
    assert (findings["buffers"]["state"] == "ok") == (limit >= 4 << 20 or os.geteuid() == 0)


async def test_doctor_sees_what_is_wrong_with_a_daemon(start_sfud, tmp_path):
    daemon = await start_sfud(
        "--announce", "203.0.113.7", "--tcp", f"127.0.0.1:{free_ports(2)}",
        under=("prlimit", "--nofile=1000"),
    )  # fmt: skip
    async with daemon.client() as ipc:
        await ipc.call("server.drain")
    status, output, _ = await sfuctl("--ipc", daemon.ipc, "doctor")
    lines = output.splitlines()
    assert status == 0, output
    assert any(re.match(r"warning +daemon .*takes no new rooms", line) for line in lines), output
    assert any(re.match(r"warning +files .* of 1000 open", line) for line in lines), output
    assert any(re.match(r"ok +addresses .*203\.0\.113\.7", line) for line in lines), output
    assert "a NAT has to map UDP" in output

    status, output, _ = await sfuctl("--ipc", tmp_path / "none.sock", "doctor")
    lines = output.splitlines()
    assert status == 1
    assert any(re.match(r"fault +daemon .*none\.sock", line) for line in lines), output
    assert any(re.match(r"ok +kernel +Linux ", line) for line in lines), output
    assert any("libssl.so" in line for line in lines), output


async def test_doctor_names_the_process_that_lives_now(start_sfud):
    """The IPC socket outlives the daemon that opened it."""
    daemon = await start_sfud(keeper=True)
    first = daemon.child()
    _, output, _ = await sfuctl("--ipc", daemon.ipc, "doctor")
    assert f"process {first}," in output
    os.kill(first, signal.SIGKILL)

    async def is_back():
        child = daemon.child()
        if child in (0, first):
            return False
        status, output, _ = await sfuctl("--ipc", daemon.ipc, "doctor")
        return status == 0 and f"process {child}," in output and f"{daemon.udp}, " in output

    await until(is_back, "findings about the second life", 10)
    await daemon.stop()
