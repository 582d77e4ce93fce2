#!/usr/bin/env python3
"""The reference signalling server: browsers on one side (WebSocket), sfud on the other (IPC).

It keeps no media state of its own. A browser's wish becomes an IPC call on that browser's own
participant, and sfud's events go to those whom their `to` names. README.md beside this file has
the messages.
"""

import argparse
import asyncio
import json
import logging
import os
import re
import secrets
import signal
import ssl
import sys
from pathlib import Path
from typing import Any, Coroutine
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, WSMsgType, web

from sfud_ipc import IPC, Refused

log = logging.getLogger("signalling")

PAGE = Path(__file__).resolve().parent / "page"
LONGEST_MESSAGE = 300_000  # bytes; sfud takes an SDP of at most 256 kB
LONGEST_QUEUE = 1_000  # messages that a slow browser may lag behind
JOIN_SECONDS = 30  # an open WebSocket must join within this time
GRACE_SECONDS = 30  # a participant whose WebSocket broke may come back within this time
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; connect-src 'self' ws: wss:; "
    "img-src 'self' data:; media-src 'self' blob:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

# ---- What a browser may say. It is not trusted: every message is checked against its shape.


def text(longest: int):
    half = re.compile("[\ud800-\udfff]")  # of a surrogate pair: no UTF-8 has it
    return lambda value: (
        isinstance(value, str) and 0 < len(value) <= longest and not half.search(value)
    )


def matches(pattern: str):
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def sources(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= 16
        and all(map(mid, value))
        and all(source in ("camera", "microphone", "screen") for source in value.values())
    )


ident = matches(r"[A-Za-z0-9._:-]{1,128}")
mid = matches(r"[\x21-\x7e]{1,32}")
SHAPES = {  # type → key → (check, whether it must be there)
    "join": {"room": (matches(r"[A-Za-z0-9._-]{1,64}"), True), "name": (text(64), True)},
    "resume": {"key": (text(64), True)},
    "offer": {"sdp": (text(262_144), True), "sources": (sources, True)},
    "subscribe": {
        "stream": (ident, True), "audioMid": (mid, False), "videoMid": (mid, False),
    },
    "unsubscribe": {"stream": (ident, True)},
    "media": {"stream": (ident, True), "audio": (flag, False), "video": (flag, False)},
    "leave": {},
}  # fmt: skip


def checked(data: str) -> dict:
    """The message, or `Refused` where it is none that `SHAPES` has."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        raise Refused("bad-message", "this is no JSON") from None
    shape = SHAPES.get(str(message.get("type"))) if isinstance(message, dict) else None
    if shape is None or type(message.get("id")) is not int:
        raise Refused("bad-message", "unknown type, or no id")
    for key, (check, needed) in shape.items():
        if (needed or key in message) and not check(message.get(key)):
            raise Refused("bad-message", f"{key} is missing or not as it should be")
    if unknown := message.keys() - shape.keys() - {"type", "id"}:
        raise Refused("bad-message", f"unknown keys: {sorted(unknown)[:3]}")
    return message


# ---- Participants


class Session:
    """One participant; it outlives a broken WebSocket by `GRACE_SECONDS`."""

    def __init__(self, room: str, name: str):
        self.room, self.name = room, name
        slug = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:32] or "guest"
        self.id = f"{slug}-{secrets.token_hex(3)}"
        self.key = secrets.token_urlsafe(24)  # only its own browser knows it
        self.browser: Browser | None = None
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
        self.browsers: set[Browser] = set()
        # Joins and leaves are taken one by one, so that no room is closed under a newcomer.
        self.membership = asyncio.Lock()
        self.tasks: set[asyncio.Task] = set()

    def sessions(self) -> list[Session]:
        return [session for room in self.rooms.values() for session in room.values()]

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
        try:
            room = await self.ipc.call("room.get", room=name)
        except Refused as refused:
            if refused.reason != "no-such-room":
                raise
            room = {"participants": []}
        present = {participant["participant"] for participant in room["participants"]}
        for session in list(self.rooms.get(name, {}).values()):
            if session.held is not None:
                continue  # it is being shown the room just now
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


class Browser:
    """One WebSocket, and the session that it speaks for."""

    def __init__(self, hub: Hub, socket: web.WebSocketResponse):
        self.hub, self.socket = hub, socket
        self.session: Session | None = None
        self.queue: asyncio.Queue[dict | None] = asyncio.Queue(LONGEST_QUEUE)

    def send(self, message: dict) -> None:
        """Never waits: who does not keep up loses the WebSocket, and resumes with a new one."""
        try:
            self.queue.put_nowait(message)
        except asyncio.QueueFull:
            self.hub.spawn(self.socket.close(code=WSCloseCode.TRY_AGAIN_LATER))

    async def write(self) -> None:
        try:
            while True:
                await self.socket.send_json(await self.queue.get())
        except ConnectionError:
            pass  # the reader sees it too

    async def run(self) -> None:
        writer = asyncio.create_task(self.write())
        self.hub.browsers.add(self)
        self.send({"type": "status", "sfud": self.hub.ipc.connected.is_set()})
        going_away = False
        try:
            while True:
                frame = await self.socket.receive(None if self.session else JOIN_SECONDS)
                if frame.type != WSMsgType.TEXT:
                    going_away = frame.type == WSMsgType.CLOSE and frame.data in (1000, 1001)
                    return
                await self.answer(frame.data)
        except asyncio.TimeoutError:
            log.info("a browser did not join in time")
        finally:
            self.hub.browsers.discard(self)
            writer.cancel()
            await self.end(going_away)

    async def end(self, going_away: bool) -> None:
        session, self.session = self.session, None
        if session is None or session.browser is not self:
            return
        session.browser = None
        if going_away:  # a closed tab, a reload
            await self.hub.remove(session.room, session.id)
        else:  # a broken network: its media may well be alive
            session.expiry = asyncio.get_running_loop().call_later(
                GRACE_SECONDS,
                lambda: self.hub.spawn(self.hub.remove(session.room, session.id)),
            )

    async def answer(self, data: str) -> None:
        reply: dict[str, Any] = {"type": "reply"}
        after = None
        try:
            message = checked(data)
            reply["id"] = message["id"]
            handler = getattr(self, "on_" + message["type"])
            if message["type"] in ("join", "resume"):
                reply["result"], after = await handler(message)
            elif self.session is None:
                raise Refused("not-joined", "join first")
            else:
                reply["result"] = await handler(message, self.session)
        except Refused as refused:
            reply["error"] = {
                "reason": refused.reason, "message": refused.message, "code": refused.code,
            }  # fmt: skip
        self.send(reply)
        if after:
            after()

    async def on_join(self, message: dict):
        await self.end(going_away=True)
        session = Session(message["room"], message["name"])
        room = await self.hub.join(session)
        return self.attach(session, room)

    async def on_resume(self, message: dict):
        known = (s for s in self.hub.sessions() if secrets.compare_digest(
            s.key.encode(), message["key"].encode()))  # fmt: skip
        if (session := next(known, None)) is None:
            raise Refused("no-such-session", "this participant is not in the room any more")
        session.held = []
        try:
            room = await self.hub.ipc.call("room.get", room=session.room)
        except Refused:
            session.held = None
            raise
        return self.attach(session, room)

    def attach(self, session: Session, room: dict):
        if session.expiry:
            session.expiry.cancel()
        if session.browser:  # another WebSocket, which is broken and does not know it yet
            session.browser.session = None
        self.session, session.browser = session, self
        result = {"participant": session.id, "key": session.key, "room": room}
        return result, lambda: session.picture(room)

    async def on_leave(self, message: dict, session: Session) -> dict:
        await self.end(going_away=True)
        return {}

    async def on_offer(self, message: dict, me: Session) -> dict:
        result = await self.hub.ipc.call(
            "transport.offer", room=me.room, participant=me.id, sdp=message["sdp"],
            sources=message["sources"],
        )  # fmt: skip
        return {"sdp": result["sdp"], "mids": result["mids"]}

    async def on_subscribe(self, message: dict, me: Session) -> dict:
        mids = {key: message[key] for key in ("audioMid", "videoMid") if key in message}
        result = await self.hub.ipc.call(
            "subscription.add", room=me.room, participant=me.id, stream=message["stream"], **mids
        )
        me.subscriptions[message["stream"]] = result["subscription"]
        return {key: result[key] for key in ("audioMid", "videoMid") if key in result}

    async def on_unsubscribe(self, message: dict, me: Session) -> dict:
        if (subscription := me.subscriptions.pop(message["stream"], None)) is not None:
            await self.hub.ipc.call(
                "subscription.remove", room=me.room, subscription=subscription
            )
        return {}

    async def on_media(self, message: dict, me: Session) -> dict:
        streams = (await self.hub.ipc.call("stream.list", room=me.room))["streams"]
        if (message["stream"], me.id) not in ((s["stream"], s["participant"]) for s in streams):
            raise Refused("not-permitted", "this stream is not yours")
        changes = {key: message[key] for key in ("audio", "video") if key in message}
        await self.hub.ipc.call(
            "stream.update", room=me.room, stream=message["stream"], **changes
        )
        return {}


# ---- HTTP


async def websocket(hub: Hub, request: web.Request) -> web.StreamResponse:
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != request.host:
        raise web.HTTPForbidden(text="this page is not ours")
    socket = web.WebSocketResponse(max_msg_size=LONGEST_MESSAGE, heartbeat=10)
    await socket.prepare(request)
    await Browser(hub, socket).run()
    return socket


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


async def serve(options: argparse.Namespace) -> int:
    settings = {"maxParticipants": options.max_participants} if options.max_participants else {}
    hub = Hub(options.ipc, {"settings": settings} if settings else {})
    application = web.Application()
    application.on_response_prepare.append(add_headers)
    application.router.add_get("/", lambda request: web.FileResponse(PAGE / "index.html"))
    application.router.add_get("/ws", lambda request: websocket(hub, request))
    application.router.add_static("/", PAGE)
    tls = None
    if options.cert:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options.cert, options.key)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    ipc = asyncio.create_task(hub.ipc.run())
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    site = web.TCPSite(runner, options.host, options.port, ssl_context=tls, shutdown_timeout=1)
    await site.start()
    host, port = runner.addresses[0][:2]
    print(f"ready {'https' if tls else 'http'}://{host}:{port}/", flush=True)
    await stop.wait()
    leaving = [hub.remove(session.room, session.id) for session in hub.sessions()]
    if leaving:
        await asyncio.wait(map(asyncio.ensure_future, leaving), timeout=2)
    for browser in list(hub.browsers):
        await browser.socket.close(code=WSCloseCode.SERVICE_RESTART)
    ipc.cancel()
    await runner.cleanup()
    return 0


def main() -> int:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    ipc = f"{runtime}/sfud.sock" if runtime else f"/tmp/sfud-{os.getuid()}.sock"
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0 picks one")
    parser.add_argument("--ipc", default=ipc, help="sfud's socket")
    parser.add_argument("--cert", help="TLS certificate file; browsers give cameras and "
                        "microphones to localhost and to HTTPS pages only")  # fmt: skip
    parser.add_argument("--key", help="the certificate's private key file")
    parser.add_argument("--max-participants", type=int, help="most people in one room")
    parser.add_argument("--log-level", default="info", choices=["debug", "info", "warning"])
    options = parser.parse_args()
    logging.basicConfig(
        level=options.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        return asyncio.run(serve(options))
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error.strerror}", file=sys.stderr)
        return 71


if __name__ == "__main__":
    sys.exit(main())
