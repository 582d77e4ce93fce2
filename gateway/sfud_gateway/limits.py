"""Token buckets."""

import time


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

    def wait(self) -> float:
        """Takes one, and returns the seconds until it is there."""
        self._fill()
        self._level -= 1
        return max(0.0, -self._level / self.rate)
