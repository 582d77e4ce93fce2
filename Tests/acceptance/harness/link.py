"""A network between one client and sfud, or another client, worse than loopback.

A `Link` is a relay of datagrams: the client sends to the link's address instead of the far side's,
which `rewrite` puts into the far side's description. Downlink datagrams pass a bottleneck: a queue
that is emptied at a rate, a delay, random loss. Uplink datagrams are delayed and lost by a share of
their own. In either direction some are late or duplicated.
"""

import asyncio
import contextlib
import heapq
import random
import re
import time
from collections.abc import Callable
from typing import Any

from harness.bottleneck import Bottleneck, Download, Losses

#: Bytes of IP and UDP headers that a real link carries with each datagram.
HEADER = 28


class _Endpoint(asyncio.DatagramProtocol):
    def __init__(self, take):
        self.take = take

    def datagram_received(self, data, address):
        self.take(data, address)


class Link:
    """One client's path; everything may be changed while it runs."""

    def __init__(self, seed: int = 1):
        #: Seconds in each direction, unless the uplink has a value of its own.
        self.delay = 0.0
        self.delay_up: float | None = None
        #: Maximum random delay in addition, in seconds; it reorders nothing.
        self.jitter = 0.0
        #: Shares of datagrams lost on the downlink and on the uplink.
        self.loss = 0.0
        self.loss_up = 0.0
        #: Number of downlink datagrams lost in a row, on average; None: each by itself.
        self.burst: float | None = None
        #: Shares of datagrams, in either direction, that are overtaken by later ones, and that are
        #: duplicated.
        self.reorder = 0.0
        self.duplicate = 0.0
        self.sent = 0
        #: Datagrams that were lost or found the queue full.
        self.dropped = 0
        #: (time, bytes) of sent downlink datagrams, for rates.
        self.log: list[tuple[float, int]] = []
        #: (time, seconds in the queue) of datagrams that left the bottleneck.
        self.waits: list[tuple[float, float]] = []
        #: (time, bytes) of the downloads' datagrams that left the bottleneck.
        self.others: list[tuple[float, int]] = []
        self._random = random.Random(seed)
        # Apart, so that a seed means the same pattern of losses whatever else is random.
        self._losses = Losses(random.Random(f"losses {seed}"))
        self._bottleneck = Bottleneck()
        self._downloads: list[Download] = []
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._number = 0
        #: Departure time of the last datagram, by its transport.
        self._latest: dict[object, float] = {}
        self._client = None
        self._pump = None
        self._up = None

    @classmethod
    async def open(cls, seed: int = 1, **settings) -> "Link":
        link = cls(seed)
        loop = asyncio.get_running_loop()
        link._down, _ = await loop.create_datagram_endpoint(
            lambda: _Endpoint(link._from_client), local_addr=("127.0.0.1", 0)
        )
        link.port = link._down.get_extra_info("sockname")[1]
        link._wake = asyncio.Event()
        link._pump = asyncio.create_task(link._run())
        link.set(**settings)
        return link

    def set(self, **settings) -> None:
        """Changes several settings at once."""
        for name, value in settings.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    async def follow(self, steps: list[tuple[float, dict[str, Any]]]) -> None:
        """Changes settings at times in seconds from now on; returns after the last change."""
        begin = time.monotonic()
        for at, settings in steps:
            await asyncio.sleep(max(0.0, begin + at - time.monotonic()))
            self.set(**settings)

    @property
    def rate(self) -> float | None:
        """Downlink rate in bits a second; None: no limit."""
        return self._bottleneck.rate

    @rate.setter
    def rate(self, rate: float | None) -> None:
        # Datagrams that have left by now left at the old rate.
        self._serve(time.monotonic())
        self._bottleneck.rate = rate
        self._wake.set()

    @property
    def queue(self) -> float:
        """Seconds that a datagram may wait in the queue before further ones are dropped."""
        return self._bottleneck.limit

    @queue.setter
    def queue(self, seconds: float) -> None:
        self._bottleneck.limit = seconds

    @property
    def queue_bytes(self) -> int | None:
        """Bytes that may wait, whatever the rate; None: `queue` applies."""
        return self._bottleneck.limit_bytes

    @queue_bytes.setter
    def queue_bytes(self, most: int | None) -> None:
        self._bottleneck.limit_bytes = most

    @property
    def downloads(self) -> int:
        """Number of TCP-like downloads that share the downlink's queue. They need a rate."""
        return len(self._downloads)

    @downloads.setter
    def downloads(self, count: int) -> None:
        while len(self._downloads) > count:
            self._downloads.pop().stop()
        while len(self._downloads) < count:
            assert self.rate is not None, "a download would take the whole of an unlimited link"
            self._downloads.append(Download(self._send_of))
            self._downloads[-1].fill()

    async def rewrite(self, description: str) -> str:
        """Returns the far side's offer or answer with the link's address in place of its own; the
        link leads there from now on."""
        pattern = re.compile(r"^(a=candidate:\S+ 1 udp \d+) (\S+) (\d+) ", re.MULTILINE)
        _, host, port = pattern.search(description).groups()
        if self._up is None:
            self._up, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: _Endpoint(self._from_far), remote_addr=(host, int(port))
            )
        return pattern.sub(rf"\1 127.0.0.1 {self.port} ", description)

    def bitrate(self, seconds: float) -> float:
        """Returns the recent downlink rate in bits a second, headers included."""
        since = time.monotonic() - seconds
        return sum(size for at, size in self.log if at >= since) * 8 / seconds

    def _from_client(self, data, address):
        self._client = address
        if self._up is None:
            return
        if self._random.random() < self.loss_up:
            self.dropped += 1
            return
        delay = self.delay if self.delay_up is None else self.delay_up
        self._push(time.monotonic() + delay, self._up, data, None)

    def _from_far(self, data, _):
        if self._client is None:
            return
        now = time.monotonic()
        self._serve(now)
        if self._losses.next(self.loss, self.burst):
            self.dropped += 1
            return
        if not self._bottleneck.push(now, (data, self._client), len(data) + HEADER):
            self.dropped += 1
            return
        self._serve(now)
        self._wake.set()

    def _send_of(self, download: Download, number: int) -> None:
        """Queues a datagram of a download, which learns a round trip later what became of it."""
        now = time.monotonic()
        self._serve(now)
        if not self._bottleneck.push(now, (download, number), Download.SIZE):
            # It is missed when what was queued before it arrives.
            after = self._bottleneck.delay() + 2 * self.delay
            self._at(now + after, lambda _: download.lost(number))
        self._wake.set()

    def _serve(self, now: float) -> None:
        """Lets what has left the queue travel on."""
        for one in self._bottleneck.serve(now):
            what, detail = one.item
            if isinstance(what, Download):
                self.others.append((one.at, one.size))
                self._at(one.at + 2 * self.delay, lambda _, download=what: download.arrived())
            else:
                self.waits.append((one.at, one.waited))
                self._push(one.at + self.delay, self._down, what, detail)

    def _push(self, at, transport, data, address):
        if self.jitter:
            at = max(at + self._random.uniform(0, self.jitter), self._latest.get(transport, 0))
            self._latest[transport] = at
        times = [at]
        if self._random.random() < self.reorder:
            times = [at + self._random.uniform(0.005, 0.1)]
        if self._random.random() < self.duplicate:
            times.append(at + self._random.uniform(0, 0.1))
        for time_ in times:
            self._at(time_, lambda now: self._deliver(now, transport, data, address))

    def _at(self, at: float, action: Callable[[float], None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (at, self._number, action))
        self._wake.set()

    def _deliver(self, now, transport, data, address):
        transport.sendto(data, address)
        if transport is self._down:
            self.sent += 1
            self.log.append((now, len(data) + HEADER))

    async def rebind(self) -> None:
        """Gives the client another port in sfud's view; datagrams to the old one are lost, as when
        a NAT loses its binding."""
        old, address = self._up, self._up.get_extra_info("peername")
        self._up, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Endpoint(self._from_far), remote_addr=address
        )
        old.close()

    async def _run(self):
        while True:
            self._wake.clear()
            now = time.monotonic()
            self._serve(now)
            while self._heap and self._heap[0][0] <= now:
                heapq.heappop(self._heap)[2](now)
            next_ = [self._heap[0][0]] if self._heap else []
            if (due := self._bottleneck.due()) is not None:
                next_.append(due)
            wait = min(next_) - time.monotonic() if next_ else None
            # Sockets are read even if there is always something to send.
            await asyncio.sleep(0)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def close(self):
        self._pump.cancel()
        # An error of the relay itself is raised here.
        with contextlib.suppress(asyncio.CancelledError):
            await self._pump
        self._down.close()
        if self._up:
            self._up.close()
