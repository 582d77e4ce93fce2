"""Recovery after a restart of the gateway or of sfud, or a loss of events."""

import asyncio
import hashlib
import json
import time
from typing import TYPE_CHECKING

from sfud_gateway.refusals import AWAY
from sfud_gateway.sfud_ipc import Refused

if TYPE_CHECKING:
    from sfud_gateway.core import Gateway


AGAIN = 5.0  # seconds


class Recovery:
    def __init__(self, gateway: "Gateway"):
        self.gateway = gateway
        self.suspects: set[tuple[str, str]] = set()  # rooms, and who may be there without a session
        self.unsure: set[str] = set()  # rooms that sfud is to be asked for again

    async def run(self) -> None:
        """Compares what the store knows with sfud, once the connection is there."""
        gateway = self.gateway
        if gateway.store.boot != gateway.ipc.boot:
            if not gateway.ipc.has_same_rooms:
                for room in list(gateway.people):
                    self.lose_room(room)
            gateway.store.boot = gateway.ipc.boot
        async for found in gateway.ipc.pages("room.list", "rooms"):
            if gateway.split(found["room"]) and found["room"] not in gateway.people:
                await self.refresh(found["room"])
        for room in list(gateway.sessions):
            if room not in gateway.people:
                await self.refresh(room)  # it may be at another node, whose rooms are not listed
        for session in list(gateway.keys.values()):
            if session.kind == "ws" and session.connection is None and session.expiry is None:
                gateway.expire(session)
            elif session.kind != "ws" and "etag" not in session.extra and session.held is None:
                # The last process ended between its join and its answer, so nobody has its URL.
                gateway.spawn(gateway.remove(session))
        for room in list(gateway.sessions):
            gateway.on_room_event(room, {"event": "resync"})
        for suspect in self.suspects:
            self.clear_soon(*suspect)

    def suspect(self, room: str, participant: str) -> None:
        """Notes that a join was not answered: it may take effect, and nobody would own it."""
        self.suspects.add((room, participant))
        self.clear_soon(room, participant)

    def clear_soon(self, room: str, participant: str) -> None:
        self.gateway.spawn(self.clear(room, participant))

    async def clear(self, room: str, participant: str) -> None:
        """Takes a suspect out of its room, unless it has joined again by now."""
        gateway, suspect = self.gateway, (room, participant)
        async with gateway.locks.setdefault(suspect, asyncio.Lock()):
            if suspect not in self.suspects:
                return
            if participant not in gateway.sessions.get(room, {}):
                try:
                    await gateway.ipc.call(
                        "participant.leave", room=room, participant=participant
                    )
                except Refused as refused:
                    if refused.reason in AWAY:
                        if gateway.is_ready:  # else it is tried when sfud is back
                            loop = asyncio.get_running_loop()
                            loop.call_later(AGAIN, self.clear_soon, *suspect)
                        return
            self.suspects.discard(suspect)

    def lose_room(self, room: str) -> None:
        """Tells of a room that ended while nobody listened."""
        gateway = self.gateway
        for participant in sorted(gateway.people.get(room, ())):
            self.lose_person(room, participant)
        if gateway.store.rooms().get(room):  # else nobody was told that there is one
            self.tell(room, "room.closed", {"reason": "lost"})
        gateway.close_room(room, "sfud-restarted")

    def lose_person(self, room: str, participant: str) -> None:
        self.tell(room, "participant.left", {"participant": participant, "reason": "lost"})

    def tell(self, room: str, event: str, data: dict) -> None:
        gateway, now = self.gateway, time.time()
        tenant, name = gateway.split(room) or ("", room)
        mark = f"{gateway.store.boot} {room} {event} {data.get('participant')} {now}"
        id = hashlib.sha256(mark.encode()).hexdigest()[:32]
        gateway.webhooks.put(id, tenant, name, event, now, data)

    def refresh_again(self, room: str) -> None:
        self.unsure.discard(room)
        self.gateway.spawn(self.refresh(room))

    async def refresh(self, room: str) -> None:
        """Compares a room with sfud's, whose events in between are no longer to be had."""
        gateway = self.gateway
        try:
            info = await gateway.ipc.call("room.get", room=room)
            listed = gateway.ipc.pages("participant.list", "participants", room=room)
            here = {it["participant"] async for it in listed}
        except Refused as refused:
            if refused.reason == "no-such-room":
                self.lose_room(room)
            elif refused.reason in AWAY and room not in self.unsure:
                self.unsure.add(room)
                asyncio.get_running_loop().call_later(AGAIN, self.refresh_again, room)
            return
        for participant in sorted(gateway.people.get(room, set()) - here):
            self.lose_person(room, participant)
            gateway.store.remove_person(room, participant)
            if session := gateway.sessions.get(room, {}).get(participant):
                gateway.end(session, "session.ended", "lost")
        for participant in here:
            gateway.store.add_person(room, participant)
        gateway.people[room] = here
        gateway.count_rooms(room)
        gateway.store.saw(room, info["seq"])
        name = room.partition(":")[2]
        text = json.dumps({"event": "resync", "room": name, "data": {}})
        for session in gateway.sessions.get(room, {}).values():
            if session.connection:
                session.connection.send(text)
        gateway.on_room_event(room, {"event": "resync"})
