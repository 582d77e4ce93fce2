"""What a browser may say. It is not trusted: every message is checked against its shape."""

import json
import re
from typing import Any

from sfud_ipc import Refused


def text(longest: int):
    half = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no UTF-8 has it
    return lambda value: (
        isinstance(value, str) and 0 < len(value) <= longest and not half.search(value)
    )


def matches(pattern: str):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def sources(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= 16
        and all(map(mid, value))
        and all(source in ("camera", "microphone", "screen") for source in value.values())
    )


ident = matches(r"[A-Za-z0-9._:-]{1,128}")
mid = matches(r"[\x21-\x7e]{1,32}")
SHAPES = {  # type → key → (check, whether it must be there)
    "join": {"room": (matches(r"[A-Za-z0-9._-]{1,64}"), True), "name": (text(64), True)},
    "resume": {"key": (text(64), True)},
    "offer": {"sdp": (text(262_144), True), "sources": (sources, True)},
    "subscribe": {
        "stream": (ident, True), "audioMid": (mid, False), "videoMid": (mid, False),
    },
    "unsubscribe": {"stream": (ident, True)},
    "media": {"stream": (ident, True), "audio": (flag, False), "video": (flag, False)},
    "leave": {},
}  # fmt: skip


def checked(data: str) -> dict:
    """The message, or `Refused` where it is none that `SHAPES` has."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("bad-message", "this is no JSON") from None
    shape = SHAPES.get(str(message.get("type"))) if isinstance(message, dict) else None
    if shape is None or type(message.get("id")) is not int:
        raise Refused("bad-message", "unknown type, or no id")
    for key, (check, needed) in shape.items():
        if (needed or key in message) and not check(message.get(key)):
            raise Refused("bad-message", f"{key} is missing or not as it should be")
    if unknown := message.keys() - shape.keys() - {"type", "id"}:
        raise Refused("bad-message", f"unknown keys: {sorted(unknown)[:3]}")
    return message
