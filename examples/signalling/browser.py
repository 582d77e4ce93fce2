"""A browser: its WebSocket, its requests, and the resulting calls to sfud."""

import asyncio
import logging
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from hub import Hub, Session
from messages import checked
import destinations
from moderation import CALLS, call, refusal, shown
from sfud_ipc import Refused

log = logging.getLogger("signalling")

LONGEST_QUEUE = 1_000  # messages that a slow browser may lag behind
JOIN_SECONDS = 600  # an open WebSocket must join within this time
GRACE_SECONDS = 30  # a participant whose WebSocket broke may come back within this time


class Browser:
    """One WebSocket, and the session that it belongs to."""

    def __init__(self, hub: Hub, socket: web.WebSocketResponse):
        self.hub, self.socket = hub, socket
        self.session: Session | None = None
        self.queue: asyncio.Queue[dict | None] = asyncio.Queue(LONGEST_QUEUE)

    def send(self, message: dict) -> None:
        """Sends without waiting: a browser that lags too far loses the WebSocket, and resumes with
        a new one."""
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
        self.send(self.hub.status())
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
        if going_away:  # a reload, or a closed tab
            await self.hub.remove(session.room, session.id, comes_back=True)
        else:  # a broken network: its media may well be alive
            session.expiry = asyncio.get_running_loop().call_later(
                GRACE_SECONDS,
                lambda: self.hub.spawn(
                    self.hub.remove(session.room, session.id, comes_back=True)
                ),
            )

    async def answer(self, data: str) -> None:
        reply: dict[str, Any] = {"type": "reply"}
        after = None
        try:
            message = checked(data)
            reply["id"] = message["id"]
            kind = message["type"]
            if kind in ("join", "resume"):
                reply["result"], after = await getattr(self, "on_" + kind)(message)
            elif self.session is None:
                raise Refused("not-joined", "join first")
            elif kind in CALLS:
                reply["result"] = await self.moderate(message, self.session)
            else:
                reply["result"] = await getattr(self, "on_" + kind)(message, self.session)
        except Refused as refused:
            reply["error"] = {
                "reason": refused.reason, "message": refused.message, "code": refused.code,
            }  # fmt: skip
        self.send(reply)
        if after:
            after()

    async def moderate(self, message: dict, me: Session) -> dict:
        kind = message["type"]
        if kind in self.hub.forbidden:
            raise Refused("not-permitted", f"this server does not {kind}")
        if kind == "stream":
            await destinations.check(message["url"], self.hub.streaming_hosts)
        method, wish = call(message, me.room, me.id)
        try:
            return shown(kind, await self.hub.ipc.call(method, **wish))
        except Refused as refused:
            raise refusal(kind, refused) from None

    async def on_join(self, message: dict):
        session = Session(
            message["room"], message["name"], message.get("role"), message.get("mode")
        )
        previous, self.session = self.session, None
        if previous:
            previous.browser = None
        room = await self.hub.join(
            session, message.get("settings", {}), message.get("key", ""), message.get("token"),
            previous,
        )  # fmt: skip
        return self.attach(session, room)

    async def on_resume(self, message: dict):
        if (session := self.hub.session(message["key"])) is None:
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
        if session.browser:  # another WebSocket, which is broken without a notice
            session.browser.session = None
        self.session, session.browser = session, self
        session.know(room)
        result = {
            "participant": session.id, "key": session.key, "role": session.role,
            "mode": session.mode, "state": "awaited" if session.awaited else "joined",
            "room": session.view(room),
        }  # fmt: skip
        return result, lambda: session.picture(room)

    async def on_leave(self, message: dict, me: Session) -> dict:
        self.session = me.browser = None
        await self.hub.remove(me.room, me.id)
        return {}

    async def on_inviteLink(self, message: dict, me: Session) -> dict:
        """Makes an invitation for a moderator to pass on; none where the room is open."""
        if self.hub.is_open:
            return {}
        if me.role != "moderator":
            raise Refused("not-permitted", "only a moderator invites")
        return {"token": self.hub.invitations.token("participant", me.room)}

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

    async def on_follow(self, message: dict, me: Session) -> dict:
        await self.hub.ipc.call(
            "talkers.subscribe", room=me.room, participant=me.id,
            audioMids=message["audioMids"], videoMids=message["videoMids"],
        )  # fmt: skip
        return {}

    async def on_prefer(self, message: dict, me: Session) -> dict:
        if (subscription := me.subscriptions.get(message["stream"])) is not None:
            size = {"width": message["width"], "height": message["height"]}
            await self.hub.ipc.call(
                "subscription.update", room=me.room, subscription=subscription,
                preferredResolution=size,
            )  # fmt: skip
        return {}

    async def on_explain(self, message: dict, me: Session) -> dict:
        if (subscription := me.subscriptions.get(message["stream"])) is None:
            raise Refused("no-such-subscription", "you do not watch this stream")
        return await self.hub.ipc.call(
            "subscription.explain", room=me.room, subscription=subscription
        )

    async def on_media(self, message: dict, me: Session) -> dict:
        streams = (await self.hub.ipc.call("stream.list", room=me.room))["streams"]
        if (message["stream"], me.id) not in ((s["stream"], s["participant"]) for s in streams):
            raise Refused("not-permitted", "this stream is not yours")
        changes = {key: message[key] for key in ("audio", "video") if key in message}
        await self.hub.ipc.call(
            "stream.update", room=me.room, stream=message["stream"], **changes
        )
        return {}
