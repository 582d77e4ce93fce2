"""Sessions by room, the delivery of sfud's events to them, joining and leaving."""

import asyncio
import contextlib
import hmac
import math
import re
import secrets
from collections import deque
from typing import Any, Coroutine

from invitations import Invitations
from policy import for_browsers, view
from sfud_ipc import IPC, Refused, passing

RELOAD_SECONDS = 5  # a participant whose page went away stays so long: it may be loaded again
MOST_RETURNING = 1_000  # keys of those who are absent from a room and may return
MOST_KEPT = 500  # last events of a session, for a browser whose WebSocket breaks
MOST_MADE = 10_000  # rooms whose settings are remembered
AGAIN_SECONDS = 2  # until sfud is asked again to take a participant out
MOST_LEAVES = 30  # attempts of one participant, while sfud can be reached

UNKNOWN = {"timeout", "outcome-unknown"}  # the call may have been executed, or will be
AWAY = UNKNOWN | {"sfud-not-running", "wrong-contract", "registry-away", "node-unreachable"}


class Session:
    """A participant; it outlives a broken WebSocket by `GRACE_SECONDS`."""

    def __init__(self, room: str, name: str, role: str | None = None, mode: str | None = None):
        self.room, self.name = room, name
        self.role, self.mode = role or "participant", mode or "SEND_AND_RECV"
        self.is_named = False  # by the invitation
        self.awaited = False  # has knocked, and waits
        self.joined = math.inf  # the `seq` of its join; a `left` before is of a former stay
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:32] or "guest"
        self.id = f"{slug}-{secrets.token_hex(16)}"  # everybody in the room knows it
        self.key = secrets.token_urlsafe(24)  # only its own browser knows it
        self.tokens: set[str] = set()  # invitations that it and its former sessions came with
        self.browser: Any = None
        self.seq = 0  # the last event that the browser's copy of the room includes
        self.held: list[dict] | None = None  # events that wait until that copy is sent
        self.kept: deque[dict] = deque()  # events since `complete_since`, the last ones
        self.complete_since = 0
        self.expiry: asyncio.TimerHandle | None = None

    def hears(self, audience: Any) -> bool:
        """Whether an event's `audience` includes it: a list, all who are admitted, or all but."""
        if isinstance(audience, list):
            return self.id in audience
        return not self.awaited and (audience == "all" or self.id not in audience["except"])

    def take(self, event: dict) -> None:
        name, data = event["event"], event["data"]
        if data.get("participant") == self.id:
            match name:
                case "participant.roleChanged":
                    self.role = data["current"]
                case "participant.modeChanged":
                    self.mode = data["current"]
                case "participant.approved":
                    self.awaited = False
                case "participant.changed":
                    self.name = data["participantInfo"]["name"]
        if not self.hears(event["audience"]):
            return
        if self.held is not None:
            self.held.append(event)
        elif event.get("seq", self.seq + 1) > self.seq:
            self.keep(event)
            if self.browser:
                self.browser.send({"type": "event"} | event)

    def keep(self, event: dict) -> None:
        self.kept.append(event)
        while len(self.kept) > MOST_KEPT:
            self.complete_since = self.kept.popleft().get("seq", self.complete_since)

    def copied(self, seq: int) -> None:
        """Begins anew with a copy of the room that includes all events up to `seq`."""
        self.seq = self.complete_since = seq
        self.kept.clear()

    def missed(self, since: int | None) -> list[dict] | None:
        """Returns the events after `since`; `None` if some of them are not kept any more."""
        if since is None or self.held is not None or since < self.complete_since:
            return None
        return [it for it in self.kept if it.get("seq", 0) > since]

    def release(self) -> None:
        """Sends the browser the events since its copy of the room."""
        held, self.held = self.held or [], None
        for event in held:
            self.take(event)


class Hub:
    """All sessions, by room, and the connection to sfud."""

    def __init__(self, ipc_path: str, settings: dict, invitations: Invitations, is_open: bool):
        self.ipc = IPC(ipc_path, self.on_event, self.on_up, self.tell_status)
        self.settings, self.invitations = settings, invitations
        self.is_open = is_open  # anybody may join without an invitation, but not moderate
        self.forbidden: set[str] = set()  # messages that the command line does not allow
        self.streaming_hosts: frozenset[str] = frozenset()  # none: all that are public
        self.elsewhere: list[dict] = []  # servers at other nodes, which have the same rooms
        self.rooms: dict[str, dict[str, Session]] = {}
        self.browsers: set[Any] = set()
        # Rights that outlive a session, as long as the room exists.
        self.returning: dict[str, dict[str, Session]] = {}  # those who were disconnected, by key
        self.void: dict[str, set[str]] = {}  # invitations that no longer make anybody moderator
        self.made: dict[str, dict] = {}  # settings of the rooms made here, until they are closed
        # By room and id: who is to leave sfud, until it is certain that they have.
        self.leaving: dict[tuple[str, str], tuple[Session, asyncio.Task]] = {}
        self.entering: Session | None = None  # at sfud; until it answers, not in `rooms`
        self.joining = asyncio.Lock()  # one at a time, so that a key is good once
        self.tasks: set[asyncio.Task] = set()

    def sessions(self) -> list[Session]:
        return [session for room in self.rooms.values() for session in room.values()]

    def session(self, key: str) -> Session | None:
        """Returns the session whose browser was given this key."""
        same = (it for it in self.sessions() if hmac.compare_digest(it.key.encode(), key.encode()))
        return next(same, None)

    def on_event(self, event: dict) -> None:
        """Relays an event to those of its audience, and follows who is here and moderates."""
        event = for_browsers(event)
        name, room, data = event["event"], event.get("room", ""), event["data"]
        sessions = self.rooms.get(room, {})
        for session in list(sessions.values()):
            session.take(event)
        session = sessions.get(data.get("participant", ""))
        if name == "participant.roleChanged":
            for former in self.returning.get(room, {}).values():
                if former.id == data["participant"]:  # still there, while its page is loaded again
                    former.role = data["current"]
        match name:
            case "resync":  # sfud no longer has all that this connection missed
                for session in sessions.values():
                    self.spawn(self.refresh(session))
            case "participant.approved" if session:
                self.spawn(self.refresh(session))
            case "participant.roleChanged" if data["previous"] == "moderator" != data["current"]:
                self.demote(room, data["participant"])
            case "participant.roleChanged" if session and session.role == "moderator":
                self.spawn(self.refresh(session))  # waiting participants and raised hands
            case "participant.moveWanted" if session and data["reason"] == "node-lost":
                # With "drain" the connection goes on, and the page alone makes another one.
                self.spawn(self.stay(session))
            case "participant.left" | "participant.denied" if data.get("reason") != "replaced":
                if name == "participant.denied" or data["reason"] == "dropped":
                    self.demote(room, data["participant"])
                self.note_left(event, session)
            case "room.closed":
                for session in list(sessions.values()):
                    self.detach(session)
                self.returning.pop(room, None)
                self.void.pop(room, None)
                self.made.pop(room, None)

    def note_left(self, event: dict, session: Session | None) -> None:
        """Follows a participant's leaving, unless it has rejoined before it was told of."""
        place, seq = (event["room"], event["data"]["participant"]), event.get("seq", math.inf)
        if place in self.leaving and seq > self.leaving[place][0].joined:
            self.stay_here(*place)
        if session and seq > session.joined:
            self.detach(session, comes_back=event["data"].get("reason") == "disconnected")

    async def stay(self, session: Session) -> None:
        """Lets a participant connect at this server's own node again, as another one has the room.

        sfud takes the calls about a room in order, so the browser's next offer comes after it.
        """
        with contextlib.suppress(Refused):  # it connects at the room's new home
            await self.ipc.call(
                "participant.join", room=session.room, participant=session.id, snapshot=False
            )
            place = (session.room, session.id)
            if place not in [(other.room, other.id) for other in self.everybody()]:
                # It has left meanwhile, and the call has entered somebody whom nobody knows.
                await self.leave(session)

    def demote(self, room: str, participant: str) -> None:
        """Revokes the right of a participant's invitations, and of the keys derived from them."""
        # The connection may have broken before sfud's event came.
        returning = self.returning.setdefault(room, {})
        known = [*self.rooms.get(room, {}).values(), *returning.values()]
        tokens = {token for it in known if it.id == participant for token in it.tokens}
        self.void.setdefault(room, set()).update(tokens)
        for key, former in list(returning.items()):
            moderated = former.role == "moderator"
            if former.id == participant or (moderated and former.tokens & tokens):
                del returning[key]

    def spawn(self, work: Coroutine) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)  # otherwise nobody would hold it
        task.add_done_callback(self.tasks.discard)

    async def on_up(self) -> None:
        self.tell_status()
        for session in self.sessions():
            await self.refresh(session)

    async def refresh(self, session: Session) -> None:
        """Sends a browser the whole room again; one not in it (another sfud!) has to join."""
        if session.held is not None:
            return  # it is being sent already
        try:
            message = {"type": "room", "room": await self.look(session)}
        except Refused as refused:
            if refused.reason not in ("no-such-room", "no-such-participant"):
                raise
            self.forget(session, comes_back=True)
            message = {"type": "gone", "reason": "sfud-restarted"}
        if session.browser:
            session.browser.send(message)
        session.release()

    async def look(self, session: Session) -> dict:
        """Returns what a session may see of its room; later events wait until `release`."""
        session.held, moderated = [], session.role == "moderator"
        ids = {"room": session.room}
        try:
            room = await self.ipc.call("room.get", **ids)
            people = [it async for it in self.ipc.pages("participant.list", "participants", **ids)]
            room["streams"] = [it async for it in self.ipc.pages("stream.list", "streams", **ids)]
            me = await self.ipc.call("participant.get", participant=session.id, **ids)
        except Refused:
            session.release()
            raise
        room.pop("next", None)  # the lists are complete
        for key, state in (("participants", "joined"), ("awaited", "awaited")):
            room[key] = [it for it in people if it["state"] == state]
        session.role, session.mode = me["role"], me["mode"]
        session.awaited = me["state"] == "awaited"
        session.copied(room["seq"])
        if moderated and session.role != "moderator":  # its event was missed
            self.demote(session.room, session.id)
        return view(room, session)

    def tell_status(self) -> None:
        for browser in self.browsers:
            browser.send(self.status())

    def status(self) -> dict:
        """Reports whether sfud can be reached, and whether an invitation is required."""
        status = {"sfud": self.ipc.connected.is_set(), "invited": not self.is_open}
        return {"type": "status"} | status | {"elsewhere": self.elsewhere}

    async def join(self, session: Session, wish: dict, previous: Session | None = None) -> None:
        """Admits a session, in place of `previous`, which the same browser had.

        `wish` may have the `key` of an earlier session, an invitation as `token`, and `settings` of
        the room, if a moderator makes it.
        """
        key, token = wish.get("key", ""), wish.get("token")
        async with self.joining:
            if previous is None and (broken := self.session(key)) and broken.browser is None:
                previous = broken
            try:
                former, offered = self.admit(session, wish, previous)
            finally:
                if previous and previous.id == session.id:
                    self.go_away(previous)
                elif previous:  # before its successor joins, because the room may be full
                    await self.remove(previous, comes_back=previous.key == key)
            await self.enter(session, wish.get("settings", {}), returns=former is not None)
            for other, absent in list(self.returning.get(session.room, {}).items()):
                if other == key or (offered == "moderator" and token in absent.tokens):
                    del self.returning[session.room][other]

    def admit(
        self, session: Session, wish: dict, previous: Session | None
    ) -> tuple[Session | None, str | None]:
        """Sets a session's role by the key of its former session and by its invitation.

        Returns that session, and the role that the invitation gives. Raises `Refused` where neither
        admits it.
        """
        key, token = wish.get("key", ""), wish.get("token")
        former = self.returning.get(session.room, {}).get(key)
        is_here = former is not None and (session.room, former.id) in self.leaving
        held = former.role if former and (is_here or former.role == "moderator") else None
        if previous and previous.room == session.room and previous.key == key:
            former, held, session.name = previous, previous.role, previous.name
        offered, name = None, former.name if former and former.is_named else None
        try:
            if token:
                offered, given = self.invitations.read(token, session.room)
                name = given or name
        except Refused:
            if held is None:
                raise
        if not (held or offered or self.is_open):
            raise Refused("invitation-needed", "this server lets in who has an invitation")
        session.tokens = (former.tokens if former else set()) | ({token} if offered else set())
        session.name, session.is_named = name or session.name, name is not None
        if offered == "moderator" and token in self.void.get(session.room, ()):
            offered = "participant"
        if former:  # sfud knows by the id who is muted, and to whom a locked room opens
            session.id = former.id
        if "moderator" in (held, offered):
            session.role, session.mode = "moderator", "SEND_AND_RECV"
        elif "viewer" in (held, offered):
            session.role = "viewer"
        return former, offered

    async def enter(self, session: Session, settings: dict, returns: bool = False) -> None:
        """Joins at sfud; a moderator, or anybody on an open server, makes the room. So does who
        returns, with the settings that it had: sfud may have lost it."""
        room, moderates = session.room, session.role == "moderator"
        made = self.made.get(room) if returns else None
        if moderates or self.is_open or made is not None:
            settings = (self.settings if made is None else made) | (settings if moderates else {})
            with passing("already-exists"):
                await self.ipc.call("room.create", room=room, settings=settings)
                self.remember(room, settings)
        former = self.stay_here(room, session.id)
        # A call that cannot be sent has the same reason as one whose connection is lost.
        unknown = UNKNOWN | ({"sfud-not-running"} if self.ipc.connected.is_set() else set())
        self.entering = session
        try:
            joined = await self.ipc.call(
                "participant.join", room=room, participant=session.id, name=session.name,
                role=session.role, mode=session.mode,
                ifPresent="takeover" if former else "refuse", snapshot=False,
            )  # fmt: skip
            session.joined = joined["roomInfo"]["seq"]
            self.rooms.setdefault(room, {})[session.id] = session
            if former and session.role == "moderator" != former.role:  # by another invitation
                await self.ipc.call(
                    "role.change", room=room, participant=session.id, role=session.role, force=True
                )
        except Refused as refused:
            self.forget(session)
            if former or refused.reason in unknown:
                absent = former or session
                absent.joined = math.inf  # the join may take effect behind any `left`
                self.leave_later(absent, RELOAD_SECONDS)
            raise
        finally:
            self.entering = None

    def remember(self, room: str, settings: dict) -> None:
        self.made.pop(room, None)  # the latest is the last
        self.made[room] = settings
        while len(self.made) > MOST_MADE:
            del self.made[next(iter(self.made))]

    async def remove(self, session: Session, comes_back: bool = False) -> None:
        """Takes a session's participant out of its room."""
        self.forget(session, comes_back)
        await self.leave(session)

    async def leave(self, session: Session) -> None:
        """Takes a participant out now; returns after one attempt, and others may follow."""
        self.leave_later(session, AGAIN_SECONDS)
        place = (session.room, session.id)
        waiting = self.leaving[place]
        if await self.has_left(session) and self.leaving.get(place) is waiting:
            self.stay_here(*place)

    async def has_left(self, session: Session) -> bool:
        """Asks sfud to take a participant out; returns whether it is out for certain."""
        try:
            await self.ipc.call("participant.leave", room=session.room, participant=session.id)
        except Refused as refused:
            return refused.reason not in AWAY  # else it was out already
        return True

    def everybody(self) -> list[Session]:
        """Returns all whose participants are in sfud, or may be."""
        leaving = [session for session, _ in self.leaving.values()]
        return [*self.sessions(), *leaving, *([self.entering] if self.entering else [])]

    def go_away(self, session: Session) -> None:
        """Ends a session whose participant stays for a while: a page that is loaded again takes it
        over, with its role and its mutes, in a locked room too."""
        if self.rooms.get(session.room, {}).get(session.id) is session:
            self.forget(session, comes_back=True)
            self.leave_later(session, RELOAD_SECONDS)

    def leave_later(self, session: Session, seconds: float) -> None:
        """Takes a participant out after a while, unless `stay_here` is called before."""
        self.stay_here(session.room, session.id)
        task = asyncio.create_task(self.leave_at_last(session, seconds))
        self.leaving[session.room, session.id] = session, task

    async def leave_at_last(self, session: Session, seconds: float) -> None:
        """Tries until sfud has decided: a participant of whom nobody knows would stay for ever."""
        place, waiting = (session.room, session.id), (session, asyncio.current_task())
        for _ in range(MOST_LEAVES):
            await asyncio.sleep(seconds)
            await self.ipc.connected.wait()
            has_left = await self.has_left(session)
            if self.leaving.get(place) != waiting:
                return  # it has come back; `wait_for` may swallow a cancellation
            if has_left:
                break
            seconds = AGAIN_SECONDS
        del self.leaving[place]

    def stay_here(self, room: str, participant: str) -> Session | None:
        """Keeps a participant that is to leave; returns its former session.

        Where `participant.leave` is sent already, sfud takes what is sent later after it.
        """
        if (left := self.leaving.pop((room, participant), None)) is None:
            return None
        session, task = left
        task.cancel()
        return session

    def detach(self, session: Session, comes_back: bool = False) -> None:
        """Records that a participant has left the room; the browser may join again."""
        self.forget(session, comes_back)
        if session.browser:
            session.browser.session = None

    def forget(self, session: Session, comes_back: bool = False) -> None:
        """Ends a session; its key allows a return under the same id if its connection broke."""
        here = self.rooms.get(session.room, {})
        if here.get(session.id) is not session:
            return  # it has ended already
        del here[session.id]
        if not here:
            del self.rooms[session.room]
        if session.expiry:
            session.expiry.cancel()
        if comes_back:
            returning = self.returning.setdefault(session.room, {})
            returning[session.key] = session
            # Moderators' keys are kept longest.
            oldest = sorted(returning, key=lambda it: returning[it].role == "moderator")
            for key in oldest[:-MOST_RETURNING]:
                del returning[key]
