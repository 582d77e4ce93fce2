"""A client's WebSocket: `{id, method, params}` in, `{id, result | error}` and events out."""

import asyncio
import contextlib
import json
import logging
import time
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from sfud_gateway import ice, methods, strict, tokens
from sfud_gateway.core import Gateway
from sfud_gateway.limits import Bucket, beyond
from sfud_gateway.refusals import refuse, shown
from sfud_gateway.session import Session
from sfud_gateway.sfud_ipc import Refused

log = logging.getLogger("websocket")

LONGEST_QUEUE = 1_000  # messages that a slow client may lag behind
LARGEST_QUEUE = 4 << 20  # bytes of them
RELOAD_SECONDS = 5  # a participant whose page went away stays so long: it may be loaded again
CLOSING_SECONDS = 15  # after which a client that does not read its close frame is cut off
LONGEST_MESSAGE = 1_000_000  # bytes; tenants have limits of their own
LONGEST_FIRST = 150_000  # bytes of a message before the tenant is known
FIRST_RATE = 5  # messages a second until then
BYTES_OF_ONE = 4_096  # a longer message counts as several
JOIN = frozenset(["token", "room", "name", "mode", "snapshot"])
MODES = ("SEND_AND_RECV", "RECV_ONLY", "SIGNALLING_ONLY")


class Client:
    """One WebSocket, and the session that it belongs to."""

    def __init__(
        self, gateway: Gateway, socket: web.WebSocketResponse,
        transport: asyncio.Transport | None,
    ):
        self.gateway, self.socket, self.transport = gateway, socket, transport
        self.session: Session | None = None
        self.queue: asyncio.Queue[str] = asyncio.Queue(LONGEST_QUEUE)
        self.queued = 0  # bytes, with those of the message that is being sent
        self.is_cut = False
        self.bucket = Bucket(FIRST_RATE)
        self.code: int = WSCloseCode.OK
        self.idle_since = time.monotonic()  # without a session

    def send(self, text: str) -> None:
        """Sends without waiting; a client that lags too far loses the WebSocket and resumes."""
        if self.is_cut:
            return
        size = len(text)  # JSON as it is made here is ASCII
        if self.queue.full() or (self.queued and self.queued + size > LARGEST_QUEUE):
            log.info("a client is %d messages behind", self.queue.qsize())
            self.cut()
            return
        self.queued += size
        self.queue.put_nowait(text)

    def cut(self) -> None:
        """Ends the connection at once: a close frame would wait for a client that does not read."""
        self.is_cut = True
        while not self.queue.empty():
            self.queue.get_nowait()
        if self.transport:
            self.transport.abort()

    async def close(self, code: int) -> None:
        self.code = code  # the reader may be the first to close
        await self.socket.close(code=code)

    def lose(self, session: Session, event: str, reason: str) -> None:
        if self.session is session:
            self.part()
            self.send(json.dumps({"event": event, "data": {"reason": reason}}))

    def part(self) -> None:
        """Leaves the connection without a session, until it joins again."""
        self.session, self.idle_since = None, time.monotonic()
        self.bucket = Bucket(FIRST_RATE)

    def seconds_left(self) -> float:
        """Returns how long it may still take to join."""
        return self.idle_since + self.gateway.config.join_seconds - time.monotonic()

    async def write(self) -> None:
        with contextlib.suppress(ConnectionError):  # the reader sees it too
            while True:
                text = await self.queue.get()
                await self.socket.send_str(text)
                self.queued -= len(text)

    async def run(self) -> None:
        writer = asyncio.create_task(self.write())
        code: int | None = None  # with which the client closes
        try:
            while True:
                left = None if self.session else max(0.001, self.seconds_left())
                frame = await self.socket.receive(left)
                if frame.type != WSMsgType.TEXT:
                    code = frame.data if frame.type == WSMsgType.CLOSE else None
                    return
                if pause := self.bucket.wait(1 + len(frame.data) / BYTES_OF_ONE):
                    await asyncio.sleep(pause)  # the rest waits in the socket
                if self.session is None and self.seconds_left() <= 0:
                    raise TimeoutError  # whoever always has a message to read too
                await self.answer(frame.data)
        except TimeoutError:
            log.info("a client did not join in time")
        finally:
            writer.cancel()
            self.end(code)

    def end(self, code: int | None) -> None:
        session, self.session = self.session, None
        if session is None or session.connection is not self:
            return
        session.connection = None
        if self.gateway.is_stopping:
            return  # the next gateway goes on with it
        if code == WSCloseCode.OK:
            self.gateway.spawn(self.gateway.remove(session))
        elif code == WSCloseCode.GOING_AWAY:  # a closed tab, or a page that is loaded again
            session.went_away = True
            self.gateway.expire(session, RELOAD_SECONDS)
        else:  # a broken network: its media may well be alive
            self.gateway.expire(session)

    async def answer(self, text: str) -> None:
        reply: dict[str, Any] = {}
        started = time.monotonic()
        joined: Session | None = None
        try:
            self.check_length(text)
            message = strict.loads(text)
            if not isinstance(message, dict):
                raise refuse("invalid-request", "a request is an object")
            id = message.get("id")
            if type(id) not in (int, str) or len(str(id)) > 256:
                raise refuse("invalid-request", "a request has an id: a number or a string")
            reply["id"] = id
            if unknown := message.keys() - {"id", "method", "params"}:
                raise refuse("invalid-request", f"a request has no {min(unknown)[:64]!r}")
            method, params = message.get("method"), message.get("params") or {}
            if not isinstance(method, str):
                raise refuse("invalid-request", "a request has a method")
            if method in OWN:
                self.gateway.metrics.calls.labels(method).inc()
                result = await OWN[method](self, params)
            else:
                result = await self.relay(method, params)
            reply["result"] = result
            joined = self.session if method in JOINING else None
        except Refused as refused:
            reply.setdefault("id", None)
            reply["error"] = shown(refused)
            self.gateway.metrics.refusals.labels(refused.reason).inc()
        except Exception:
            log.exception("a request failed")
            reply.setdefault("id", None)
            reply["error"] = shown(refuse("internal-error", "the gateway has a defect"))
        self.send(json.dumps(reply))
        if joined:
            self.gateway.release(joined)
        self.gateway.metrics.call_seconds.observe(time.monotonic() - started)

    def check_length(self, text: str) -> None:
        most = LONGEST_FIRST
        if self.session and (tenant := self.gateway.config.tenants.get(self.session.tenant)):
            most = tenant.limits.message_bytes
        if len(text) > most or len(text.encode(errors="replace")) > most:
            raise beyond("messageBytes", most)

    async def relay(self, method: str, params: Any) -> dict[str, Any]:
        """Makes the call that a request asks for; sfud decides whether this participant may."""
        if method not in methods.METHODS:
            raise refuse("no-such-method", f"there is no method {method[:64]!r}")
        self.gateway.metrics.calls.labels(method).inc()
        me = self.session
        if me is None:
            raise refuse("not-joined", "join first")
        call = methods.call_of(method, params, me.sfud_room, me)
        if method == "participant.update" and call["participant"] == me.id:
            for key, fixed in (("name", me.name_fixed), ("custom", me.custom_fixed)):
                if key in call and fixed:
                    raise refuse("not-permitted", f"your {key} is that of your token")
        tenant = self.gateway.config.tenants.get(me.tenant)
        if method == "streaming.start" and tenant is None:
            raise refuse("not-permitted", "this server does not stream to that host")
        if tenant:
            methods.check_tenant(method, call, tenant)
        try:
            result = await self.gateway.ipc.call(method, **call)
        except Refused as refused:
            raise methods.refusal_for(method, refused) from None
        return methods.result_for(method, result, me.room, me)

    def adopt(self, session: Session) -> None:
        """Makes a session this client's."""
        if self.socket.closed:
            self.gateway.spawn(self.gateway.remove(session))
            raise refuse("not-joined", "the connection is closed")
        if session.expiry:
            session.expiry.cancel()
            session.expiry = None
        session.went_away = False
        if session.connection and session.connection is not self:
            session.connection.lose(session, "session.ended", "resumed-elsewhere")
        self.session, session.connection = session, self
        if tenant := self.gateway.config.tenants.get(session.tenant):
            self.bucket = Bucket(tenant.limits.messages_per_second)

    async def join(self, params: Any) -> dict[str, Any]:
        params = methods.closed("participant.join", params, JOIN)
        if self.session:
            raise refuse("already-joined", "this connection has joined")
        given = {key: value for key, value in params.items() if value is not None}
        for key, fits in (
            ("token", lambda it: isinstance(it, str)), ("room", lambda it: isinstance(it, str)),
            ("name", lambda it: isinstance(it, str)), ("mode", lambda it: it in MODES),
            ("snapshot", lambda it: isinstance(it, bool)),
        ):  # fmt: skip
            if key in given and not fits(given[key]):
                raise refuse("invalid-params", f"{key} is not as it should be", parameter=key)
        if "token" not in given:
            raise refuse("invalid-params", "token is missing", parameter="token")
        grant = tokens.verify(self.gateway.config, given.pop("token"))
        room = self.gateway.room_of(grant, given.pop("room", None))
        session, key, result = await self.gateway.join(grant, room, "ws", **given)
        self.adopt(session)
        return self.gateway.reply_of(session, result) | {"session": key}

    async def resume(self, params: Any) -> dict[str, Any]:
        params = methods.closed("session.resume", params, frozenset(["session"]))
        if self.session:
            raise refuse("already-joined", "this connection has joined")
        key = params.get("session")
        session = self.gateway.session(key) if isinstance(key, str) else None
        if session is None or session.kind != "ws":
            raise refuse("no-such-session", "this participant has left the room")
        result = await self.gateway.look(session)
        if session.key not in self.gateway.keys:
            raise refuse("no-such-session", "this participant has left the room")
        self.adopt(session)
        return result | {"session": key}

    async def leave(self, params: Any) -> dict[str, Any]:
        methods.closed("participant.leave", params, frozenset())
        session = self.session
        if session is None:
            raise refuse("not-joined", "join first")
        self.part()
        await self.gateway.remove(session)
        return {}

    async def ice_servers(self, params: Any) -> dict[str, Any]:
        methods.closed("ice.servers", params, frozenset())
        if self.session is None:
            raise refuse("not-joined", "join first")
        name = f"{self.session.tenant}/{self.session.id}"
        return {"iceServers": ice.servers(self.gateway.config, name)}


OWN = {
    "participant.join": Client.join,
    "session.resume": Client.resume,
    "participant.leave": Client.leave,
    "ice.servers": Client.ice_servers,
}
JOINING = ("participant.join", "session.resume")


class WebSockets:
    """All open WebSockets."""

    def __init__(self, gateway: Gateway):
        self.gateway = gateway
        self.clients: set[Client] = set()
        gateway.tell_all = self.tell_all

    def tell_all(self, text: str) -> None:
        for client in self.clients:
            client.send(text)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        config = self.gateway.config
        origin = request.headers.get("Origin")
        if origin and not ("*" in config.origins or origin in config.origins):
            raise web.HTTPForbidden(text="this origin is not allowed")
        if self.gateway.is_stopping or len(self.clients) >= config.connections:
            raise web.HTTPServiceUnavailable(headers={"Retry-After": "5"})
        socket = web.WebSocketResponse(max_msg_size=LONGEST_MESSAGE, heartbeat=20, compress=False)
        await socket.prepare(request)
        client = Client(self.gateway, socket, request.transport)
        self.clients.add(client)
        self.gateway.metrics.connections.set(len(self.clients))
        try:
            await client.run()
            await asyncio.wait_for(socket.close(code=client.code), CLOSING_SECONDS)
        except TimeoutError:
            client.cut()
        finally:
            self.clients.discard(client)
            self.gateway.metrics.connections.set(len(self.clients))
        return socket

    async def close(self) -> None:
        """Closes all of them so that clients come back, and their participants stay."""
        closing = [
            asyncio.create_task(it.close(WSCloseCode.SERVICE_RESTART)) for it in list(self.clients)
        ]
        if closing:
            await asyncio.wait(closing, timeout=2)
