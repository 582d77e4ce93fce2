"""WHIP (RFC 9725) and WHEP (draft-ietf-wish-whep): one offer by HTTP is a participant.

The client offers and sfud answers. sfud is an ICE-lite agent and needs no candidates of the
client's, so trickled ones are acknowledged and not used.
"""

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from sfud_gateway import ice, sdpfrag, tokens
from sfud_gateway.core import Gateway
from sfud_gateway.refusals import refuse, shown
from sfud_gateway.session import Session
from sfud_gateway.sfud_ipc import Refused
from sfud_gateway.viewers import Viewers

log = logging.getLogger("whip")

LONGEST_SDP = 262_144  # bytes, as in sfud
SDP, FRAGMENT = "application/sdp", "application/trickle-ice-sdpfrag"
EXPOSED = "Location, ETag, Link, Retry-After, WWW-Authenticate, Accept-Post, Accept-Patch"
RETRY_SECONDS = "5"
STATUS = {
    "wrong-room": 403, "not-permitted": 403, "room-locked": 403, "role-invalid": 403,
    "event-not-open": 403, "event-ended": 403, "role-may-not-publish": 403,
    "no-such-room": 404, "no-such-participant": 404, "no-such-session": 404,
    "no-such-transport": 404, "already-exists": 409, "bad-sdp": 400, "invalid-params": 400,
    "limit-reached": 503, "draining": 503, "sfud-not-running": 503, "timeout": 503,
    "wrong-contract": 503, "registry-away": 503, "node-unreachable": 503, "outcome-unknown": 503,
    "internal-error": 500,
}  # fmt: skip
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def problem(refused: Refused) -> web.Response:
    """Returns an error as problem details (RFC 9457)."""
    error = shown(refused)
    if refused.reason.startswith("token-"):
        status = 401
    elif refused.data.get("limit") == "joinsPerSecond":
        status = 429
    else:
        status = STATUS.get(refused.reason, 422)
    return problem_of(status, error["message"], error["reason"])


def problem_of(status: int, title: str, reason: str) -> web.Response:
    headers = {}
    if status == 401:
        error = "" if reason == "token-missing" else ' error="invalid_token"'
        headers["WWW-Authenticate"] = "Bearer" + error
    if status in (429, 503) or reason == "no-such-room":
        headers["Retry-After"] = RETRY_SECONDS
    content = {"title": title, "status": status, "reason": reason}
    return web.Response(
        status=status, text=json.dumps(content), content_type="application/problem+json",
        headers=headers,
    )  # fmt: skip


class Refusal(Exception):
    """An HTTP answer that no reason of the contract stands for."""

    def __init__(self, status: int, title: str, reason: str):
        self.response = problem_of(status, title, reason)


def bearer(request: web.Request) -> str | None:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


async def body(request: web.Request, content_type: str) -> str:
    if request.content_type != content_type:
        raise Refusal(415, f"the content is {content_type}", "unsupported-media-type")
    content = await request.content.read(LONGEST_SDP + 1)
    while len(content) <= LONGEST_SDP and (more := await request.content.read(LONGEST_SDP)):
        content += more
    if len(content) > LONGEST_SDP:
        raise Refusal(413, f"the content has more than {LONGEST_SDP} bytes", "too-long")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise refuse("invalid-params", "the content is not UTF-8") from None


class Ingest:
    """The HTTP handlers of both protocols; `kind` is `whip` or `whep`."""

    def __init__(self, gateway: Gateway, viewers: Viewers):
        self.gateway, self.viewers = gateway, viewers
        self.locks: dict[str, asyncio.Lock] = {}

    def routes(self) -> list[web.RouteDef]:
        found = []
        for kind in ("whip", "whep"):
            post, options = self.guarded(self.post(kind)), self.options("POST, OPTIONS")
            for path in (f"/{kind}", f"/{kind}/{{room}}"):
                found += [web.post(path, post), web.options(path, options)]
            path = f"/{kind}/sessions/{{key}}"
            found += [
                web.patch(path, self.guarded(self.patch(kind))),
                web.delete(path, self.guarded(self.delete(kind))),
                web.options(path, self.options("PATCH, DELETE, OPTIONS")),
            ]
        return found

    def cors(self, request: web.Request, response: web.StreamResponse) -> None:
        origins, origin = self.gateway.config.origins, request.headers.get("Origin")
        if "*" in origins:
            response.headers["Access-Control-Allow-Origin"] = "*"
        elif origin in origins:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Vary"] = "Origin"
        response.headers["Access-Control-Expose-Headers"] = EXPOSED

    def options(self, allowed: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            response = web.Response(status=200)
            self.cors(request, response)
            response.headers["Allow"] = allowed
            response.headers["Access-Control-Allow-Methods"] = allowed
            response.headers["Access-Control-Allow-Headers"] = (
                "Authorization, Content-Type, If-Match"
            )
            response.headers["Access-Control-Max-Age"] = "86400"
            if "POST" in allowed:
                response.headers["Accept-Post"] = SDP
            else:
                response.headers["Accept-Patch"] = FRAGMENT
            return response

        return handle

    def guarded(self, handler: Handler) -> Handler:
        """Returns the handler with refusals answered and CORS headers added."""

        async def handle(request: web.Request) -> web.StreamResponse:
            # A client that hangs up in between must not leave half a participant behind.
            work = asyncio.ensure_future(handler(request))
            work.add_done_callback(lambda it: it.cancelled() or it.exception())
            try:
                response = await asyncio.shield(work)
            except Refused as refused:
                self.gateway.metrics.refusals.labels(refused.reason).inc()
                response = problem(refused)
            except Refusal as refusal:
                response = refusal.response
            self.cors(request, response)
            return response

        return handle

    def post(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            if (token := bearer(request)) is None:
                raise Refusal(401, "a Bearer token is needed", "token-missing")
            grant = tokens.verify(self.gateway.config, token)
            room = self.gateway.room_of(grant, request.match_info.get("room"))
            only = request.query.get("participant") if kind == "whep" else None
            if only is not None and not re.fullmatch(tokens.IDENT, only):
                raise refuse("invalid-params", "participant is no id")
            offer = await body(request, SDP)
            if sdpfrag.credentials(offer) is None:
                raise refuse("invalid-params", "the offer has no ICE credentials")
            session, key, joined = await self.join(kind, grant, room)
            try:
                answer = await self.offer(session, joined, offer, only)
            except BaseException:
                await self.gateway.remove(session)
                raise
            self.gateway.release(session)
            self.viewers.arrange_soon(session.sfud_room)
            response = web.Response(status=201, text=answer, content_type=SDP)
            response.headers["Location"] = f"/{kind}/sessions/{key}"
            response.headers["ETag"] = session.extra["etag"]
            name = f"{session.tenant}/{session.id}"
            for link in ice.links(self.gateway.config, name):
                response.headers.add("Link", link)
            return response

        return handle

    async def join(
        self, kind: str, grant: tokens.Grant, room: str
    ) -> tuple[Session, str, dict[str, Any]]:
        if kind == "whip":
            return await self.gateway.join(grant, room, kind)
        if f"{grant.tenant}:{room}" not in self.gateway.people:
            self.gateway.check_ready()
            raise Refusal(409, "nobody is in this room yet", "no-such-room")
        return await self.gateway.join(
            grant, room, kind, role="viewer", may_create=False, mode="RECV_ONLY"
        )

    async def offer(
        self, session: Session, joined: dict[str, Any], offer: str, only: str | None
    ) -> str:
        """Makes the transport; returns the answer."""
        if session.kind == "whip":
            roles = {it["name"]: it for it in joined["roomInfo"]["settings"]["roles"]}
            publish = roles.get(session.role, {}).get("publish", {})
            if not any(publish.get(it) for it in ("audio", "video", "screen")):
                raise refuse("not-permitted", "the token's role may not publish")
        ids = {"room": session.sfud_room, "participant": session.id}
        result = await self.gateway.ipc.call("transport.offer", sdp=offer, **ids)
        wanted = "recvonly" if session.kind == "whip" else "sendonly"
        mids = {kind: [it["mid"] for it in result["mids"]
                       if it["kind"] == kind and it["direction"] == wanted]
                for kind in ("audio", "video")}  # fmt: skip
        refused = [it["refused"] for it in result["mids"] if "refused" in it]
        if refused and session.kind == "whip":
            # Half a publication would mislead its publisher.
            raise refuse("not-permitted", f"not all media may be sent: {refused[0]}")
        if not any(mids.values()):
            raise Refusal(422, "the offer has no audio or video to carry", "no-media")
        session.extra = mids | {"only": only, "offer": offer, "etag": new_etag()}
        self.gateway.save(session)
        self.gateway.store.commit()  # the client relies on the Location
        return result["sdp"]

    def session(self, request: web.Request, kind: str) -> Session:
        """Returns the session of the URL, which is a secret; a token has to fit, if there is one.

        The token may have expired meanwhile: it was for joining.
        """
        session = self.gateway.session(request.match_info["key"])
        if session is None or session.kind != kind or "etag" not in session.extra:
            raise refuse("no-such-session", "this session has ended")
        token = bearer(request)
        if token is None:
            return session
        if tokens.signed_digest_of(token) == session.digest:
            tokens.claims_of(self.gateway.config, token, may_have_expired=True)
        else:
            grant = tokens.verify(self.gateway.config, token)
            if (grant.tenant, grant.participant) != (session.tenant, session.id):
                raise refuse("token-invalid", "the token is not of this session")
        return session

    def patch(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            session = self.session(request, kind)
            async with self.locks.setdefault(session.key, asyncio.Lock()):
                try:
                    return await self.patched(request, session)
                finally:
                    self.locks.pop(session.key, None)

        return handle

    async def patched(self, request: web.Request, session: Session) -> web.Response:
        tags = [it.strip() for it in request.headers.get("If-Match", "").split(",") if it.strip()]
        if not tags:
            raise Refusal(428, "a PATCH needs If-Match", "if-match-missing")
        fragment = await body(request, FRAGMENT)
        sdpfrag.check(fragment)
        restarts = tags in (["*"], ['"*"'])
        if not restarts and session.extra["etag"] not in tags:
            raise Refusal(412, "the ICE session is another one by now", "etag-mismatch")
        new, offer = sdpfrag.credentials(fragment), session.extra["offer"]
        if new is None or new == sdpfrag.credentials(offer):
            if restarts:
                raise refuse("invalid-params", "an ICE restart has new ICE credentials")
            return web.Response(status=204)
        return await self.restart(session, sdpfrag.restarted(offer, new))

    async def restart(self, session: Session, offer: str) -> web.Response:
        """Restarts ICE; if sfud refuses, the session goes on as it was (RFC 9725 §4.3.3)."""
        ids = {"room": session.sfud_room, "participant": session.id}
        result = await self.gateway.ipc.call("transport.offer", sdp=offer, **ids)
        session.extra |= {"offer": offer, "etag": new_etag()}
        self.gateway.save(session)
        return web.Response(
            status=200, text=sdpfrag.fragment(result["sdp"]), content_type=FRAGMENT,
            headers={"ETag": session.extra["etag"]},
        )  # fmt: skip

    def delete(self, kind: str) -> Handler:
        async def handle(request: web.Request) -> web.Response:
            session = self.session(request, kind)
            self.gateway.check_ready()
            await self.gateway.remove(session)
            return web.Response(status=200)

        return handle


def new_etag() -> str:
    return f'"{secrets.token_hex(8)}"'
