"""Webhooks: signed, in order for each room, at least once, and kept on disk until delivered."""

import asyncio
import collections
import fnmatch
import hashlib
import hmac
import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import aiohttp

from sfud_gateway.config import Config, Webhook
from sfud_gateway.metrics import Metrics
from sfud_gateway.store import Store

log = logging.getLogger("webhooks")

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60  # seconds between attempts
AT_ONCE = 8  # deliveries of one tenant
LOST = "webhooks.lost"


def signature(secrets: tuple[bytes, ...], body: bytes, now: int) -> str:
    """Returns the header's value: one HMAC for each secret, so that a receiver can change its."""
    signed = f"{now}.".encode() + body
    marks = [hmac.new(it, signed, hashlib.sha256).hexdigest() for it in secrets]
    return ",".join([f"t={now}"] + [f"v1={mark}" for mark in marks])


class Room:
    """The webhooks of one room that wait, and its pause after a failure."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.numbers: collections.deque[int] = collections.deque()
        self.failures = 0
        self.timer: asyncio.TimerHandle | None = None


class Queue:
    """A tenant's webhooks."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.ready: asyncio.Queue[Room] = asyncio.Queue()
        self.count = 0
        self.workers: list[asyncio.Task] = []

    def add(self, room: str, number: int) -> None:
        self.count += 1
        if room not in self.rooms:
            self.rooms[room] = Room(room)
            self.ready.put_nowait(self.rooms[room])
        self.rooms[room].numbers.append(number)

    def wake(self) -> None:
        """Ends the pauses of all rooms: the receiver is there again."""
        for room in self.rooms.values():
            if room.timer:
                room.timer.cancel()
                room.timer = None
                self.ready.put_nowait(room)


class Webhooks:
    def __init__(self, config: Callable[[], Config], store: Store, metrics: Metrics):
        self._config, self._store, self._metrics = config, store, metrics
        self._queues: dict[str, Queue] = {}
        self._http: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        self._http = aiohttp.ClientSession(auto_decompress=False)
        for number, tenant, room in self._store.queued():
            self._queue(tenant).add(room, number)
        for tenant in self._queues:
            self._count(tenant)

    async def stop(self) -> None:
        workers = [it for queue in self._queues.values() for it in queue.workers]
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        if self._http:
            await self._http.close()

    def _queue(self, tenant: str) -> Queue:
        if tenant not in self._queues:
            queue = self._queues[tenant] = Queue()
            queue.workers = [
                asyncio.create_task(self._work(tenant, queue)) for _ in range(AT_ONCE)
            ]
        return self._queues[tenant]

    def _count(self, tenant: str) -> None:
        self._metrics.webhooks_queued.labels(tenant).set(self._queue(tenant).count)

    def _target(self, tenant: str) -> Webhook | None:
        found = self._config().tenants.get(tenant)
        return found.webhook if found else None

    def put(self, id: str, tenant: str, room: str, event: str, at: float, data: dict) -> None:
        """Queues a webhook, unless the tenant does not want this event."""
        target = self._target(tenant)
        if target is None or not any(fnmatch.fnmatchcase(event, it) for it in target.events):
            return
        limit = self._config().tenants[tenant].limits.webhooks
        if self._queue(tenant).count >= limit:
            log.error("tenant %s has %d webhooks waiting; %s is lost", tenant, limit, event)
            self._store.lose(tenant, at)
            self._metrics.webhooks_lost.labels(tenant, "queue-full").inc()
            return
        # A loss is told before the events that follow it.
        self._tell_lost(tenant)
        self._enqueue(id, tenant, room, event, at, data)

    def _tell_lost(self, tenant: str) -> None:
        if lost := self._store.take_lost(tenant):
            count, first, last = lost
            data = {"count": count, "first": first, "last": last}
            id = hashlib.sha256(f"{tenant} {first} {last}".encode()).hexdigest()[:32]
            self._enqueue(id, tenant, "", LOST, time.time(), data)

    def _enqueue(self, id: str, tenant: str, room: str, event: str, at: float, data: dict) -> None:
        content: dict[str, Any] = {"id": id, "event": event, "tenant": tenant}
        content |= {"room": room} if room else {}
        content |= {"time": at, "data": data}
        body = json.dumps(content, separators=(",", ":"))
        number = self._store.enqueue(id, tenant, room, event, body)
        if number is not None:
            self._queue(tenant).add(room, number)
            self._count(tenant)

    async def _work(self, tenant: str, queue: Queue) -> None:
        while True:
            room = await queue.ready.get()
            number = room.numbers[0]
            # The next process must know of everything that a receiver has been told.
            self._store.commit()
            row = self._store.webhook(number)
            done = row is None or await self._attempt(tenant, room, *row)
            if done:
                self._finish(tenant, queue, room, number)
            else:
                room.failures += 1
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(room.failures - 1, 10))
                room.timer = asyncio.get_running_loop().call_later(
                    pause * random.uniform(0.7, 1), self._resume, queue, room
                )

    def _resume(self, queue: Queue, room: Room) -> None:
        room.timer = None
        queue.ready.put_nowait(room)

    def _finish(self, tenant: str, queue: Queue, room: Room, number: int) -> None:
        self._store.delete_webhooks([number])
        room.numbers.popleft()
        queue.count -= 1
        if room.failures:
            queue.wake()
        room.failures = 0
        if room.numbers:
            queue.ready.put_nowait(room)
        else:
            del queue.rooms[room.name]
        self._count(tenant)

    async def _attempt(
        self, tenant: str, room: Room, id: str, event: str, body: str, created: float
    ) -> bool:
        """Returns whether the webhook is done with: delivered, or given up."""
        target = self._target(tenant)
        if target is None or time.time() - created > target.give_up_seconds:
            log.error("a webhook of %s is given up: %s %s", tenant, event, id)
            cause = "not-configured" if target is None else "too-old"
            self._metrics.webhooks_lost.labels(tenant, cause).inc()
            if target and event != LOST:
                self._store.lose(tenant, created)
            return True
        content = body.encode()
        headers = {
            "Content-Type": "application/json", "User-Agent": "sfud-gateway",
            "Sfud-Event": event, "Sfud-Event-Id": id, "Sfud-Attempt": str(room.failures + 1),
            "Sfud-Signature": signature(target.secrets, content, int(time.time())),
        }  # fmt: skip
        timeout = aiohttp.ClientTimeout(total=target.timeout_seconds)
        try:
            assert self._http
            async with self._http.post(
                target.url, data=content, headers=headers, timeout=timeout, allow_redirects=False
            ) as reply:
                status = str(reply.status)
                delivered = 200 <= reply.status < 300
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # Not its text, which has the URL: a URL may have a secret in it.
            status, delivered = type(error).__name__, False
        if delivered:
            self._metrics.webhooks_delivered.labels(tenant).inc()
        else:
            self._metrics.webhooks_failed.labels(tenant).inc()
            level = logging.WARNING if room.failures == 0 else logging.DEBUG
            log.log(level, "the webhooks of %s are not taken: %s", tenant, status)
        return delivered
