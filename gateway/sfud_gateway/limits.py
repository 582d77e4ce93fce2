"""Token buckets, and the limits of tenants."""

import time
from typing import Any

from sfud_gateway.config import Tenant
from sfud_gateway.refusals import refuse
from sfud_gateway.sfud_ipc import Refused


class Bucket:
    """Allows `rate` a second, and as many at once."""

    def __init__(self, rate: float):
        self.rate = rate
        self._level, self._at = rate, time.monotonic()

    def _fill(self) -> None:
        now = time.monotonic()
        self._level = min(self.rate, self._level + (now - self._at) * self.rate)
        self._at = now

    def take(self) -> bool:
        self._fill()
        if self._level < 1:
            return False
        self._level -= 1
        return True

    def wait(self, cost: float = 1) -> float:
        """Takes that many, what comes in five seconds at most; returns the seconds until then."""
        self._fill()
        self._level -= min(cost, 5 * self.rate)
        return max(0.0, -self._level / self.rate)


class Admission:
    """The limits of tenants on joins, rooms and participants."""

    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}

    def check(
        self, tenant: Tenant, room: str, id: str, people: dict[str, set[str]],
        joining: dict[str, set[Any]],
    ) -> None:
        """Raises `Refused` unless one more may join; somebody who is there may come back."""
        limits = tenant.limits
        bucket = self._buckets.setdefault(tenant.name, Bucket(limits.joins_per_second))
        bucket.rate = limits.joins_per_second
        if not bucket.take():
            raise beyond("joinsPerSecond", limits.joins_per_second)
        if id in people.get(room, ()):
            return
        prefix = tenant.name + ":"
        rooms = {it for it in [*people, *joining] if it.startswith(prefix)}
        count = sum(len(people.get(it, ())) + len(joining.get(it, ())) for it in rooms)
        if count >= limits.participants:
            raise beyond("participants", limits.participants)
        if room not in rooms and len(rooms) >= limits.rooms:
            raise beyond("rooms", limits.rooms)


def beyond(name: str, value: int) -> Refused:
    return refuse(
        "limit-reached", f"this tenant's limit {name} is reached", limit=name, value=value
    )
