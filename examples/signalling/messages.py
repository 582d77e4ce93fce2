"""Messages from browsers. They are not trusted: each is checked against its shape."""

import json
import re
from typing import Any

from sfud_ipc import Refused


def text(longest: int) -> str:
    return rf"[^\ud800-\udfff]{{1,{longest}}}"  # no half of a surrogate pair: not valid in UTF-8


def fits(value: Any, shape: Any) -> bool:
    """Whether a value has a shape: a pattern, a set of words, a range, a type, an object's keys
    (those with a `?` may be left out), a list `[item, least, most]`, or a small map `(key, item)`.
    """
    match shape:
        case str():
            return isinstance(value, str) and re.fullmatch(shape, value) is not None
        case set():
            return isinstance(value, str) and value in shape
        case range():
            return type(value) is int and value in shape
        case [item, int(least), int(most)]:
            return (
                isinstance(value, list)
                and least <= len(value) <= most
                and all(fits(it, item) for it in value)
            )
        case (key, item):
            return isinstance(value, dict) and len(value) <= 16 and all(
                fits(name, key) and fits(it, item) for name, it in value.items()
            )  # fmt: skip
        case dict():
            return isinstance(value, dict) and fault(value, shape) is None
    return type(value) is shape


def fault(value: dict, shape: dict) -> str | None:
    """Returns what is wrong with an object, if anything."""
    for name, wanted in shape.items():
        key = name.rstrip("?")
        if not (fits(value[key], wanted) if key in value else key != name):
            return f"{key} is missing or not as it should be"
    unknown = value.keys() - {name.rstrip("?") for name in shape}
    return f"unknown keys: {sorted(unknown)[:3]}" if unknown else None


ident, mid, word = r"[A-Za-z0-9._:-]{1,128}", r"[\x21-\x7e]{1,32}", text(64)
mode = {"SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY"}
size = {"width": range(1, 16_385), "height": range(1, 16_385)}
watched = {"stream": ident, "audioMid?": mid, "videoMid?": mid, "preferredResolution?": size}
new_room = {"mode?": {"group", "lecture", "single_host", "single_host_audio_only"}, "knock?": bool}
person, people, mids = {"participant": ident}, {"participants": [ident, 1, 100]}, [mid, 0, 100]

# Methods of sfud that a browser may call. The first column is the parameter that names the caller,
# always the session's own participant: `by`, whose role must have the right; `participant`, who
# acts for itself; `from`, who sends a message. So no browser acts for another, and sfud alone
# decides who may do what.
CALLS: dict[str, tuple[str, dict]] = {
    method: (caller, shape)
    for caller, methods, shape in (
        ("by", "room.lock room.unlock room.hardUnmute recording.start recording.stop", {}),
        ("by", "room.hardMute", {"sparing?": {"moderators"}}),
        ("by", "room.setState", {"state": {"ready", "ongoing", "ended"}}),
        ("by", "room.close", {"detail?": word}),
        ("by", "streaming.start", {"url": text(2_048), "layout?": {"stage", "grid"}}),
        ("by", "streaming.stop", {}),
        ("by", "participant.approve", people),
        ("by", "participant.deny participant.drop", people | {"detail?": word}),
        ("by", "participant.hardMute participant.hardUnmute",
         person | {"media": [{"audio", "video"}, 1, 2]}),
        ("by", "participant.setMode", person | {"mode": mode}),
        ("by", "role.change", person | {"role": ident}),
        ("by", "moderator.transfer floor.grant floor.deny floor.release", person),
        ("by", "pin.add pin.remove", people),
        ("by", "stream.update", {"stream": ident, "audio?": bool, "video?": bool}),
        ("by", "subscription.update",
         {"subscription": ident, "preferredResolution?": size, "audio?": bool, "video?": bool}),
        ("by", "subscription.explain", {"subscription": ident}),
        ("participant", "subscription.set", {"subscriptions": [watched, 0, 100]}),
        ("participant", "talkers.subscribe", {"audioMids": mids, "videoMids": mids}),
        ("participant", "transport.offer",
         {"sdp": text(262_144), "sources": (mid, {"camera", "microphone", "screen"}),
          "transport?": ident}),
        ("participant", "transport.close", {"transport": ident}),
        ("participant", "participant.update", {"name": word}),
        ("participant", "role.accept role.decline", {"request": ident}),
        ("participant", "role.requests floor.request floor.cancel floor.finish", {}),
        ("participant", "message.subscribe", {"topic": word}),
        ("from", "message.publish",
         {"topic": word, "message": text(1_024), "payload?": (word, text(256)),
          "to?": [ident, 1, 100], "persist?": bool}),
    )
    for method in methods.split()
}  # fmt: skip

# The server handles these itself.
OWN: dict[str, dict] = {
    "join": {
        "room": r"[A-Za-z0-9._-]{1,64}", "name": word, "role?": {"participant", "viewer"},
        "mode?": mode, "settings?": new_room, "key?": word, "token?": text(1_024),
    },
    "resume": {"key": word, "since?": range(0, 1 << 53)}, "leave": {}, "inviteLink": {},
}  # fmt: skip
SHAPES = OWN | {method: shape for method, (_, shape) in CALLS.items()}


def id_of(data: str) -> int | None:
    """Returns the id of a message that may be wrong otherwise, so that its refusal finds back."""
    try:
        number = json.loads(data)["id"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    return number if type(number) is int else None


def checked(data: str) -> dict:
    """Returns the message; raises `Refused` for one that `SHAPES` does not allow."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("bad-message", "this is no JSON") from None
    shape = SHAPES.get(str(message.get("type"))) if isinstance(message, dict) else None
    if shape is None or type(message.get("id")) is not int:
        raise Refused("bad-message", "unknown type, or no id")
    if wrong := fault(message, shape | {"type": word, "id": int}):
        raise Refused("bad-message", wrong)
    return message


def params(message: dict, room: str, me: str) -> dict:
    """Returns the call's parameters for a message of `CALLS` that `checked` has accepted."""
    caller, _ = CALLS[message["type"]]
    given = {key: value for key, value in message.items() if key not in ("type", "id")}
    return given | {"room": room, caller: me}
