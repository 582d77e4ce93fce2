"""Runs the examples of docs/ipc.md against the daemon, in the document's order.

Their notation is explained in the section "How to read the examples" there.
"""

import json
import re
import socket
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "ipc.md"

BLOCK = re.compile(r"^```ipc\n(.*?)^```$", re.MULTILINE | re.DOTALL)
METHOD = re.compile(r"^## (\w+\.\w+)$", re.MULTILINE)

#: Placeholders for any value of a type. A boolean is no number here.
TYPES = {
    "<string>": lambda value: isinstance(value, str),
    "<number>": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "<boolean>": lambda value: isinstance(value, bool),
    "<object>": lambda value: isinstance(value, dict),
    "<array>": lambda value: isinstance(value, list),
    "<sdp>": lambda value: isinstance(value, str) and value.startswith("v=0\r\n"),
}

#: The member that stands for further ones.
MORE = "…"


def offer(direction: str) -> str:
    """Returns a small offer with one audio and one video m-line, as a browser would write it."""
    transport = [
        "c=IN IP4 0.0.0.0",
        "a=rtcp-mux",
        "a=ice-ufrag:docs",
        "a=ice-pwd:abcdefghijklmnopqrstuvwx",
        "a=fingerprint:sha-256 " + ":".join(["AB"] * 32),
        "a=setup:actpass",
        f"a={direction}",
    ]
    lines = [
        "v=0",
        "o=- 4611731400430051336 2 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0 1",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "a=mid:0",
        *transport,
        "a=rtpmap:111 opus/48000/2",
        "a=fmtp:111 minptime=10;useinbandfec=1",
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
        "a=mid:1",
        *transport,
        "a=rtcp-rsize",
        "a=rtpmap:96 VP8/90000",
        "a=rtcp-fb:96 nack",
        "a=rtcp-fb:96 nack pli",
        "a=rtpmap:97 rtx/90000",
        "a=fmtp:97 apt=96",
    ]
    return "\r\n".join(lines) + "\r\n"


OFFERS = {"<offer:ann>": offer("sendonly"), "<offer:bob>": offer("recvonly")}


def messages(block: str) -> list[tuple[str, dict]]:
    """Returns the messages of one block, each with its arrow; a message may take several lines."""
    found: list[tuple[str, str]] = []
    for line in block.splitlines():
        if line[:1] in "→←" and line:
            found.append((line[0], line[1:]))
        else:
            arrow, text = found.pop()
            found.append((arrow, f"{text}\n{line}"))
    return [(arrow, json.loads(text)) for arrow, text in found]


def filled(value, ids: dict[str, str]):
    """Returns a request with offers and ids in place of the placeholders."""
    match value:
        case dict():
            return {key: filled(item, ids) for key, item in value.items()}
        case list():
            return [filled(item, ids) for item in value]
        case str() if value.startswith("<"):
            return OFFERS[value] if value in OFFERS else ids[value]
        case _:
            return value


def differences(expected, actual, ids: dict[str, str], path: str = "") -> list[str]:
    """Returns the differences of `actual` from the example; learns the ids that it names."""
    match expected:
        case str() if expected in TYPES:
            return [] if TYPES[expected](actual) else [f"{path}: {actual!r} is no {expected}"]
        case str() if expected.startswith("<id:"):
            known = ids.setdefault(expected, actual)
            fits = isinstance(actual, str) and re.fullmatch(r"[A-Za-z0-9._:-]{1,128}", actual)
            return [] if fits and known == actual else [f"{path}: {actual!r} is not {known!r}"]
        case dict() if isinstance(actual, dict):
            named = {key: value for key, value in expected.items() if key != MORE}
            found = [f"{path}.{key} is missing" for key in named if key not in actual]
            if MORE not in expected:
                found += [f"{path}.{key} is not in the example" for key in actual.keys() - named]
            for key in named.keys() & actual.keys():
                found += differences(named[key], actual[key], ids, f"{path}.{key}")
            return found
        case list() if isinstance(actual, list) and len(expected) == len(actual):
            found = []
            for index, (left, right) in enumerate(zip(expected, actual)):
                found += differences(left, right, ids, f"{path}[{index}]")
            return found
        case _ if type(expected) is type(actual) and expected == actual:
            return []
        case _:
            return [f"{path}: {actual!r} is not {expected!r}"]


def test_every_method_has_an_example():
    text = DOCUMENT.read_text()
    described = set(METHOD.findall(text))
    shown = {
        message["method"]
        for block in BLOCK.findall(text)
        for arrow, message in messages(block)
        if arrow == "→"
    }
    assert described == shown
    assert len(described) >= 18


@pytest.mark.parametrize(
    "expected, actual",
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": True}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": "<number>"}, {"a": "1"}),
        ({"a": "<number>"}, {"a": True}),
        ({"a": "<sdp>"}, {"a": "v=1"}),
        ({"a": 1, "…": "…"}, {"b": 1}),
        ([1], [1, 1]),
        (["<id:x>", "<id:x>"], ["p", "q"]),
        ({"a": "<id:x>"}, {"a": "a b"}),
    ],
)
def test_a_difference_is_seen(expected, actual):
    assert differences(expected, actual, {})


def test_what_fits_is_no_difference():
    expected = {"a": ["<id:x>", "<number>"], "b": "<object>", "…": "…"}
    assert not differences(expected, {"a": ["p", 1.5], "b": {}, "c": None}, {})


def test_the_daemon_does_what_the_examples_show(sfud):
    ids: dict[str, str] = {}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        connection.connect(str(sfud.ipc))
        with connection.makefile("rb") as lines:
            for block in BLOCK.findall(DOCUMENT.read_text()):
                for arrow, message in messages(block):
                    if arrow == "→":
                        line = json.dumps(filled(message, ids), ensure_ascii=False)
                        connection.sendall(line.encode() + b"\n")
                    else:
                        actual = json.loads(lines.readline())
                        found = differences(message, actual, ids)
                        assert not found, f"expected {message}\ngot {actual}"
