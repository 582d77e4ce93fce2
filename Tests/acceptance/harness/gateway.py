"""The gateway under test, its clients by WebSocket and HTTP, and a receiver of webhooks."""

import asyncio
import itertools
import json
import os
import secrets
import signal
import time
from pathlib import Path
from typing import Any

import aiohttp
import jwt
from aiohttp import web

from harness import process
from harness.process import until
from harness.sfud import REPOSITORY

SOURCES = REPOSITORY / "gateway"
# Debian's Python, as the package uses it.
PYTHON = "/usr/bin/python3"
SECRET = "a tenant's secret of more than 32 bytes"
WEBHOOK_SECRET = "a secret of webhooks, more than 32 bytes"
TURN_SECRET = "a secret shared with the TURN server"


class Refused(Exception):
    def __init__(self, error: dict[str, Any]):
        super().__init__(f"{error['code']} {error['reason']}: {error['message']}")
        self.code, self.reason = error["code"], error["reason"]
        self.data = error.get("data", {})


def token(
    room: str = "r1", key: Any = SECRET, kid: str = "a", algorithm: str = "HS256", **claims: Any
) -> str:
    """Returns a join token; a claim that is None is left out."""
    now = int(time.time())
    content = {"iss": "acme", "iat": now, "exp": now + 600, "room": room} | claims
    content = {name: value for name, value in content.items() if value is not None}
    return jwt.encode(content, key, algorithm=algorithm, headers={"kid": kid})


class Gateway:
    """A gateway's process; `toml` is what its tenant and its root have beside the usual."""

    def __init__(self, ipc: Path, directory: Path):
        self.ipc, self.directory = ipc, directory
        self.config = directory / "gateway.toml"
        self.log = directory / "gateway.log"
        self.http: aiohttp.ClientSession | None = None
        self.port = 0
        self.flags: tuple[str, ...] = ()

    def write(self, root: str = "", tenant: str = "", keys: str = "", more: str = "") -> None:
        """Writes its configuration: lines of the root, of the tenant, more keys, more tables."""
        for name, secret in (
            ("secret", SECRET), ("webhook-secret", WEBHOOK_SECRET), ("turn-secret", TURN_SECRET),
        ):  # fmt: skip
            (self.directory / name).write_text(secret)
        self.config.write_text(
            f'listen = "127.0.0.1:{self.port}"\nadmin = "127.0.0.1:0"\nipc = "{self.ipc}"\n'
            f'state = "state"\n{root}\n[tenants.acme]\n'
            'keys = [{ kid = "a", algorithm = "HS256", secret_file = "secret" },'
            f"{keys}]\n{tenant}\n{more}\n"
        )

    async def start(self) -> "Gateway":
        self.process = await process.start(
            PYTHON, "-m", "sfud_gateway", "--config", self.config, "--log-level", "debug",
            output=self.log, stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
        line = (await asyncio.wait_for(self.process.stdout.readline(), 10)).decode()
        assert line.startswith("ready "), line + self.log.read_text()
        self.url, self.admin = line.split()[1], line.split()[2].removeprefix("admin=")
        # The next process listens where this one did, as a service does.
        self.port = int(self.url.rpartition(":")[2])
        self.config.write_text(
            self.config.read_text().replace(
                "listen = \"127.0.0.1:0\"", f"listen = \"127.0.0.1:{self.port}\""
            )
        )
        self.http = self.http or aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=False, limit=0)
        )
        if self.process.returncode is None:
            await until(self.is_ready, "the gateway is ready")
        return self

    async def is_ready(self) -> bool:
        async with self.http.get(self.url + "/readyz") as reply:
            return reply.status == 200

    async def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(self.process.wait(), 8)
        assert status == 0, self.log.read_text()

    async def reload(self) -> None:
        before = self.log.read_text().count("is reloaded") + self.refused_reloads()
        self.process.send_signal(signal.SIGHUP)

        async def done():
            return self.log.read_text().count("is reloaded") + self.refused_reloads() > before

        await until(done, "the configuration is reloaded")

    def refused_reloads(self) -> int:
        return self.log.read_text().count("is not reloaded")

    async def close(self) -> None:
        await process.kill(self.process)
        if self.http:
            await self.http.close()

    async def client(self) -> "Client":
        socket = await self.http.ws_connect(
            self.url.replace("http", "ws", 1) + "/ws", max_msg_size=0
        )
        return Client(socket)

    async def join(self, room: str = "r1", **claims: Any) -> "Client":
        """Returns a client that has joined; its reply is `joined`."""
        client = await self.client()
        await client.join(token=token(room, **claims), room=room)
        return client

    async def metrics(self) -> str:
        async with self.http.get(self.admin + "/metrics") as reply:
            assert reply.status == 200
            return await reply.text()


class Client:
    """A client by WebSocket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self.socket = socket
        self.events: list[dict[str, Any]] = []
        self.joined: dict[str, Any] = {}
        self._ids = itertools.count(1)
        self._waiting: dict[Any, asyncio.Future] = {}
        self._task = asyncio.create_task(self._read())

    @property
    def id(self) -> str:
        return self.joined["participant"]

    async def _read(self) -> None:
        async for frame in self.socket:
            message = json.loads(frame.data)
            if "event" in message:
                self.events.append(message)
            else:
                self._waiting.pop(message["id"]).set_result(message)
        for future in self._waiting.values():
            future.set_exception(ConnectionError(f"closed: {self.socket.close_code}"))

    async def raw(self, text: str, id: Any = None) -> dict[str, Any]:
        """Returns the reply to any text."""
        self._waiting[id] = asyncio.get_running_loop().create_future()
        await self.socket.send_str(text)
        return await asyncio.wait_for(self._waiting[id], 12)

    async def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        number = next(self._ids)
        message = {"id": number, "method": method, "params": params}
        reply = await self.raw(json.dumps(message), number)
        if "error" in reply:
            raise Refused(reply["error"])
        return reply["result"]

    async def join(self, **params: Any) -> dict[str, Any]:
        self.joined = await self.call("participant.join", **params)
        return self.joined

    async def refused(self, method: str, /, **params: Any) -> str:
        """Returns the reason for which a call is refused."""
        try:
            result = await self.call(method, **params)
        except Refused as refused:
            return refused.reason
        raise AssertionError(f"{method} is not refused but {result}")

    async def hears(self, event: str, seconds: float = 5, **data: Any) -> dict[str, Any]:
        """Awaits an event with these data, which may have come already."""

        async def come():
            for one in self.events:
                if one["event"] == event and data.items() <= one["data"].items():
                    return one
            return None

        names = f"{event} {data}"
        try:
            return await until(come, names, seconds, every=0.02)
        except AssertionError:
            raise AssertionError(f"no {names}, but {self.events[-6:]}") from None

    async def close(self, code: int = 1000) -> None:
        await self.socket.close(code=code)
        await self._task

    def breaks(self) -> None:
        """Ends the connection without a word, as a network that is gone."""
        self.socket._response.connection.transport.abort()


class Receiver:
    """A receiver of webhooks, which can be away."""

    def __init__(self) -> None:
        self.port = 0
        self.taken: list[dict[str, Any]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.attempts = 0
        self.status = 200
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/path-with-a-secret"

    async def take(self, request: web.Request) -> web.Response:
        self.attempts += 1
        body = await request.read()
        if self.status == 200:
            self.requests.append((dict(request.headers), body))
            self.taken.append(json.loads(body))
        return web.Response(status=self.status)

    async def start(self) -> "Receiver":
        application = web.Application()
        application.router.add_post("/hook/{name}", self.take)
        self._runner = web.AppRunner(application, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    def names(self, room: str | None = None) -> list[str]:
        return [it["event"] for it in self.taken if room in (None, it.get("room"))]

    async def has(self, event: str, seconds: float = 10, **data: Any) -> dict[str, Any]:
        async def come():
            for one in self.taken:
                if one["event"] == event and data.items() <= one["data"].items():
                    return one
            return None

        return await until(come, f"a webhook {event} {data}", seconds)

    def toml(self, more: str = "") -> str:
        return (
            f'[tenants.acme.webhook]\nurl = "{self.url}"\nsecret_files = ["webhook-secret"]\n{more}'
        )


class Link:
    """A session by WHIP or WHEP of a peer of the tests."""

    def __init__(self, gateway: Gateway, peer: Any, reply: aiohttp.ClientResponse, answer: str):
        self.gateway, self.peer, self.answer = gateway, peer, answer
        self.url = gateway.url + reply.headers["Location"]
        self.etag = reply.headers["ETag"]
        self.links = reply.headers.getall("Link", [])

    @classmethod
    async def open(cls, gateway: Gateway, path: str, bearer: str, peer: Any) -> "Link":
        headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {bearer}"}
        offer = await peer.offer()
        async with gateway.http.post(gateway.url + path, data=offer, headers=headers) as reply:
            answer = await reply.text()
            assert reply.status == 201, (reply.status, answer)
            assert reply.content_type == "application/sdp"
            link = cls(gateway, peer, reply, answer)
        await peer.accept(answer)
        return link

    async def patch(self, fragment: str, etag: str | None, **headers: str) -> tuple[int, str, str]:
        """Returns status, body and ETag."""
        given = {"Content-Type": "application/trickle-ice-sdpfrag"} | headers
        if etag is not None:
            given["If-Match"] = etag
        request = self.gateway.http.patch(self.url, data=fragment, headers=given)
        async with request as reply:
            return reply.status, await reply.text(), reply.headers.get("ETag", "")

    async def delete(self) -> int:
        async with self.gateway.http.delete(self.url) as reply:
            return reply.status


def fragment(sdp: str) -> str:
    """Returns a fragment with the ICE attributes of a description (RFC 8840 §9)."""
    wanted = ("m=", "a=mid:", "a=ice-ufrag:", "a=ice-pwd:", "a=candidate:", "a=group:BUNDLE")
    return "".join(f"{line}\r\n" for line in sdp.splitlines() if line.startswith(wanted))


def merged(answer: str, fragment: str) -> str:
    """Returns an answer with the credentials and the candidates of a fragment."""
    lines = fragment.splitlines()
    take = {
        name: next(line for line in lines if line.startswith(name))
        for name in ("a=ice-ufrag:", "a=ice-pwd:")
    }
    found = []
    for line in answer.splitlines():
        name = next((name for name in take if line.startswith(name)), None)
        found.append(take[name] if name else line)
    return "\r\n".join(found) + "\r\n"


def new_room() -> str:
    return f"room-{secrets.token_hex(4)}"
