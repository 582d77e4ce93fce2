"""Rates of radio links over time, made up by a seeded generator.

They are models of ours, not recordings: what matters to a call is in them (a rate that wanders,
stalls, a contended channel, handovers), with round numbers that are written down here. The same
seed and length give the same trace.

A trace is a list of (second, bits a second), one each tenth of a second.
"""

import math
import random

#: Seconds between two rates of a trace.
TICK = 0.1
#: Bits a second in a stall: next to nothing, but not nothing.
STALL = 40_000

Trace = list[tuple[float, float]]


def wifi(seed: int, seconds: float) -> Trace:
    """Returns a contended Wi-Fi: mostly 4 Mbit/s, wandering by about a third within seconds.

    About every 8 s others take half to four fifths of the channel for 1 to 4 s, and about every 6 s
    nothing much gets through for 0.1 to 0.3 s, as when a station scans or a microwave oven starts.
    """
    chance = random.Random(f"wifi {seed}")
    wander = Wander(chance, spread=0.3, memory=2.0)
    others = Episodes(chance, every=8.0, shortest=1.0, longest=4.0)
    stalls = Episodes(chance, every=6.0, shortest=0.1, longest=0.3)
    trace = []
    for at in ticks(seconds):
        rate = 4_000_000 * wander.next()
        if share := others.at(at):
            rate *= 0.5 - 0.3 * share
        trace.append((at, STALL if stalls.at(at) else rate))
    return trace


def lte(seed: int, seconds: float) -> Trace:
    """Returns LTE on the move: mostly 2.5 Mbit/s, wandering by about half within some seconds.

    About every 15 s a handover lets nothing much through for 0.2 to 0.5 s, and the new cell is
    better or worse: by a factor from 0.5 to 1.5.
    """
    chance = random.Random(f"lte {seed}")
    wander = Wander(chance, spread=0.5, memory=5.0)
    handovers = Episodes(chance, every=15.0, shortest=0.2, longest=0.5)
    trace, cell, was = [], 1.0, False
    for at in ticks(seconds):
        rate = 2_500_000 * cell * wander.next()
        stalled = bool(handovers.at(at))
        if was and not stalled:
            cell = chance.uniform(0.5, 1.5)
        was = stalled
        trace.append((at, STALL if stalled else rate))
    return trace


def ticks(seconds: float) -> list[float]:
    return [number * TICK for number in range(math.ceil(seconds / TICK))]


class Wander:
    """A factor around 1 that wanders: its logarithm is a first-order autoregression."""

    def __init__(self, chance: random.Random, spread: float, memory: float):
        """`spread` is the logarithm's standard deviation, `memory` the seconds in which all but a
        third of the past is forgotten."""
        self._chance, self._spread = chance, spread
        self._keep = math.exp(-TICK / memory)
        self._value = chance.gauss(0, spread)

    def next(self) -> float:
        new = self._chance.gauss(0, self._spread * math.sqrt(1 - self._keep**2))
        self._value = self._keep * self._value + new
        # The factor's mean is 1.
        return math.exp(self._value - self._spread**2 / 2)


class Episodes:
    """Times at which something happens, `every` so many seconds on average, for a while."""

    def __init__(self, chance: random.Random, every: float, shortest: float, longest: float):
        self._chance, self._every = chance, every
        self._lengths = (shortest, longest)
        self._plan(0.0)

    def _plan(self, after: float) -> None:
        self._begins = after + self._chance.expovariate(1 / self._every)
        self._ends = self._begins + self._chance.uniform(*self._lengths)
        # From just above 0 to 1.
        self._strength = 1 - self._chance.random()

    def at(self, time: float) -> float:
        """Returns how strong the episode of this time is, from 0 (there is none) to 1; times come
        in order."""
        if time >= self._ends:
            self._plan(self._ends)
        return self._strength if time >= self._begins else 0.0
