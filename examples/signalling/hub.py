"""Sessions by room, the delivery of sfud's events to them, joining and leaving."""

import asyncio
import logging
import re
import secrets
from typing import Any, Coroutine, Protocol

from invitations import Invitations
from moderation import for_browsers
from sfud_ipc import IPC, Refused

log = logging.getLogger("signalling")

MOST_RETURNING = 1_000  # keys of a room's absent moderators who may return

# The callers of these have their reply, so sfud does not notify them. The pages rely on events
# alone, so every moderator is notified here, and so is the participant concerned.
TOLD = {
    "participant.approved", "participant.denied", "participant.left",
    "participant.hardMuted", "participant.hardUnmuted",
    "floor.requested", "floor.cancelled", "floor.finished",
    "floor.granted", "floor.denied", "floor.released",
}  # fmt: skip


def subject(event: dict) -> str | None:
    """Returns the participant that an event is about."""
    participant = event["data"].get("participant")
    return participant.get("participant") if isinstance(participant, dict) else participant


class Receiver(Protocol):
    """Destination of a session's messages: its browser."""

    session: "Session | None"

    def send(self, message: dict) -> None: ...


class Session:
    """A participant; it outlives a broken WebSocket by `GRACE_SECONDS`."""

    def __init__(self, room: str, name: str, role: str | None = None, mode: str | None = None):
        self.room, self.name = room, name
        self.role, self.mode = role or "participant", mode or "SEND_AND_RECV"
        self.awaited = False  # has knocked, and waits
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:32] or "guest"
        self.id = f"{slug}-{secrets.token_hex(16)}"  # everybody in the room knows it
        self.key = secrets.token_urlsafe(24)  # only its own browser knows it
        self.tokens: set[str] = set()  # invitations that it and its former sessions came with
        self.browser: Receiver | None = None
        self.subscriptions: dict[str, Any] = {}  # stream → subscription
        self.seq = 0  # the last event that the browser's copy of the room includes
        self.held: list[dict] | None = None  # events that wait until that copy is sent
        self.expiry: asyncio.TimerHandle | None = None

    def hears(self, event: dict) -> bool:
        if event["event"] == "room.closed":
            return True
        if event["to"] == "all":
            return not self.awaited
        if self.id in event["to"]:
            return True
        return event["event"] in TOLD and (self.role == "moderator" or subject(event) == self.id)

    def take(self, event: dict) -> None:
        name, data = event["event"], event["data"]
        if name == "stream.destroyed":
            self.subscriptions.pop(data.get("stream"), None)
        if name == "subscription.connected" and self.id in event["to"]:
            # Slots that follow the talkers make subscriptions without a request.
            self.subscriptions[data["stream"]] = data["subscription"]
        if subject(event) == self.id:
            self.role = data["role"] if name == "participant.roleChanged" else self.role
            self.mode = data["mode"] if name == "participant.modeChanged" else self.mode
            self.awaited = self.awaited and name != "participant.approved"
        if self.mode == "SIGNALLING_ONLY":
            self.subscriptions.clear()
        if not self.hears(event):
            return
        if self.held is not None:
            self.held.append(event)
        elif event.get("seq", self.seq + 1) > self.seq and self.browser:
            self.browser.send({"type": "event"} | event)

    def know(self, room: dict) -> None:
        """Updates the session from the room: its participant's id, role and state."""
        self.awaited = any(it["participant"] == self.id for it in room["awaited"])
        for it in room["participants"]:
            if it["participant"] == self.id:
                self.role, self.mode = it["role"], it["mode"]

    def view(self, room: dict) -> dict:
        """Returns what this session may see of the room: moderators all, waiting participants
        nobody."""
        if self.role == "moderator":
            return room
        hidden: dict[str, Any] = {"awaited": []}
        if self.awaited:
            hidden |= {key: [] for key in ("participants", "streams", "talkers", "pins")}
        for hands in ("raisedHands", "approvedHands"):
            hidden[hands] = [it for it in room[hands] if it == self.id]
        return room | hidden

    def picture(self, room: dict) -> None:
        """Records that the browser is sent `room`, and sends the events since."""
        held, self.held, self.seq = self.held or [], None, room.get("seq", 0)
        for event in held:
            self.take(event)


class Hub:
    """All sessions, by room, and the connection to sfud."""

    def __init__(
        self, ipc_path: str, settings: dict, invitations: Invitations, is_open: bool = False
    ):
        self.ipc = IPC(ipc_path, self.on_event, self.on_up, self.on_down)
        self.settings = settings
        self.invitations = invitations
        self.is_open = is_open  # anybody may join without an invitation, but not moderate
        self.forbidden: set[str] = set()  # messages that the command line does not allow
        self.streaming_hosts: frozenset[str] = frozenset()  # none: all that are public
        self.rooms: dict[str, dict[str, Session]] = {}
        self.browsers: set[Receiver] = set()
        # Rights that outlive a session, as long as the room exists.
        self.returning: dict[str, dict[str, Session]] = {}  # disconnected moderators, by key
        self.void: dict[str, set[str]] = {}  # invitations that no longer make anybody moderator
        # Joins and leaves are handled one by one, so that no room is closed under a newcomer.
        self.membership = asyncio.Lock()
        self.tasks: set[asyncio.Task] = set()

    def sessions(self) -> list[Session]:
        return [session for room in self.rooms.values() for session in room.values()]

    def session(self, key: str) -> Session | None:
        """Returns the session whose browser was given this key."""
        matches = (
            it for it in self.sessions() if secrets.compare_digest(it.key.encode(), key.encode())
        )
        return next(matches, None)

    def on_event(self, event: dict) -> None:
        event = for_browsers(event)
        name, room, data = event["event"], event.get("room", ""), event["data"]
        if name == "room.closed":
            self.end_standing(room)
        if fallen := self.fallen(event):
            self.demote(fallen)
        if room not in self.rooms:
            return
        if name == "resync":  # sfud no longer has all events that this connection missed
            self.spawn(self.refresh(room))
            return
        for session in list(self.rooms[room].values()):
            session.take(event)
        session = self.rooms[room].get(subject(event) or "")
        match name:
            case "participant.connection" if data["connection"] == "disconnected":
                if session is None or session.browser is None:
                    self.spawn(self.remove(room, data["participant"], comes_back=True))
            case "participant.approved" if session:
                self.spawn(self.refresh(room, session))
            case "participant.roleChanged" if session and session.role == "moderator":
                self.spawn(self.refresh(room, session))  # waiting participants and raised hands
            case "participant.left" | "participant.denied" if session:
                self.detach(session)
            case "room.closed":
                for session in list(self.rooms[room].values()):
                    self.detach(session)

    def fallen(self, event: dict) -> Session | None:
        """Returns the session that an event removes, or that it stops from moderating."""
        room, data = event.get("room", ""), event["data"]
        here = self.rooms.get(room, {}).get(subject(event) or "")
        match event["event"]:
            case "participant.denied":
                pass
            case "participant.left" if here or data["reason"] != "left":
                pass  # dropped: one who leaves by itself no longer has a session
            case "participant.roleChanged" if data["from"] == "moderator" != data["role"]:
                pass
            case _:
                return None
        # The connection may have broken before sfud's event came.
        returning = self.returning.get(room, {}).values()
        return here or next((it for it in returning if it.id == subject(event)), None)

    def demote(self, session: Session) -> None:
        """Revokes the right of a session's invitations, and of the keys derived from them."""
        self.void.setdefault(session.room, set()).update(session.tokens)
        returning = self.returning.get(session.room, {})
        for key, former in list(returning.items()):
            if former is session or former.tokens & session.tokens:
                del returning[key]

    def spawn(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)  # otherwise nobody would hold it
        task.add_done_callback(self.tasks.discard)

    async def on_up(self) -> None:
        self.tell_all(self.status())
        for room in list(self.rooms):
            await self.refresh(room)

    async def refresh(self, name: str, one: Session | None = None) -> None:
        """Sends everybody (or one) the whole room again; a session not in it (another sfud!) has to
        join."""
        sessions = [
            it for it in self.rooms.get(name, {}).values()
            if it.held is None and one in (None, it)
        ]  # fmt: skip
        for session in sessions:
            session.held = []  # earlier events are included in the picture, later ones follow it
        try:
            room = await self.ipc.call("room.get", room=name)
        except Refused as refused:
            for session in sessions:
                session.held = None
            if refused.reason != "no-such-room":
                raise
            room = {"participants": [], "awaited": []}
        present = {it["participant"] for it in room["participants"] + room["awaited"]}
        for session in sessions:
            if session.id in present:
                moderated = session.role == "moderator"
                session.know(room)
                if moderated and session.role != "moderator":  # its event was missed
                    self.demote(session)
                if session.browser:
                    session.browser.send({"type": "room", "room": session.view(room)})
                session.picture(room)
            else:
                self.forget(session, comes_back=True)
                if session.browser:
                    session.browser.send({"type": "gone", "reason": "sfud-restarted"})

    def on_down(self) -> None:
        self.tell_all(self.status())

    def status(self) -> dict:
        """Reports whether sfud can be reached, and whether an invitation is required."""
        up = self.ipc.connected.is_set()
        return {"type": "status", "sfud": up, "invited": not self.is_open}

    def tell_all(self, message: dict) -> None:
        for browser in self.browsers:
            browser.send(message)

    async def join(
        self, session: Session, settings: dict, key: str = "", token: str | None = None,
        previous: Session | None = None,
    ) -> dict:  # fmt: skip
        """Admits a session, in place of `previous`, which the same browser had.

        `key` is that of an earlier session, `token` an invitation; `settings` are those of a room
        that a moderator makes.
        """
        async with self.membership:
            broken = self.session(key)
            if previous is None and broken and broken.browser is None:
                previous = broken
            try:
                offered = self.admit(session, key, token, previous)
                if session.id in self.rooms.get(session.room, {}):
                    raise Refused("already-exists", "somebody of this id is in the room")
            finally:
                if previous:  # before its successor joins, because the room may be full
                    self.forget(previous, comes_back=previous.key == key)
                    await self.leave(previous.room, previous.id)
            try:
                joined = await self.enter(session, settings)
            finally:
                if previous:
                    await self.close_if_empty(previous.room)
            returning = self.returning.get(session.room, {})
            for other, former in list(returning.items()):
                if other == key or (offered == "moderator" and token in former.tokens):
                    del returning[other]
            return joined["room"]

    def admit(
        self, session: Session, key: str, token: str | None, previous: Session | None
    ) -> str | None:
        """Sets a session's role by the key of its former session and by its invitation.

        Returns the role that the invitation gives. Raises `Refused` where neither admits it.
        """
        former = self.returning.get(session.room, {}).get(key)
        held = "moderator" if former else None
        if previous and previous.room == session.room and previous.key == key:
            former, held, session.name = previous, previous.role, previous.name
        invitation = None
        try:
            invitation = self.invitations.read(token, session.room) if token else None
        except Refused:
            if held is None:
                raise
        if not (held or invitation or self.is_open):
            raise Refused("invitation-needed", "this server lets in who has an invitation")
        offered = invitation.role if invitation else None
        if offered == "moderator" and token in self.void.get(session.room, ()):
            offered = "participant"
        if "moderator" in (held, offered):
            session.role, session.mode = "moderator", "SEND_AND_RECV"
        elif "viewer" in (held, offered):
            session.role = "viewer"
        session.name = (invitation and invitation.name) or session.name
        session.tokens = (former.tokens if former else set()) | ({token} if invitation else set())
        return offered

    async def enter(self, session: Session, settings: dict) -> dict:
        """Joins at sfud; a moderator, or anybody on an open server, makes the room."""
        moderates = session.role == "moderator"
        created = (moderates or self.is_open) and await self.create(
            session.room, settings if moderates else {}
        )
        session.held = []
        self.rooms.setdefault(session.room, {})[session.id] = session
        try:
            return await self.ipc.call(
                "participant.join",
                room=session.room, participant=session.id, name=session.name,
                role=session.role, mode=session.mode,
            )  # fmt: skip
        except Refused:
            self.forget(session)
            if created:
                await self.close_if_empty(session.room)
            raise

    async def create(self, room: str, settings: dict) -> bool:
        """Makes a room; returns false if it exists."""
        try:
            await self.ipc.call("room.create", room=room, settings=self.settings | settings)
        except Refused as refused:
            if refused.reason != "already-exists":
                raise
            return False
        return True

    async def remove(self, room: str, participant: str, comes_back: bool = False) -> None:
        """Removes a participant, and closes the room after the last one."""
        if session := self.rooms.get(room, {}).get(participant):
            self.forget(session, comes_back)
        async with self.membership:
            await self.leave(room, participant)
            await self.close_if_empty(room)

    async def leave(self, room: str, participant: str) -> None:
        try:
            await self.ipc.call("participant.leave", room=room, participant=participant)
        except Refused as refused:
            log.info("%s leaves %s: %s", participant, room, refused.message)

    async def close_if_empty(self, room: str) -> None:
        try:
            if not (await self.ipc.call("room.get", room=room))["participants"]:
                await self.ipc.call("room.close", room=room)
                self.end_standing(room)
        except Refused as refused:
            log.debug("%s stays: %s", room, refused.message)

    def end_standing(self, room: str) -> None:
        """Removes the rights of keys and invitations when the room has ended."""
        self.returning.pop(room, None)
        self.void.pop(room, None)

    def detach(self, session: Session) -> None:
        """Records that its participant has left the room; the browser may join again."""
        self.forget(session)
        if session.browser:
            session.browser.session = None

    def forget(self, session: Session, comes_back: bool = False) -> None:
        """Ends a session; a moderator's key allows a return if its connection broke."""
        if comes_back and session.role == "moderator":
            returning = self.returning.setdefault(session.room, {})
            returning[session.key] = session
            for key in list(returning)[:-MOST_RETURNING]:
                del returning[key]
        if session.expiry:
            session.expiry.cancel()
        here = self.rooms.get(session.room, {})
        here.pop(session.id, None)
        if not here:
            self.rooms.pop(session.room, None)
