"""The way to a node's link, worse than loopback: a proxy at the address that the node announces."""

import asyncio
import contextlib
import heapq
import itertools
import random
import time

from harness.link import HEADER
from harness.sfud import free_ports


class NodePath(asyncio.DatagramProtocol):
    """Takes what other nodes send to one node; its datagrams pass a bottleneck on their way there.

    Connections pass as they are. The settings may be changed while it runs."""

    def __init__(self, host: str, seed: int = 1):
        self.host = host
        #: The port where the node listens, and the one that it announces.
        self.real = free_ports()
        self.announced = free_ports()
        #: Bits a second; None: no limit.
        self.rate: float | None = None
        #: Seconds that a datagram may wait before further ones are dropped.
        self.queue = 0.15
        #: Seconds that each datagram takes, and the share of them that is lost.
        self.delay = 0.0
        self.loss = 0.0
        #: Addresses whose datagrams and connections do not come through.
        self.cut: set[str] = set()
        self.dropped = 0
        #: (time, bytes) of datagrams that have passed.
        self.log: list[tuple[float, int]] = []
        self._free = 0.0
        self._random = random.Random(seed)
        self._heap: list[tuple[float, int, bytes]] = []
        self._numbers = itertools.count()
        self._wake = asyncio.Event()

    @classmethod
    async def open(cls, host: str) -> "NodePath":
        path = cls(host)
        while path.announced == path.real:
            path.announced = free_ports()
        loop = asyncio.get_running_loop()
        path._transport, _ = await loop.create_datagram_endpoint(
            lambda: path, local_addr=(host, path.announced)
        )
        path._server = await asyncio.start_server(path._connect, host, path.announced)
        path._pump = asyncio.create_task(path._run())
        return path

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags of the node behind it."""
        return (
            "--link", f"{self.host}:{self.real}", "--link-announce", f"{self.host}:{self.announced}"
        )  # fmt: skip

    async def close(self) -> None:
        self._pump.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump
        self._transport.close()
        self._server.close()

    def datagram_received(self, data: bytes, address) -> None:
        now = time.monotonic()
        if address[0] in self.cut or self._random.random() < self.loss:
            self.dropped += 1
            return
        left = now
        if self.rate is not None:
            begin = max(now, self._free)
            if begin - now > self.queue:
                self.dropped += 1
                return
            left = self._free = begin + (len(data) + HEADER) * 8 / self.rate
        heapq.heappush(self._heap, (left + self.delay, next(self._numbers), data))
        self._wake.set()

    async def _run(self) -> None:
        while True:
            now = time.monotonic()
            while self._heap and self._heap[0][0] <= now:
                _, _, data = heapq.heappop(self._heap)
                self.log.append((now, len(data)))
                self._transport.sendto(data, (self.host, self.real))
            self._wake.clear()
            wait = self._heap[0][0] - now if self._heap else None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), wait)

    async def _connect(self, reader, writer) -> None:
        try:
            onward = await asyncio.open_connection(self.host, self.real)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pipe(reader, onward[1]), _pipe(onward[0], writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()
