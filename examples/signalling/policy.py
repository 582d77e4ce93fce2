"""This server's policy: the roles of its rooms, and what it withholds from browsers."""

import logging
from typing import Any

from sfud_ipc import Refused

log = logging.getLogger("signalling")

# A moderator's permissions; `record` and `stream` are added by command-line options.
MODERATION = [
    "changeRole", "mute", "lock", "drop", "close", "approve", "floor", "pin", "state", "mode",
]  # fmt: skip
EVERYTHING = {"audio": True, "video": True, "screen": True}
ENDINGS = ("requested", "room-closed", "ended", "shutdown")  # of a live stream without a fault


def roles(permissions: list[str]) -> list[dict]:
    """Returns the roles of every room; a moderator has `permissions` beside the usual ones."""
    return [
        {"name": "moderator", "publish": EVERYTHING, "permissions": MODERATION + permissions},
        {"name": "participant", "publish": EVERYTHING},
        {"name": "viewer"},
    ]


def view(room: dict, session: Any) -> dict:
    """Returns what a session may see of the room: moderators all, those who wait nobody."""
    if session.role == "moderator":
        return room
    floor = {key: [it for it in ids if it == session.id] for key, ids in room["floor"].items()}
    hidden: dict[str, Any] = {"awaited": [], "floor": floor}
    if session.awaited:
        hidden |= {key: [] for key in ("participants", "streams", "talkers", "pins")}
    return room | hidden


def shown(method: str, result: dict) -> dict:
    """Strips a result of paths: browsers must not know where files are on the server."""
    return {"recording": result["recording"]} if method == "recording.start" else result


def refusal(method: str, refused: Refused) -> Refused:
    """Strips a refusal of the cause of a failed live stream.

    It reveals a host's open ports, so it stays in the log.
    """
    if method != "streaming.start" or refused.reason not in ("streaming-failed", "timeout"):
        return refused
    log.info("a live stream has failed: %s", refused.message)
    return Refused("streaming-failed", "the live stream could not be started", 4508)


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
