"""A signalling server's side of sfud's IPC: JSON-RPC 2.0, one object a line, on a Unix socket."""

import asyncio
import contextlib
import itertools
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


#: Bytes of the longest line, without its end, in either direction.
LONGEST_LINE = 1 << 20


class Refused(Exception):
    """An error reply."""

    def __init__(self, method: str, error: dict[str, Any]):
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: dict[str, Any] = error.get("data") or {}
        self.reason: str | None = self.data.get("reason")
        super().__init__(f"{method}: {self.code} {self.reason}: {self.message}")


@dataclass(frozen=True)
class Event:
    event: str
    room: str
    seq: int
    time: float
    audience: Any
    """`"all"`, a list of participants, or `{"except": [...]}`."""
    data: dict[str, Any]


class IPC:
    """One connection; use it as `async with`, or close it."""

    def __init__(self, path: Path):
        self._path = path
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self._changed = asyncio.Condition()
        #: Every event so far, in order, including those that `wait_for` has returned.
        self.events: list[Event] = []
        self._given: set[int] = set()

    async def open(self) -> "IPC":
        self._reader, self._writer = await asyncio.open_unix_connection(
            str(self._path), limit=LONGEST_LINE
        )
        self._task = asyncio.create_task(self._read())
        return self

    async def __aenter__(self) -> "IPC":
        return await self.open()

    async def __aexit__(self, *_) -> None:
        await self.close()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()
        await self._task

    async def _read(self) -> None:
        problem: Exception = ConnectionError("sfud closed the IPC connection")
        try:
            with contextlib.suppress(ConnectionError):
                while line := await self._reader.readline():
                    await self._take(json.loads(line))
        except ValueError as error:
            problem = AssertionError(f"sfud wrote a line that is too long, or no JSON: {error}")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(problem)

    async def _take(self, message: dict[str, Any]) -> None:
        assert message["jsonrpc"] == "2.0", message
        if message.get("method") == "event":
            params = message["params"]
            async with self._changed:
                self.events.append(
                    Event(
                        params["event"],
                        params.get("room", ""),
                        params.get("seq", 0),
                        params.get("time", 0),
                        params.get("audience"),
                        params.get("data") or {},
                    )
                )
                self._changed.notify_all()
            return
        self._waiting.pop(message["id"]).set_result(message)

    async def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        """Returns the result of a call; raises `Refused` for an error reply."""
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._writer.write(json.dumps(message).encode() + b"\n")
        reply = await asyncio.wait_for(self._waiting[number], 10)
        if "error" in reply:
            raise Refused(method, reply["error"])
        return reply["result"]

    async def pages(self, method: str, key: str, /, **params: Any) -> AsyncIterator[Any]:
        """Yields the items of a paged result's list `key`."""
        while True:
            page = await self.call(method, **params)
            for item in page[key]:
                yield item
            if page.get("next") is None:
                return
            params["after"] = page["next"]

    async def call_all(self, method: str, calls: list[dict[str, Any]]) -> None:
        """Makes a call with each, 250 at a time: no more than sfud queues."""
        for start in range(0, len(calls), 250):
            await asyncio.gather(*(self.call(method, **one) for one in calls[start : start + 250]))

    async def wait_for(
        self,
        event: str,
        where: Callable[[dict[str, Any]], bool] = lambda data: True,
        seconds: float = 5,
    ) -> Event:
        """Returns the first event of that name with such `data` that was not returned before; it
        may have arrived already."""

        def found() -> Event | None:
            for index, one in enumerate(self.events):
                if index not in self._given and one.event == event and where(one.data):
                    self._given.add(index)
                    return one
            return None

        deadline = asyncio.get_running_loop().time() + seconds
        async with self._changed:
            while (one := found()) is None:
                try:
                    # Unlike `asyncio.wait_for` before Python 3.12, this misses no cancellation.
                    async with asyncio.timeout_at(deadline):
                        await self._changed.wait()
                except TimeoutError:
                    tail = [(one.event, one.data) for one in self.events[-8:]]
                    raise AssertionError(
                        f"no event {event} within {seconds} s; the last were {tail}"
                    ) from None
            return one


async def timed(path: Path, method: str, key: str) -> tuple[list[Any], float]:
    """Returns the items of all pages of a result's list `key`, read on a connection of its own, and
    the seconds until all of them had arrived: parsing them is not sfud's work."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=LONGEST_LINE)
    items: list[Any] = []
    params: dict[str, Any] = {}
    seconds = 0.0
    while True:
        begin = time.monotonic()
        writer.write(request(1, method, **params))
        line = await asyncio.wait_for(reader.readline(), 20)
        seconds += time.monotonic() - begin
        result = json.loads(line)["result"]
        items += result[key]
        if result.get("next") is None:
            writer.close()
            return items, seconds
        params["after"] = result["next"]


async def raw(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Opens a raw connection, to violate the protocol."""
    return await asyncio.open_unix_connection(str(path), limit=LONGEST_LINE)


def request(number: int, method: str, **params) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"
