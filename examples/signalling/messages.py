"""Messages from browsers. They are not trusted: each is checked against its shape."""

import json
import re
from typing import Any

from sfud_ipc import Refused


def text(longest: int):
    half = re.compile("[\ud800-\udfff]")  # half of a surrogate pair: not valid in UTF-8
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


def one_of(*words: str):
    return lambda value: isinstance(value, str) and value in words


def list_of(check, longest: int, shortest: int = 1):
    return lambda value: (
        isinstance(value, list) and shortest <= len(value) <= longest and all(map(check, value))
    )


def settings(value: Any) -> bool:
    """Checks the kind of room to make, if a moderator makes it."""
    checks = {"mode": one_of(*ROOM_MODES), "knock": flag}
    return isinstance(value, dict) and all(
        key in checks and checks[key](it) for key, it in value.items()
    )


def payload(value: Any) -> bool:
    """Checks for a flat and short object."""
    return (
        isinstance(value, dict)
        and len(value) <= 16
        and all(text(64)(key) and text(256)(it) for key, it in value.items())
    )


def pixels(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 16_384


ROOM_MODES = ("group", "lecture", "single_host", "single_host_audio_only")
MODES = ("SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY")
ident = matches(r"[A-Za-z0-9._:-]{1,128}")
mid = matches(r"[\x21-\x7e]{1,32}")
word = text(64)
person = {"participant": (ident, True)}
people = {"participants": (list_of(ident, 100), True)}
media = person | {"media": (list_of(one_of("audio", "video"), 2), True)}
request = {"request": (ident, True)}
SHAPES = {  # type → key → (check, whether it must be there)
    "join": {
        "room": (matches(r"[A-Za-z0-9._-]{1,64}"), True), "name": (word, True),
        "role": (one_of("participant", "viewer"), False), "mode": (one_of(*MODES), False),
        "settings": (settings, False), "key": (word, False), "token": (text(1_024), False),
    },
    "resume": {"key": (word, True)},
    "offer": {"sdp": (text(262_144), True), "sources": (sources, True)},
    "subscribe": {
        "stream": (ident, True), "audioMid": (mid, False), "videoMid": (mid, False),
    },
    "unsubscribe": {"stream": (ident, True)},
    "prefer": {"stream": (ident, True), "width": (pixels, True), "height": (pixels, True)},
    "explain": {"stream": (ident, True)},
    "follow": {
        "audioMids": (list_of(mid, 100, 0), True), "videoMids": (list_of(mid, 100, 0), True),
    },
    "media": {"stream": (ident, True), "audio": (flag, False), "video": (flag, False)},
    "leave": {}, "inviteLink": {},
    # moderation.py has the resulting calls.
    "lock": {}, "unlock": {}, "muteAll": {}, "unmuteAll": {}, "close": {},
    "record": {}, "stopRecord": {},
    "stream": {"url": (text(2_048), True), "layout": (one_of("stage", "grid"), False)},
    "stopStream": {},
    "setState": {"state": (one_of("ready", "ongoing", "ended"), True)},
    "mute": media, "unmute": media,
    "drop": people, "pin": people, "unpin": people,
    "approve": person, "deny": person, "transfer": person,
    "setMode": person | {"mode": (one_of(*MODES), True)},
    "changeRole": person | {"role": (ident, True)},
    "acceptRole": request, "declineRole": request,
    "requestFloor": {}, "cancelFloor": {}, "finishFloor": {},
    "grantFloor": person, "denyFloor": person, "releaseFloor": person,
    "listen": {"topic": (word, True)},
    "say": {
        "topic": (word, True), "message": (text(1024), True), "payload": (payload, False),
        "to": (list_of(ident, 100), False),
    },
}  # fmt: skip


def checked(data: str) -> dict:
    """Returns the message; raises `Refused` for one that `SHAPES` does not allow."""
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
