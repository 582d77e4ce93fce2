"""The choice of streams for viewers by WHEP, whose offer has slots and who make no calls.

If the streams fit into the slots, each has its own. Otherwise those who talk are seen.
"""

import asyncio
import logging

from sfud_gateway.core import Gateway
from sfud_gateway.session import Session
from sfud_gateway.sfud_ipc import Refused

log = logging.getLogger("viewers")

EVENTS = (
    "stream.created", "stream.destroyed", "stream.changed", "participant.approved",
    "participant.roleChanged", "subscription.disconnected", "talkers.changed", "resync",
)  # fmt: skip
SETTLING = 0.05  # seconds in which more changes may come
AGAIN = 1.0  # seconds


class Viewers:
    def __init__(self, gateway: Gateway):
        self.gateway = gateway
        self.changed: set[str] = set()  # rooms
        self.busy: set[str] = set()
        self.talkers: dict[str, list[dict]] = {}  # as those hear of them who do not publish
        gateway.on_room_event = self.on_room_event

    def on_room_event(self, room: str, event: dict) -> None:
        name = event["event"]
        if name in ("room.closed", "resync"):
            self.talkers.pop(room, None)
        if name == "talkers.changed" and not isinstance(event["audience"], list):
            self.talkers[room] = event["data"]["talkers"]
        if name in EVENTS and self.of(room):
            final = name == "subscription.disconnected" and event["data"]["final"]
            if final or name in ("participant.roleChanged", "resync"):
                for session in self.of(room):
                    session.extra.pop("watched", None)
            self.arrange_soon(room)

    def of(self, room: str) -> list[Session]:
        """Returns the viewers whose offer is answered."""
        sessions = self.gateway.sessions.get(room, {}).values()
        return [it for it in sessions if it.kind == "whep" and "etag" in it.extra]

    def arrange_soon(self, room: str) -> None:
        self.changed.add(room)
        if room not in self.busy:
            self.busy.add(room)
            self.gateway.spawn(self.work(room))

    async def work(self, room: str) -> None:
        try:
            while room in self.changed:
                await asyncio.sleep(SETTLING)
                self.changed.discard(room)
                try:
                    await self.arrange(room)
                except Refused as refused:
                    if refused.reason == "no-such-room":
                        return
                    log.info("viewers of a room: %s", refused.reason)
                    await asyncio.sleep(AGAIN)
                    if self.gateway.is_ready:
                        self.changed.add(room)
        finally:
            self.busy.discard(room)

    async def arrange(self, room: str) -> None:
        call, viewers = self.gateway.ipc.call, self.of(room)
        listed = self.gateway.ipc.pages("stream.list", "streams", room=room)
        streams = [it async for it in listed]
        if room not in self.talkers:
            self.talkers[room] = (await call("room.get", room=room))["talkers"]
        for session in viewers:
            plan = plan_of(session, streams, self.talkers.get(room, []))
            if session.extra.get("watched") == plan:
                continue
            try:
                await call(
                    "subscription.set", room=room, participant=session.id,
                    subscriptions=[{"stream": stream} for stream in plan],
                )  # fmt: skip
            except Refused as refused:
                if refused.reason not in ("no-such-participant", "no-such-transport"):
                    raise
            else:
                session.extra["watched"] = plan
                self.gateway.save(session)


def plan_of(session: Session, streams: list[dict], talkers: list[dict]) -> list[str]:
    """Returns the streams that a viewer watches, no more than it has slots for.

    A talker keeps the slot while it talks, so that an interjection does not take it.
    """
    only, watched = session.extra.get("only"), session.extra.get("watched", [])
    visible = [
        it for it in streams
        if it["participant"] != session.id and only in (None, it["participant"])
    ]  # fmt: skip
    visible.sort(key=lambda it: (it["source"] != "screen", it["created"]))
    slots = min(count for kind in ("audio", "video") if (count := len(session.extra[kind])))
    if len(visible) > slots:
        place = {it["stream"]: at for at, it in enumerate(talkers) if "stream" in it}
        pinned = {it.get("stream") for it in talkers if it["pinned"]}
        talking = {it.get("stream") for it in talkers if it["talking"]}

        def rank(stream: dict) -> tuple:
            id = stream["stream"]
            return (id not in pinned, id not in talking, id not in watched, place.get(id, 1_000))

        visible.sort(key=rank)
    return [it["stream"] for it in visible[:slots]]
