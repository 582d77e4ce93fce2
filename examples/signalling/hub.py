"""Who is here: sessions by room, sfud's events on their way to them, joining and leaving."""

import asyncio
import logging
import re
import secrets
from typing import Any, Coroutine, Protocol

from sfud_ipc import IPC, Refused

log = logging.getLogger("signalling")


class Receiver(Protocol):
    """Where a session's messages go: its browser."""

    session: "Session | None"

    def send(self, message: dict) -> None: ...


class Session:
    """One participant; it outlives a broken WebSocket by `GRACE_SECONDS`."""

    def __init__(self, room: str, name: str):
        self.room, self.name = room, name
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:32] or "guest"
        self.id = f"{slug}-{secrets.token_hex(3)}"
        self.key = secrets.token_urlsafe(24)  # only its own browser knows it
        self.browser: Receiver | None = None
        self.subscriptions: dict[str, Any] = {}  # stream → subscription
        self.seq = 0  # what the browser's picture of the room already holds
        self.held: list[dict] | None = None  # events that wait for that picture to be sent
        self.expiry: asyncio.TimerHandle | None = None

    def take(self, event: dict) -> None:
        if event["event"] == "stream.destroyed":
            self.subscriptions.pop(event["data"].get("stream"), None)
        if event["to"] != "all" and self.id not in event["to"]:
            return
        if self.held is not None:
            self.held.append(event)
        elif event.get("seq", self.seq + 1) > self.seq and self.browser:
            self.browser.send({"type": "event"} | event)

    def picture(self, room: dict) -> None:
        """Says that the browser is sent `room`, and what has happened since."""
        held, self.held, self.seq = self.held or [], None, room.get("seq", 0)
        for event in held:
            self.take(event)


class Hub:
    """Everybody who is here, by room, and the way to sfud."""

    def __init__(self, ipc_path: str, settings: dict):
        self.ipc = IPC(ipc_path, self.on_event, self.on_up, self.on_down)
        self.settings = settings
        self.rooms: dict[str, dict[str, Session]] = {}
        self.browsers: set[Receiver] = set()
        # Joins and leaves are taken one by one, so that no room is closed under a newcomer.
        self.membership = asyncio.Lock()
        self.tasks: set[asyncio.Task] = set()

    def sessions(self) -> list[Session]:
        return [session for room in self.rooms.values() for session in room.values()]

    def session(self, key: str) -> Session | None:
        """The session whose browser was given this key."""
        matches = (
            it for it in self.sessions() if secrets.compare_digest(it.key.encode(), key.encode())
        )
        return next(matches, None)

    def on_event(self, event: dict) -> None:
        name, room, data = event["event"], event.get("room", ""), event["data"]
        if room not in self.rooms:
            return
        if name == "resync":  # sfud no longer holds all that this connection missed
            self.spawn(self.refresh(room))
            return
        for session in list(self.rooms[room].values()):
            session.take(event)
        if name == "participant.connection" and data["connection"] == "disconnected":
            session = self.rooms[room].get(data["participant"])
            if session is None or session.browser is None:
                self.spawn(self.remove(room, data["participant"]))

    def spawn(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)  # or nobody would hold it
        task.add_done_callback(self.tasks.discard)

    async def on_up(self) -> None:
        self.tell_all({"type": "status", "sfud": True})
        for room in list(self.rooms):
            await self.refresh(room)

    async def refresh(self, name: str) -> None:
        """Shows everybody the room anew; who is not in it (another sfud!) has to join again."""
        sessions = [it for it in self.rooms.get(name, {}).values() if it.held is None]
        for session in sessions:
            session.held = []  # what comes before the picture is in it, the rest comes after
        try:
            room = await self.ipc.call("room.get", room=name)
        except Refused as refused:
            for session in sessions:
                session.held = None
            if refused.reason != "no-such-room":
                raise
            room = {"participants": []}
        present = {participant["participant"] for participant in room["participants"]}
        for session in sessions:
            if session.id in present:
                if session.browser:
                    session.browser.send({"type": "room", "room": room})
                session.picture(room)
            else:
                self.forget(session)
                if session.browser:
                    session.browser.send({"type": "gone", "reason": "sfud-restarted"})

    def on_down(self) -> None:
        self.tell_all({"type": "status", "sfud": False})

    def tell_all(self, message: dict) -> None:
        for browser in self.browsers:
            browser.send(message)

    async def join(self, session: Session) -> dict:
        async with self.membership:
            try:
                await self.ipc.call("room.create", room=session.room, **self.settings)
            except Refused as refused:
                if refused.reason != "already-exists":
                    raise
            session.held = []
            self.rooms.setdefault(session.room, {})[session.id] = session
            try:
                joined = await self.ipc.call(
                    "participant.join",
                    room=session.room, participant=session.id, name=session.name,
                )  # fmt: skip
            except Refused:
                self.forget(session)
                raise
            return joined["room"]

    async def remove(self, room: str, participant: str) -> None:
        """Takes a participant out, and closes the room after the last."""
        if session := self.rooms.get(room, {}).get(participant):
            self.forget(session)
        async with self.membership:
            try:
                await self.ipc.call("participant.leave", room=room, participant=participant)
                if not (await self.ipc.call("room.get", room=room))["participants"]:
                    await self.ipc.call("room.close", room=room)
            except Refused as refused:
                log.info("%s leaves %s: %s", participant, room, refused.message)

    def forget(self, session: Session) -> None:
        if session.expiry:
            session.expiry.cancel()
        here = self.rooms.get(session.room, {})
        here.pop(session.id, None)
        if not here:
            self.rooms.pop(session.room, None)
