"""The gateway's core: who is where, joining and leaving, and what sfud's events mean for that."""

import asyncio
import contextlib
import hashlib
import json
import logging
import math
import re
import secrets
import time
import weakref
from collections.abc import Coroutine
from typing import Any

from sfud_gateway import ice, methods
from sfud_gateway.config import TENANT, Config, Tenant
from sfud_gateway.limits import Admission
from sfud_gateway.metrics import Metrics
from sfud_gateway.recovery import Recovery
from sfud_gateway.refusals import AWAY, refuse
from sfud_gateway.rights import Rights, own_roles
from sfud_gateway.session import Session
from sfud_gateway.sfud_ipc import IPC, Refused, passing
from sfud_gateway.store import Store
from sfud_gateway.tokens import ROOM, Grant, digest_of
from sfud_gateway.webhooks import Webhooks

log = logging.getLogger("gateway")

COMMIT_SECONDS = 0.05


def split(room: str) -> tuple[str, str] | None:
    """Returns tenant and room of a room of sfud; `None` for one that is not the gateway's."""
    tenant, mark, name = room.partition(":")
    return (tenant, name) if mark and re.fullmatch(TENANT, tenant) else None


class Gateway:
    """All sessions, and the connection to sfud."""

    def __init__(self, config: Config, store: Store, metrics: Metrics):
        self.config, self.store, self.metrics = config, store, metrics
        self.webhooks = Webhooks(lambda: self.config, store, metrics)
        self.people: dict[str, set[str]] = {room: set() for room in store.rooms()}
        for room, participant in store.people():
            self.people.setdefault(room, set()).add(participant)
        self.sessions: dict[str, dict[str, Session]] = {}  # room → participant
        self.keys: dict[str, Session] = {}
        self.joining: dict[str, set[Session]] = {}  # room → sessions without an answer yet
        self.admission, self.rights = Admission(), Rights(store)
        self.recovery = Recovery(self)
        self.split = split
        self.locks: weakref.WeakValueDictionary = weakref.WeakValueDictionary()
        self.tasks: set[asyncio.Task] = set()
        self.on_room_event: Any = lambda room, event: None  # set by the viewers of WHEP
        self.tell_all: Any = lambda text: None  # set by the WebSockets
        self.is_stopping = False
        self.is_ready = False  # sfud is there, and what it has done meanwhile is known
        self.ipc = IPC(
            config.ipc, self.on_event, self.on_up, self.on_down, store.rooms(), store.boot
        )
        for key, room, participant, kind, fields in store.sessions():
            tenant, name = split(room) or ("", room)
            session = Session(key, tenant, name, participant, kind)
            session.restore(fields)
            self.index(session)

    # Sessions.

    def index(self, session: Session) -> None:
        self.sessions.setdefault(session.sfud_room, {})[session.id] = session
        self.keys[session.key] = session
        self.metrics.sessions.labels(session.tenant, session.kind).inc()

    def save(self, session: Session) -> None:
        self.store.save_session(
            session.key, session.sfud_room, session.id, session.kind, session.fields()
        )

    def session(self, key: str) -> Session | None:
        """Returns the session with this key; only its hash is kept, so no timing tells of it."""
        found = self.keys.get(digest_of(key))
        return None if found is None or found.is_leaving else found

    def forget(self, session: Session) -> None:
        """Ends a session here; it has left sfud, or another has its place."""
        if self.keys.pop(session.key, None) is None:
            return
        room = self.sessions.get(session.sfud_room, {})
        if room.get(session.id) is session:
            del room[session.id]
            if not room:
                del self.sessions[session.sfud_room]
        if session.expiry:
            session.expiry.cancel()
        self.store.forget_session(session.key)
        self.metrics.sessions.labels(session.tenant, session.kind).dec()

    def end(self, session: Session, event: str, reason: str) -> None:
        """Ends a session and tells its client why."""
        self.forget(session)
        if session.connection:
            session.connection.lose(session, event, reason)

    def spawn(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)  # otherwise nobody would hold it
        task.add_done_callback(self.tasks.discard)

    def expire(self, session: Session, at_most: float = math.inf) -> None:
        """Removes the session unless its client comes back in time, within `at_most` seconds."""
        if session.expiry:
            session.expiry.cancel()
        session.expiry = asyncio.get_running_loop().call_later(
            min(self.config.grace_seconds, at_most), lambda: self.spawn(self.remove(session))
        )

    async def remove(self, session: Session) -> None:
        """Takes a session's participant out of its room; the session ends with sfud's event."""
        if session.is_leaving or session.key not in self.keys:
            return
        session.is_leaving, session.connection = True, None
        try:
            await self.ipc.call(
                "participant.leave", room=session.sfud_room, participant=session.id
            )
        except Refused as refused:
            if refused.reason in AWAY:
                session.is_leaving = False
                self.expire(session)  # again, when sfud may be back
                return
        self.forget(session)

    # Joining.

    def tenant(self, grant: Grant) -> Tenant:
        found = self.config.tenants.get(grant.tenant)
        if found is None:
            raise refuse("token-invalid", "the token is not signed by a known key")
        return found

    def room_of(self, grant: Grant, room: str | None) -> str:
        if room is None and not grant.room.endswith("*"):
            return grant.room
        if room is None:
            raise refuse("invalid-params", "room is missing", parameter="room")
        if not re.fullmatch(ROOM, room):
            raise refuse("invalid-params", "room is no name of a room", parameter="room")
        if not grant.permits(room):
            raise refuse("wrong-room", "the token is for another room")
        return room

    async def join(
        self, grant: Grant, room: str, kind: str, *, role: str | None = None,
        may_create: bool = True, **params: Any,
    ) -> tuple[Session, str, dict[str, Any]]:
        """Lets a token's bearer in: returns the session, its secret key and sfud's result.

        `role` is that of a token that names none. Events are held until the session's `release`.
        """
        self.check_ready()
        tenant, room_id = self.tenant(grant), f"{grant.tenant}:{room}"
        id = grant.participant or f"guest-{secrets.token_hex(16)}"
        lock = self.locks.setdefault((room_id, id), asyncio.Lock())
        async with lock:
            params["role"] = self.rights.role(grant, room_id) or role
            self.admission.check(tenant, room_id, id, self.people, self.joining)
            key = secrets.token_urlsafe(32)
            session = Session(digest_of(key), grant.tenant, room, id, kind)
            session.came_with(grant)
            session.held = []
            waiting = self.joining.setdefault(room_id, set())
            waiting.add(session)
            try:
                result = await self.enter(tenant, grant, session, may_create, params)
            finally:
                waiting.discard(session)
                if not waiting and self.joining.get(room_id) is waiting:
                    del self.joining[room_id]
            self.metrics.joins.labels(tenant.name, kind).inc()
            self.store.commit()  # the client relies on its key
            return session, key, result

    async def enter(
        self, tenant: Tenant, grant: Grant, session: Session, may_create: bool,
        params: dict[str, Any],
    ) -> dict[str, Any]:
        room = session.sfud_room
        if may_create and grant.create and room not in self.people:
            await self.create(room, tenant.settings | grant.settings)
        given = {"name": grant.name, "custom": grant.custom}
        params = {key: value for key, value in (params | given).items() if value is not None}
        previous = self.sessions.get(room, {}).get(session.id)
        # A page that is loaded again takes the place of the one that went away.
        if_present = "takeover" if previous and previous.went_away else grant.if_present
        try:
            result = await self.ipc.call(
                "participant.join", room=room, participant=session.id, ifPresent=if_present,
                **params,
            )  # fmt: skip
        except Refused as refused:
            if refused.reason in AWAY:
                self.recovery.suspect(room, session.id)
            raise
        info = result["participantInfo"]
        session.role, session.awaited = info["role"], result["state"] == "awaited"
        session.seq = result["roomInfo"]["seq"]
        if not session.subject:
            session.roles = own_roles(result["roomInfo"]["settings"], tenant)
        previous = self.sessions.get(room, {}).get(session.id)
        if previous:
            self.end(previous, "session.ended", "replaced")
        self.index(session)
        self.save(session)
        try:
            self.rights.role(grant, room)  # it may have been revoked meanwhile
        except Refused:
            await self.remove(session)
            raise
        return result

    async def create(self, room: str, settings: dict[str, Any]) -> None:
        # After a crash the next process asks for all events of the room, from the first one on.
        self.store.saw(room, 0)
        self.store.commit()
        try:
            with passing("already-exists"):
                await self.ipc.call("room.create", room=room, settings=settings)
        except Refused as refused:
            if refused.reason not in AWAY and room not in self.people:
                self.store.forget_room(room)
            raise

    def reply_of(self, session: Session, result: dict[str, Any]) -> dict[str, Any]:
        """Returns the reply to a join, without the session's key."""
        info = methods.room_for(result["roomInfo"], session.room, session)
        name = f"{session.tenant}/{session.id}"
        return result | {
            "room": session.room, "roomInfo": info, "iceServers": ice.servers(self.config, name)
        }  # fmt: skip

    async def look(self, session: Session) -> dict[str, Any]:
        """Returns the reply to a resumed session; events are held until `release`."""
        self.check_ready()
        session.held, ids = [], {"room": session.sfud_room}
        try:
            room = await self.ipc.call("room.get", **ids)
            me = await self.ipc.call("participant.get", participant=session.id, **ids)
        except Refused as refused:
            self.release(session)
            if refused.reason in ("no-such-room", "no-such-participant"):
                self.forget(session)
                raise refuse("no-such-session", "this participant has left the room") from None
            raise
        session.role, session.awaited = me["role"], me["state"] == "awaited"
        session.seq = room["seq"]
        return self.reply_of(session, {
            "state": me["state"], "participant": session.id, "participantInfo": me,
            "roomInfo": room,
        })  # fmt: skip

    def release(self, session: Session) -> None:
        """Lets a session go on after the reply that shows it its room."""
        seq, held = session.seq, session.held or []
        session.release()
        for event, _ in held:
            if event.get("seq", 0) > seq:
                self.after(session.sfud_room, event)

    def check_ready(self) -> None:
        if not self.is_ready:
            raise refuse("sfud-not-running", "sfud cannot be reached")

    # Events of sfud.

    def on_event(self, event: dict) -> None:
        room = event.get("room", "")
        names = split(room)
        if names is None:
            return
        tenant, name = names
        kind, data = event["event"], event["data"]
        if kind == "resync":
            self.spawn(self.recovery.refresh(room))
            return
        self.note(room, event)
        # The same at each node that tells the event.
        mark = f"{room} {event['seq']} {event['time']}"
        id = hashlib.sha256(mark.encode()).hexdigest()[:32]
        self.webhooks.put(id, tenant, name, kind, event["time"], self.for_webhook(data, name))
        text = json.dumps(methods.event_for(event, name))
        for session in [*self.sessions.get(room, {}).values(), *self.joining.get(room, ())]:
            session.take(event, text)
        self.after(room, event)
        self.on_room_event(room, event)

    def for_webhook(self, data: dict, room: str) -> dict:
        if isinstance(data.get("roomInfo"), dict):
            return data | {"roomInfo": data["roomInfo"] | {"room": room}}
        return data

    def note(self, room: str, event: dict) -> None:
        """Notes who is here, and which rights have changed."""
        kind, data = event["event"], event["data"]
        participant = data.get("participant", "")
        if kind == "room.closed":
            return
        self.store.saw(room, event["seq"])
        if room not in self.people:
            self.people[room] = set()
            self.count_rooms(room)
        people = self.people[room]
        if kind in ("participant.joined", "participant.awaited"):
            people.add(participant)
            self.store.add_person(room, participant)
        elif kind == "participant.left" and data["reason"] != "replaced":
            people.discard(participant)
            self.store.remove_person(room, participant)
            if data["reason"] in ("dropped", "denied"):
                known = self.known(room, participant)
                self.rights.revoke(room, participant, event["time"], known)
        elif kind == "participant.roleChanged" and data["previous"] != data["current"]:
            tenant = self.config.tenants.get(room.partition(":")[0])
            self.rights.change_role(room, event, self.known(room, participant), tenant)

    def count_rooms(self, room: str) -> None:
        tenant = room.partition(":")[0]
        count = sum(it.startswith(tenant + ":") for it in self.people)
        self.metrics.rooms.labels(tenant).set(count)

    def known(self, room: str, participant: str) -> list[Session]:
        waiting = [it for it in self.joining.get(room, ()) if it.id == participant]
        session = self.sessions.get(room, {}).get(participant)
        return [*waiting, session] if session else waiting

    def after(self, room: str, event: dict) -> None:
        """Ends the sessions that an event has ended, after their clients have got it."""
        kind, data = event["event"], event["data"]
        if kind == "participant.left" and data["reason"] != "replaced":
            session = self.sessions.get(room, {}).get(data["participant"])
            if session and session.held is None:
                self.end(session, "session.ended", data["reason"])
        elif kind == "room.closed":
            self.close_room(room, data.get("reason", "closed"))

    def close_room(self, room: str, reason: str) -> None:
        for session in list(self.sessions.get(room, {}).values()):
            self.end(session, "session.ended", reason)
        self.people.pop(room, None)
        self.store.forget_room(room)
        self.count_rooms(room)

    # Its life.

    async def on_up(self) -> None:
        self.metrics.sfud_connected.set(1)
        await self.recovery.run()
        self.is_ready = True
        self.tell_status()

    def on_down(self) -> None:
        self.is_ready = False
        self.metrics.sfud_connected.set(0)
        self.tell_status()

    def tell_status(self) -> None:
        self.tell_all(json.dumps({"event": "gateway.status", "data": {"sfud": self.is_ready}}))

    async def run(self) -> None:
        """Keeps the connection to sfud and the store; ends by cancellation."""
        await self.webhooks.start()
        connection = asyncio.create_task(self.ipc.run())
        try:
            cleaned = 0.0
            while True:
                await asyncio.sleep(COMMIT_SECONDS)
                if time.monotonic() > cleaned + 600:
                    cleaned = time.monotonic()
                    life = self.config.token_seconds + self.config.leeway_seconds
                    self.store.forget_rights(time.time() - life)
                self.store.commit()
        finally:
            connection.cancel()
            await asyncio.gather(connection, return_exceptions=True)
            with contextlib.suppress(Exception):
                await self.webhooks.stop()
            self.store.commit()
