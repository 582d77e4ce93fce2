"""A network between one client and sfud, worse than loopback.

A `Link` is a relay of datagrams: the client sends to the link's address instead of sfud's, which
`rewrite` puts into the answer. Downlink datagrams pass a bottleneck: a queue that is emptied at a
rate, a delay, random loss. Uplink datagrams are delayed and lost by a share of their own. In either
direction some are late or duplicated.
"""

import asyncio
import heapq
import random
import re
import time

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
        #: Downlink rate in bits a second; None: no limit.
        self.rate: float | None = None
        #: Seconds in each direction, unless the uplink has a value of its own.
        self.delay = 0.0
        self.delay_up: float | None = None
        #: Maximum random delay in addition, in seconds; it reorders nothing.
        self.jitter = 0.0
        #: Shares of datagrams lost on the downlink and on the uplink.
        self.loss = 0.0
        self.loss_up = 0.0
        #: Shares of datagrams, in either direction, that are overtaken by later ones, and that are
        #: duplicated.
        self.reorder = 0.0
        self.duplicate = 0.0
        #: Seconds that a datagram may wait in the queue before further ones are dropped.
        self.queue = 0.3
        self.sent = 0
        self.dropped = 0
        #: (time, bytes) of sent downlink datagrams, for rates.
        self.log: list[tuple[float, int]] = []
        self._random = random.Random(seed)
        self._free_at = 0.0
        self._heap: list[tuple[float, int, object, bytes, object]] = []
        self._number = 0
        #: Departure time of the last datagram, by its transport.
        self._latest: dict[object, float] = {}
        self._client = None
        self._pump = None
        self._up = None

    @classmethod
    async def open(cls, **settings) -> "Link":
        link = cls()
        for name, value in settings.items():
            assert hasattr(link, name), name
            setattr(link, name, value)
        loop = asyncio.get_running_loop()
        link._down, _ = await loop.create_datagram_endpoint(
            lambda: _Endpoint(link._from_client), local_addr=("127.0.0.1", 0)
        )
        link.port = link._down.get_extra_info("sockname")[1]
        link._wake = asyncio.Event()
        link._pump = asyncio.create_task(link._run())
        return link

    async def rewrite(self, answer: str) -> str:
        """Returns the answer with the link's address in place of sfud's; the link leads there from
        now on."""
        pattern = re.compile(r"^(a=candidate:\S+ 1 udp \d+) (\S+) (\d+) ", re.MULTILINE)
        _, host, port = pattern.search(answer).groups()
        if self._up is None:
            self._up, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: _Endpoint(self._from_sfud), remote_addr=(host, int(port))
            )
        return pattern.sub(rf"\1 127.0.0.1 {self.port} ", answer)

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

    def _from_sfud(self, data, _):
        if self._client is None:
            return
        now = time.monotonic()
        if self._random.random() < self.loss:
            self.dropped += 1
            return
        start = max(now, self._free_at)
        if self.rate is not None:
            if start - now > self.queue:
                self.dropped += 1
                return
            start += (len(data) + HEADER) * 8 / self.rate
            self._free_at = start
        self._push(start + self.delay, self._down, data, self._client)

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
            self._number += 1
            heapq.heappush(self._heap, (time_, self._number, transport, data, address))
        self._wake.set()

    async def rebind(self) -> None:
        """Gives the client another port in sfud's view; datagrams to the old one are lost, as when
        a NAT loses its binding."""
        old, address = self._up, self._up.get_extra_info("peername")
        self._up, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Endpoint(self._from_sfud), remote_addr=address
        )
        old.close()

    async def _run(self):
        while True:
            self._wake.clear()
            now = time.monotonic()
            while self._heap and self._heap[0][0] <= now:
                _, _, transport, data, address = heapq.heappop(self._heap)
                transport.sendto(data, address)
                if transport is self._down:
                    self.sent += 1
                    self.log.append((now, len(data) + HEADER))
            wait = self._heap[0][0] - time.monotonic() if self._heap else None
            try:
                await asyncio.wait_for(self._wake.wait(), wait)
            except TimeoutError:
                pass

    async def close(self):
        self._pump.cancel()
        self._down.close()
        if self._up:
            self._up.close()
