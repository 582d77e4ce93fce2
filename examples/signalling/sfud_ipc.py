"""A client for sfud's IPC: JSON-RPC 2.0, one object a line, over a Unix-domain socket.

    ipc = IPC("/run/user/1000/sfud.sock", on_event=print)
    task = asyncio.create_task(ipc.run())
    await ipc.connected.wait()
    await ipc.call("room.create", room="r1")

It keeps the connection up by itself, and asks for the events that it missed meanwhile.
"""

import asyncio
import itertools
import json
import logging
from typing import Any, Awaitable, Callable

log = logging.getLogger("ipc")

LONGEST_CALL = 1 << 20  # longest line that sfud accepts in bytes, by docs/ipc.md
# Bytes of the longest line that sfud writes, at its largest ipcOutputBytes (docs/limits.md). sfud
# is trusted, and a client that gave up on a long reply would request it again forever.
LONGEST_LINE = 16 << 30
CALL_SECONDS = 10


class Refused(Exception):
    """A refused call; `reason` is a stable word, `message` is for people."""

    def __init__(self, reason: str, message: str, code: int = 0):
        super().__init__(message)
        self.reason, self.message, self.code = reason, message, code


class IPC:
    def __init__(
        self,
        path: str,
        on_event: Callable[[dict], None],
        on_up: Callable[[], Awaitable[None]] | None = None,
        on_down: Callable[[], None] | None = None,
    ):
        self.path = path
        self.on_event, self.on_up, self.on_down = on_event, on_up, on_down
        self.connected = asyncio.Event()
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._seen: dict[str, int] = {}  # room → the last event's seq

    async def call(self, method: str, **params: Any) -> Any:
        """Returns the result once the call has taken effect; raises `Refused`."""
        if self._writer is None:
            raise Refused("sfud-not-running", f"sfud cannot be reached at {self.path}")
        request = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        line = json.dumps(request).encode() + b"\n"
        if len(line) > LONGEST_CALL:
            raise Refused("too-long", f"{method} would be a line of {len(line)} bytes")
        reply = self._waiting[request["id"]] = asyncio.get_running_loop().create_future()
        try:
            self._writer.write(line)
            return await asyncio.wait_for(reply, CALL_SECONDS)
        except asyncio.TimeoutError:
            raise Refused("timeout", f"sfud did not answer {method} in time") from None
        finally:
            self._waiting.pop(request["id"], None)

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
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2)
                continue
            pause = 0.1
            welcome = asyncio.create_task(self._welcome())
            try:
                await self._read(reader)
            finally:
                welcome.cancel()
                self._writer.close()
                self._writer = None
            self._lost()

    async def _welcome(self) -> None:
        try:
            try:
                await self.call("events.subscribe", **({"since": self._seen} if self._seen else {}))
            except Refused:
                if not self._seen:
                    raise
                self._seen.clear()  # another sfud, which knows nothing of these rooms
                await self.call("events.subscribe")
            self.connected.set()
            log.info("connected to sfud at %s", self.path)
            if self.on_up:
                await self.on_up()
        except Refused as refused:
            if self._writer is not None:  # otherwise it was lost again
                log.error("sfud refused the events: %s", refused.message)
                self._writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await reader.readline()
                if not line:
                    return
                message = json.loads(line)
            except (OSError, ValueError) as error:  # ValueError: no JSON, or too long
                log.error("connection to sfud: %s", error)
                return
            if message.get("method") == "event":
                self._take_event(message["params"])
            elif (reply := self._waiting.get(message.get("id"))) and not reply.done():
                self._settle(reply, message)

    def _settle(self, reply: asyncio.Future, message: dict) -> None:
        if error := message.get("error"):
            reason = (error.get("data") or {}).get("reason", "error")
            reply.set_exception(Refused(reason, error["message"], error["code"]))
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

    def _lost(self) -> None:
        was_connected = self.connected.is_set()
        self.connected.clear()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(Refused("sfud-not-running", "the connection to sfud was lost"))
        if was_connected:
            log.warning("lost sfud at %s", self.path)
            if self.on_down:
                self.on_down()
