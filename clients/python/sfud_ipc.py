"""A client for sfud's IPC: JSON-RPC 2.0, one object a line, over a Unix-domain socket.

    ipc = IPC("/run/user/1000/sfud.sock", on_event=print)
    task = asyncio.create_task(ipc.run())
    await ipc.connected.wait()
    await ipc.call("room.create", room="r1")
    async for room in ipc.pages("room.list", "rooms", state="ongoing"):
        print(room["room"])

It keeps the connection up by itself, and asks for the events that it missed meanwhile.
"""

import asyncio
import contextlib
import itertools
import json
import logging
import os
from typing import Any, AsyncIterator, Awaitable, Callable, Iterator

log = logging.getLogger("ipc")

CONTRACT = 2  # version of docs/ipc.md that this client speaks
LONGEST_LINE = 1 << 20  # bytes before the line's end, in either direction
CALL_SECONDS = 10
LONGEST_PAUSE = 2  # seconds between two attempts to connect


class Refused(Exception):
    """A refused call; `reason` is a stable word, `message` is for people, `data` has the rest."""

    def __init__(self, reason: str, message: str, code: int = 0, data: dict | None = None):
        super().__init__(message)
        self.reason, self.message, self.code, self.data = reason, message, code, data or {}

    def shown(self) -> dict:
        return {"reason": self.reason, "message": self.message, "code": self.code}


def default_path() -> str:
    """Returns the socket that `SFUD_IPC` names, else where sfud listens without a `--ipc`."""
    if path := os.environ.get("SFUD_IPC"):
        return path
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return f"{runtime}/sfud.sock" if runtime else f"/tmp/sfud-{os.getuid()}.sock"


@contextlib.contextmanager
def passing(*reasons: str) -> Iterator[None]:
    """Ignores refusals with these reasons."""
    try:
        yield
    except Refused as refused:
        if refused.reason not in reasons:
            raise


class IPC:
    """One connection at a time; `on_up` is called when it is ready, `on_down` when it is lost."""

    def __init__(
        self,
        path: str,
        on_event: Callable[[dict], None],
        on_up: Callable[[], Awaitable[None]] | None = None,
        on_down: Callable[[], None] | None = None,
        seen: dict[str, int] | None = None,
        boot: str | None = None,
    ):
        """`seen` has the last `seq` of each room that an earlier process took, of the sfud whose
        `boot` this is: events since then come first."""
        self.path = path
        self.boot = boot  # of the sfud that it was connected to last
        self.has_same_rooms = True  # else the rooms of before are gone, and new ones count from 1
        self.on_event, self.on_up, self.on_down = on_event, on_up, on_down
        self.connected = asyncio.Event()
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._seen: dict[str, int] = dict(seen or {})  # room → the last event's seq
        self._unfit: Refused | None = None  # another contract is spoken at the socket

    async def call(self, method: str, **params: Any) -> Any:
        """Returns the result once the call has taken effect; raises `Refused`."""
        if self._writer is None:
            raise self._unfit or Refused(
                "sfud-not-running", f"sfud cannot be reached at {self.path}"
            )
        number = next(self._ids)
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        line = json.dumps(request).encode()
        if len(line) > LONGEST_LINE:
            raise Refused("too-long", f"{method} would be a line of {len(line)} bytes")
        reply = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line + b"\n")
            return await asyncio.wait_for(reply, CALL_SECONDS)
        except asyncio.TimeoutError:
            raise Refused("timeout", f"sfud did not answer {method} in time") from None
        finally:
            self._waiting.pop(number, None)

    async def pages(self, method: str, key: str, **params: Any) -> AsyncIterator[Any]:
        """Yields the items of a paged result's list `key`, one page after another."""
        while True:
            page = await self.call(method, **params)
            for item in page[key]:
                yield item
            if page.get("next") is None:
                return
            params["after"] = page["next"]

    async def run(self) -> None:
        """Connects, and reconnects whenever the connection is lost. Ends by cancellation."""
        pause = 0.1
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(
                    self.path, limit=LONGEST_LINE
                )
            except OSError as error:
                log.debug("no sfud at %s: %s", self.path, error)
            else:
                if await self._serve(reader, self._writer):
                    pause = 0.1
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Reads until the connection is lost; returns whether it had been ready for calls."""
        welcome = asyncio.create_task(self._welcome(writer))
        try:
            await self._read(reader)
        finally:
            welcome.cancel()
            writer.close()
            self._writer = None
        was_connected = self.connected.is_set()
        self._lost(was_connected)
        return was_connected

    async def _welcome(self, writer: asyncio.StreamWriter) -> None:
        try:
            info = await self.call("server.info")
            spoken = info.get("contract")
            if spoken != CONTRACT:
                self._unfit = Refused(
                    "wrong-contract",
                    f"sfud at {self.path} speaks version {spoken} of the contract, and this "
                    f"client speaks {CONTRACT}",
                )
                raise self._unfit
            self._unfit = None
            is_same = self.boot in (None, info.get("boot"))
            self.has_same_rooms = is_same or await self._is_node()
            if not self.has_same_rooms:
                self._seen.clear()
            try:
                await self.call("events.subscribe", **({"since": self._seen} if self._seen else {}))
            except Refused:
                if not self._seen:
                    raise
                self._seen.clear()  # another sfud, which knows nothing of these rooms
                await self.call("events.subscribe")
            self.boot = info.get("boot")  # only now: until then the loss of rooms is to be told
            self.connected.set()
            log.info("connected to sfud at %s", self.path)
            if self.on_up:
                await self.on_up()
        except Refused as refused:
            if not writer.is_closing():  # otherwise it was lost again
                log.error("%s", refused.message)
                writer.close()

    async def _is_node(self) -> bool:
        """Returns whether sfud is a node of a cluster: it says itself which rooms are gone, as
        others are at other nodes, or go on there."""
        with passing("no-such-method"):  # a version without clusters
            return (await self.call("node.list")).get("registry") is not None
        return False

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await self._line(reader):
                message = json.loads(line)
                if message.get("method") == "event":
                    self._take_event(message["params"])
                elif (reply := self._waiting.get(message.get("id"))) and not reply.done():
                    self._settle(reply, message)
        except (OSError, ValueError) as error:  # ValueError: no JSON
            log.error("connection to sfud: %s", error)

    async def _line(self, reader: asyncio.StreamReader) -> bytes | None:
        """Returns the next line, or `None` at the end.

        Skips a line that is longer than the contract allows: a client that reconnected because of
        it would be sent the same line again, for ever.
        """
        skipped = 0
        while True:
            try:
                line = await reader.readuntil()
            except asyncio.LimitOverrunError as overrun:
                skipped += len(await reader.readexactly(overrun.consumed))
            except asyncio.IncompleteReadError:
                return None
            else:
                if skipped == 0:
                    return line
                log.error("sfud has sent a line of %d bytes; it is skipped", skipped)
                skipped = 0

    def _settle(self, reply: asyncio.Future, message: dict) -> None:
        if error := message.get("error"):
            data = error.get("data") or {}
            reply.set_exception(
                Refused(data.get("reason", "error"), error["message"], error["code"], data)
            )
        else:
            reply.set_result(message.get("result"))

    def _take_event(self, event: dict) -> None:
        if (room := event.get("room")) is not None:
            gone = event["event"] == "resync" and event["data"].get("reason") == "no-such-room"
            if gone or event["event"] == "room.closed":
                self._seen.pop(room, None)
            elif "seq" in event:
                self._seen[room] = event["seq"]
        self.on_event(event)

    def _lost(self, was_connected: bool) -> None:
        self.connected.clear()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(Refused("sfud-not-running", "the connection to sfud was lost"))
        if was_connected:
            log.warning("lost sfud at %s", self.path)
            if self.on_down:
                self.on_down()
