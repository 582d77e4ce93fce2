"""Browsers' requests about the room itself: each message, and the resulting call to sfud.

The third column names the parameter that tells sfud the caller, always the session's own
participant: `by`, whose role must have the right; `participant`, who acts for itself; `from`, who
sends a message. So no browser acts for another, and sfud alone decides who may do what.
"""

import logging

from sfud_ipc import Refused

log = logging.getLogger("signalling")

# Permissions for the messages below; `record` and `stream` are added by command-line options.
MODERATION = [
    "changeRole", "mute", "lock", "drop", "close", "approve", "floor", "pin", "state", "mode",
]  # fmt: skip
EVERYTHING = {"audio": True, "video": True, "screen": True}

CALLS = {
    "lock": ("room.lock", "by"),
    "unlock": ("room.unlock", "by"),
    "muteAll": ("room.hardMute", "by"),
    "unmuteAll": ("room.hardUnmute", "by"),
    "close": ("room.close", "by"),
    "record": ("recording.start", "by"),
    "stopRecord": ("recording.stop", "by"),
    "stream": ("streaming.start", "by"),
    "stopStream": ("streaming.stop", "by"),
    "setState": ("room.setState", "by"),
    "mute": ("participant.hardMute", "by"),
    "unmute": ("participant.hardUnmute", "by"),
    "drop": ("participant.drop", "by"),
    "approve": ("participant.approve", "by"),
    "deny": ("participant.deny", "by"),
    "pin": ("pin.add", "by"),
    "unpin": ("pin.remove", "by"),
    "transfer": ("moderator.transfer", "by"),
    "setMode": ("participant.setMode", "by"),
    "changeRole": ("role.change", "by"),
    "acceptRole": ("role.accept", "participant"),
    "declineRole": ("role.decline", "participant"),
    "requestFloor": ("floor.request", "participant"),
    "cancelFloor": ("floor.cancel", "participant"),
    "finishFloor": ("floor.finish", "participant"),
    "grantFloor": ("floor.grant", "by"),
    "denyFloor": ("floor.deny", "by"),
    "releaseFloor": ("floor.release", "by"),
    "listen": ("message.subscribe", "participant"),
    "say": ("message.publish", "from"),
}


def roles(permissions: list[str]) -> list[dict]:
    """Returns the roles of every room; a moderator has `permissions` beside the usual ones."""
    return [
        {"name": "moderator", "publish": EVERYTHING, "permissions": MODERATION + permissions},
        {"name": "participant", "publish": EVERYTHING},
        {"name": "viewer"},
    ]


def call(message: dict, room: str, me: str) -> tuple[str, dict]:
    """Returns the method and the parameters for a message that `messages.checked` has accepted."""
    method, who = CALLS[message["type"]]
    wish = {key: value for key, value in message.items() if key not in ("type", "id")}
    return method, wish | {"room": room, who: me}


def shown(kind: str, result: dict) -> dict:
    """Strips a result of paths: browsers must not know where files are on the server."""
    return {"recording": result["recording"]} if kind == "record" else result


def refusal(kind: str, refused: Refused) -> Refused:
    """Strips a refusal of the cause of a failed live stream.

    It reveals a host's open ports, so it stays in the log.
    """
    if kind != "stream" or refused.reason not in ("streaming-failed", "timeout"):
        return refused
    log.info("a live stream has failed: %s", refused.message)
    return Refused("streaming-failed", "the live stream could not be started", 4508)


ENDINGS = ("requested", "room-closed", "shutdown")  # of a live stream that has not failed


def for_browsers(event: dict) -> dict:
    """Strips an event of the same."""
    name, data = event["event"], event["data"]
    if name.startswith("recording."):
        data = {key: data[key] for key in ("recording", "reason", "by") if key in data}
    elif name.startswith("streaming."):
        data = {key: value for key, value in data.items() if key != "cause"}
        if data.get("reason") not in (None, *ENDINGS):
            log.info("a live stream has ended: %s", data["reason"])
            data["reason"] = "failed"
    return event | {"data": data}
