"""The methods of sfud that a client may call, and whom it may name in them.

sfud itself checks what a params object holds and what a role may do. This table makes sure that a
client can name nobody but itself as the caller, and no room but its own.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sfud_gateway.config import Tenant
from sfud_gateway.refusals import refuse
from sfud_gateway.sfud_ipc import Refused


@dataclass(frozen=True)
class Method:
    """`fill` are params that always name the caller, `default` those that do if left out."""

    fill: tuple[str, ...]
    allowed: frozenset[str]
    default: str | None = None
    is_shown_to_awaited: bool = True


def rows(fill: str, methods: str, params: str = "", **options: Any) -> dict[str, Method]:
    row = Method(tuple(fill.split()), frozenset(params.split()), **options)
    return {method: row for method in methods.split()}


PREFERENCES = "preferredResolution preferredFrameRate priority audioFallback"
METHODS: dict[str, Method] = (
    # One's own media.
    rows("participant by", "transport.offer", "sdp transport sources streams audioFallback")
    | rows("participant by", "transport.close", "transport")
    | rows("participant", "transport.list", "limit after")
    | rows("by", "stream.update", "stream audio video")
    | rows("by", "stream.unpublish", "stream")
    # Watching.
    | rows("participant", "subscription.add",
           f"stream audioMid videoMid ifExists {PREFERENCES}")
    | rows("participant by", "subscription.set", "subscriptions")
    | rows("participant", "subscription.list", "limit after")
    | rows("by", "subscription.update", f"subscription stream audio video {PREFERENCES}")
    | rows("by", "subscription.remove subscription.explain", "subscription")
    | rows("participant", "talkers.subscribe",
           "audioMids videoMids preferredResolution preferredFrameRate")
    | rows("participant", "stats.get", "limit after")
    # Oneself.
    | rows("by", "participant.update", "participant name custom", default="participant")
    | rows("by", "participant.setMode", "participant mode", default="participant")
    | rows("participant", "role.accept role.decline", "request")
    | rows("participant", "role.requests", "limit after")
    | rows("participant", "floor.request floor.cancel floor.finish")
    # The room.
    | rows("", "room.get")
    | rows("", "participant.list", "role state limit after", is_shown_to_awaited=False)
    | rows("", "stream.list", "limit after", is_shown_to_awaited=False)
    | rows("by", "room.update", "custom")
    | rows("by", "room.lock room.unlock room.hardUnmute recording.stop")
    | rows("by", "streaming.stop", "streaming")
    | rows("by", "room.hardMute", "sparing")
    | rows("by", "room.setState", "state")
    | rows("by", "room.close", "detail")
    | rows("by", "recording.start", "streams")
    | rows("by", "streaming.start", "url layout width height bitrate")
    # Others.
    | rows("by", "participant.approve", "participant participants")
    | rows("by", "participant.deny", "participant participants detail")
    | rows("by", "participant.drop", "participants detail")
    | rows("by", "participant.hardMute participant.hardUnmute", "participant participants media")
    | rows("by", "role.change", "participant role force")
    | rows("by", "role.changeAll", "role from")
    | rows("by", "moderator.transfer floor.grant floor.deny floor.release", "participant")
    | rows("by", "pin.add pin.remove", "participants")
    # Messages.
    | rows("from", "message.publish", "topic message payload to persist")
    | rows("participant", "message.subscribe", "topic limit after")
    | rows("participant", "message.unsubscribe", "topic")
    | rows("participant", "message.topics", "limit after")
)  # fmt: skip


def closed(method: str, params: Any, allowed: frozenset[str]) -> dict[str, Any]:
    """Returns params, of which none is unknown; raises `Refused` else."""
    if not isinstance(params, dict):
        raise refuse("invalid-params", "params is no object", parameter="params")
    for key in params:
        if key not in allowed:
            raise refuse("invalid-params", f"{method} has no parameter {key[:64]!r}", parameter=key)
    return params


def call_of(method: str, params: Any, room: str, me: Any) -> dict[str, Any]:
    """Returns the params of the call to sfud that a client's request makes."""
    row = METHODS[method]
    given = dict(closed(method, params, row.allowed))
    if me.awaited and not row.is_shown_to_awaited:
        raise refuse("not-permitted", "you wait to be let in", permission="approve")
    if method == "participant.list" and me.role != "moderator":
        given["state"] = "joined"  # knocks are told to moderators alone
    if row.default and given.get(row.default) is None:
        given[row.default] = me.id
    return given | {name: me.id for name in row.fill} | {"room": room}


def check_tenant(method: str, params: dict[str, Any], tenant: Tenant) -> None:
    """Refuses a destination of a live stream that the operator has not named."""
    if method != "streaming.start":
        return
    text = params.get("url")
    if not isinstance(text, str):
        raise refuse("invalid-params", "url is missing, or no string", parameter="url")
    try:
        url = urlsplit(text)
        host, plain = url.hostname, "@" not in url.netloc and "\\" not in text
    except ValueError:
        host, plain = None, False
    if not plain or host not in tenant.streaming_hosts:
        raise refuse("not-permitted", "this server does not stream to that host")


def room_for(room: dict[str, Any], name: str, me: Any) -> dict[str, Any]:
    """Returns what a participant may see of a room: moderators all, those who wait nobody."""
    shown = room | {"room": name}
    if me.role == "moderator" and not me.awaited:
        return shown
    if "floor" in shown:
        floor = shown["floor"].items()
        shown["floor"] = {key: [it for it in ids if it == me.id] for key, ids in floor}
    if "awaited" in shown:
        shown["awaited"] = []
    if me.awaited:
        lists = ("participants", "streams", "talkers", "pins")
        shown |= {key: [] for key in lists if key in shown}
        shown.pop("next", None)
    elif "next" in shown:
        shown["next"] = {key: it for key, it in shown["next"].items() if key != "awaited"}
    return shown


def result_for(method: str, result: dict[str, Any], room: str, me: Any) -> dict[str, Any]:
    """Strips a result of what a client must not know: where files are."""
    if method == "recording.start":
        return {"recording": result["recording"]}
    if method in ("room.get", "room.update"):
        return room_for(result, room, me)
    return result


def refusal_for(method: str, refused: Refused) -> Refused:
    """Strips a refusal of causes that tell of the server's network or disk."""
    if method == "streaming.start" and refused.reason in ("streaming-failed", "timeout"):
        return Refused("streaming-failed", "the live stream could not be started", 4508)
    if method == "recording.start" and refused.reason == "recording-failed":
        return Refused("recording-failed", "the recording could not be started", 4507)
    return refused


ENDINGS = ("requested", "room-closed", "ended", "shutdown")  # of a live stream without a fault


def event_for(event: dict[str, Any], room: str) -> dict[str, Any]:
    """Returns an event as clients get it."""
    name, data = event["event"], event["data"]
    if name.startswith("recording."):
        data = {key: data[key] for key in ("recording", "reason", "by") if key in data}
    elif name.startswith("streaming."):
        data = {key: value for key, value in data.items() if key != "cause"}
        if data.get("reason") not in (None, *ENDINGS):
            data["reason"] = "failed"
    elif name == "participant.left":
        data = {key: value for key, value in data.items() if key != "session"}
    if isinstance(data.get("roomInfo"), dict):
        data = data | {"roomInfo": data["roomInfo"] | {"room": room}}
    return {"event": name, "room": room, "seq": event.get("seq", 0), "time": event["time"],
            "data": data}  # fmt: skip
