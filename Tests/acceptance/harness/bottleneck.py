"""Treatment of datagrams by a link, besides delay: a queue that a rate empties, loss in bursts, and
downloads that fill the queue.

Nothing here has a clock or a socket: the time comes in as an argument, in seconds.
"""

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Served:
    """A datagram that has left the queue."""

    item: Any
    size: int
    at: float
    """Time at which its last bit left."""
    waited: float
    """Seconds until its first bit left: the queueing delay."""


@dataclass
class _Waiting:
    item: Any
    size: int
    arrived: float
    left: float
    """Bits that have not left yet."""
    begun: float | None = None


class Bottleneck:
    """A queue that is emptied at a rate, first in, first out; further datagrams are dropped when it
    is full.

    Call `serve` before a change of the rate, which applies to what still waits, and before `push`.
    """

    def __init__(self):
        #: Bits a second; None: no limit, nothing waits.
        self.rate: float | None = None
        #: Amount that may wait before further datagrams are dropped: seconds at the present rate, or
        #: bytes if `limit_bytes` is set.
        self.limit = 0.3
        self.limit_bytes: int | None = None
        self._queue: deque[_Waiting] = deque()
        self._backlog = 0.0
        self._now = 0.0

    def push(self, now: float, item: Any, size: int) -> bool:
        """Adds a datagram of `size` bytes; returns whether there was room for it."""
        if self.rate is not None and self._backlog > self._most_bits():
            return False
        self._queue.append(_Waiting(item, size, now, size * 8))
        self._backlog += size * 8
        return True

    def serve(self, now: float) -> list[Served]:
        """Returns what has left by `now`, in order."""
        served = []
        while self._queue:
            head = self._queue[0]
            if head.begun is None:
                head.begun = self._now = max(self._now, head.arrived)
            leaves = self._leaves(head)
            if leaves > now:
                sent = max(0.0, now - self._now) * (self.rate or 0)
                head.left -= sent
                self._backlog -= sent
                break
            self._queue.popleft()
            self._backlog -= head.left
            self._now = leaves
            served.append(Served(head.item, head.size, leaves, head.begun - head.arrived))
        self._now = max(self._now, now)
        return served

    def due(self) -> float | None:
        """Returns when the next datagram will have left; None: there is none, or the rate is 0."""
        leaves = self._leaves(self._queue[0]) if self._queue else math.inf
        return None if leaves == math.inf else leaves

    def delay(self) -> float:
        """Returns how many seconds a datagram that comes now will wait."""
        return self._backlog / self.rate if self.rate else 0.0

    def _leaves(self, head: _Waiting) -> float:
        if self.rate is None:
            return self._now
        return self._now + head.left / self.rate if self.rate else math.inf

    def _most_bits(self) -> float:
        if self.limit_bytes is not None:
            return self.limit_bytes * 8
        return self.limit * self.rate


class Losses:
    """Loss of datagrams: independent, or in bursts (Gilbert's model: in one state all are
    lost, in the other none)."""

    def __init__(self, chance: random.Random):
        self._chance = chance
        self._losing = False

    def next(self, share: float, burst: float | None = None) -> bool:
        """Returns whether the next datagram is lost, of which `share` is; with `burst`, so many in
        a row on average (1 or more)."""
        if not share:
            self._losing = False
            return False
        if burst is None:
            return self._chance.random() < share
        ends = 1 / burst
        begins = min(1.0, ends * share / (1 - share)) if share < 1 else 1.0
        if self._chance.random() < (ends if self._losing else begins):
            self._losing = not self._losing
        return self._losing


@dataclass
class Download:
    """A download that takes what it gets, as TCP with Reno's congestion control (RFC 5681): slow
    start, then one more datagram a round trip, half as many after a loss.

    `send(download, number)` gives the queue one of its datagrams; the owner tells it, a round trip
    later, which came through. Nothing is sent again, as nobody reads it.
    """

    send: Callable[["Download", int], None]
    window: float = 10.0
    threshold: float = math.inf
    _flying: int = 0
    _next: int = 0
    _halved_at: int = field(default=-1)
    _stopped: bool = False

    #: Bytes of a datagram, headers included.
    SIZE = 1500

    def fill(self) -> None:
        """Sends what the window allows."""
        while not self._stopped and self._flying < int(self.window):
            self._flying += 1
            self._next += 1
            self.send(self, self._next - 1)

    def arrived(self) -> None:
        """One of its datagrams was acknowledged."""
        self._flying -= 1
        self.window += 1 if self.window < self.threshold else 1 / self.window
        self.fill()

    def lost(self, number: int) -> None:
        """A datagram is known to be lost; losses of one window count once."""
        self._flying -= 1
        if number > self._halved_at:
            self._halved_at = self._next - 1
            self.threshold = self.window = max(self.window / 2, 2.0)
        self.fill()

    def stop(self) -> None:
        """Sends nothing more; what is under way still arrives."""
        self._stopped = True
