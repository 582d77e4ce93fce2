"""A browser: its WebSocket, its requests, and the resulting calls to sfud."""

import asyncio
import contextlib
import json
import logging
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

import destinations
from hub import Hub, Session
from messages import OWN, checked, id_of, params
from policy import refusal, shown
from sfud_ipc import Refused

log = logging.getLogger("signalling")

LONGEST_QUEUE = 1_000  # messages that a slow browser may lag behind
LARGEST_QUEUE = 4 << 20  # bytes of them
JOIN_SECONDS = 600  # an open WebSocket must join within this time
GRACE_SECONDS = 30  # a participant whose WebSocket broke may come back within this time


class Browser:
    """One WebSocket, and the session that it belongs to."""

    def __init__(
        self, hub: Hub, socket: web.WebSocketResponse,
        transport: asyncio.Transport | None = None,
    ):
        self.hub, self.socket, self.transport = hub, socket, transport
        self.session: Session | None = None
        self.queue: asyncio.Queue[str] = asyncio.Queue(LONGEST_QUEUE)
        self.queued = 0  # bytes, with those of the message that is being sent
        self.is_cut = False

    def send(self, message: dict) -> None:
        """Sends without waiting: a browser that lags too far loses the WebSocket, and resumes with
        a new one."""
        if self.is_cut:
            return
        text = json.dumps(message)  # ASCII
        if self.queue.full() or (self.queued and self.queued + len(text) > LARGEST_QUEUE):
            self.cut()
            return
        self.queued += len(text)
        self.queue.put_nowait(text)

    def cut(self) -> None:
        """Ends the connection at once: a close frame would wait for a browser that does not
        read."""
        self.is_cut = True
        while not self.queue.empty():
            self.queue.get_nowait()
        if self.transport:
            self.transport.abort()

    async def write(self) -> None:
        with contextlib.suppress(ConnectionError):  # the reader sees it too
            while True:
                text = await self.queue.get()
                await self.socket.send_str(text)
                self.queued -= len(text)

    async def run(self) -> None:
        writer = asyncio.create_task(self.write())
        self.hub.browsers.add(self)
        self.send(self.hub.status())
        code: int | None = None  # with which the browser closes
        try:
            while True:
                frame = await self.socket.receive(None if self.session else JOIN_SECONDS)
                if frame.type != WSMsgType.TEXT:
                    code = frame.data if frame.type == WSMsgType.CLOSE else None
                    return
                await self.answer(frame.data)
        except asyncio.TimeoutError:
            log.info("a browser did not join in time")
        finally:
            self.hub.browsers.discard(self)
            writer.cancel()
            await self.end(code)

    async def end(self, code: int | None = None) -> None:
        session, self.session = self.session, None
        if session is None or session.browser is not self:
            return
        session.browser = None
        if code == WSCloseCode.OK:
            await self.hub.remove(session, comes_back=True)
        elif code == WSCloseCode.GOING_AWAY:  # a page that is loaded again, or a closed tab
            self.hub.go_away(session)
        else:  # a broken network: its media may well be alive
            session.expiry = asyncio.get_running_loop().call_later(
                GRACE_SECONDS,
                lambda: self.hub.spawn(self.hub.remove(session, comes_back=True)),
            )

    async def answer(self, data: str) -> None:
        reply: dict[str, Any] = {"type": "reply"}
        try:
            if (number := id_of(data)) is not None:
                reply["id"] = number
            message = checked(data)
            kind = message["type"]
            if kind in ("join", "resume"):
                reply["result"] = await getattr(self, "on_" + kind)(message)
            elif self.session is None:
                raise Refused("not-joined", "join first")
            elif kind in OWN:
                reply["result"] = await getattr(self, "on_" + kind)(self.session)
            else:
                reply["result"] = await self.relay(message, self.session)
        except Refused as refused:
            reply["error"] = refused.shown()
        self.send(reply)

    async def relay(self, message: dict, me: Session) -> dict:
        """Makes the call that a message asks for; sfud decides whether `me` may make it."""
        method = message["type"]
        if method in self.hub.forbidden:
            raise Refused("not-permitted", f"this server does without {method}")
        if method == "participant.update" and me.is_named:
            raise Refused("not-permitted", "your name is that of your invitation")
        if method == "streaming.start":
            await destinations.check(message["url"], self.hub.streaming_hosts)
        try:
            result = await self.hub.ipc.call(method, **params(message, me.room, me.id))
        except Refused as refused:
            raise refusal(method, refused) from None
        return shown(method, result)

    async def on_join(self, message: dict) -> dict:
        session = Session(*(message.get(key) for key in ("room", "name", "role", "mode")))
        previous, self.session = self.session, None
        if previous:
            previous.browser = None
        await self.hub.join(session, message, previous)
        try:
            return await self.attach(session)
        except Refused:
            await self.hub.remove(session)
            raise

    async def on_resume(self, message: dict) -> dict:
        if (session := self.hub.session(message["key"])) is None:
            raise Refused("no-such-session", "this participant is not in the room any more")
        return await self.attach(session, message.get("since"))

    async def attach(self, session: Session, since: int | None = None) -> dict:
        """Makes the session this browser's; returns the reply, which later events follow.

        The reply has the events after `since`, or the room, where they are not all kept.
        """
        news: dict[str, Any]
        # While sfud is away nobody knows whether the events are complete.
        missed = session.missed(since) if self.hub.ipc.connected.is_set() else None
        if missed is not None:
            news = {"events": missed}
        else:
            news = {"room": await self.hub.look(session)}
            asyncio.get_running_loop().call_soon(session.release)
        if session.expiry:
            session.expiry.cancel()
        if session.browser:  # another WebSocket, which is broken without a notice
            session.browser.session = None
        self.session, session.browser = session, self
        return {
            "participant": session.id, "key": session.key, "role": session.role,
            "mode": session.mode, "state": "awaited" if session.awaited else "joined",
        } | news  # fmt: skip

    async def on_leave(self, me: Session) -> dict:
        self.session = me.browser = None
        await self.hub.remove(me)
        return {}

    async def on_inviteLink(self, me: Session) -> dict:
        """Makes an invitation for a moderator to pass on; none where the room is open."""
        if self.hub.is_open:
            return {}
        if me.role != "moderator":
            raise Refused("not-permitted", "only a moderator invites")
        return {"token": self.hub.invitations.token("participant", me.room)}
