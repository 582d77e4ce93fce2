"""The lines that a viewer sits behind, by name.

A line is a list of steps: from a share of its time on, these settings of `harness.link.Link` hold.
Everything that a line does not set is as in `BASE`, so two lines that are compared differ in one
thing.
"""

from dataclasses import dataclass, field
from typing import Any

from lines import traces

#: Bits a second at which nothing has to wait for long.
PLENTY = 10_000_000

#: One-way delay and queue in seconds; rates in bits a second.
BASE: dict[str, Any] = {
    "rate": PLENTY,
    "delay": 0.02,
    "jitter": 0.0,
    "loss": 0.0,
    "burst": None,
    "queue": 0.2,
    "queue_bytes": None,
    "downloads": 0,
}

#: The rate at which delay, jitter and queues are compared: the middle layer fits, the top one does
#: not.
MIDDLING = 750_000

#: Datagrams that a burst loses, on average.
BURST = 5


@dataclass(frozen=True)
class Line:
    name: str
    about: str
    """Description in the table."""
    steps: list[tuple[float, dict[str, Any]]]
    """(share of the line's time, settings from then on), the first at 0."""
    length: float = 1.0
    """Duration, as a multiple of the usual seconds."""
    firefox: bool = False
    """Whether Firefox watches, too, if nothing else is asked for."""
    trace: Any = None
    """A function of (seed, seconds) that returns a trace: its rates come after the first step."""
    changes: list[float] = field(default_factory=list)
    """Shares of the time at which the line becomes another, so that a reaction is expected."""

    def seconds(self, usual: float) -> float:
        return usual * self.length

    def lead(self) -> dict[str, Any]:
        """Returns the settings of the free line before: as long as this one, as routes seldom
        change during a call, and otherwise as in `BASE`."""
        first = self.steps[0][1]
        return BASE | {"delay": first.get("delay", BASE["delay"])}

    def schedule(self, seed: int, usual: float) -> list[tuple[float, dict[str, Any]]]:
        """Returns (second, settings to change), the first at 0 and complete."""
        seconds = self.seconds(usual)
        steps = [(share * seconds, dict(settings)) for share, settings in self.steps]
        if self.trace:
            steps += [(at, {"rate": rate}) for at, rate in self.trace(seed, seconds)]
        steps[0] = (0.0, BASE | steps[0][1])
        return steps


def steady(name: str, about: str, firefox: bool = False, **settings: Any) -> Line:
    """Returns a line that stays as it is."""
    return Line(name, about, [(0.0, settings)], firefox=firefox)


def stepping(name: str, about: str, *steps: dict[str, Any], firefox: bool = False) -> Line:
    """Returns a line of equal parts, long enough to settle in each."""
    shares = [number / len(steps) for number in range(len(steps))]
    return Line(name, about, list(zip(shares, steps)), 2.0, firefox, changes=shares[1:])


def _rates() -> list[Line]:
    return [
        steady(f"{rate}k", f"{rate:,} kbit/s", firefox=rate == 600, rate=rate * 1000)
        for rate in (150, 250, 600, 1500, 3000)
    ]


def _losses() -> list[Line]:
    return [
        steady(f"loss-{share}", f"{share} % random loss", firefox=share == 5, loss=share / 100)
        for share in (0, 2, 5, 10)
    ] + [
        steady(
            f"burst-{share}",
            f"{share} % loss, {BURST} in a row",
            firefox=share == 5,
            loss=share / 100,
            burst=BURST,
        )
        for share in (2, 5, 10)
    ]


def _delays() -> list[Line]:
    return [
        steady(f"delay-{delay}", f"750 kbit/s, {delay} ms each way", rate=MIDDLING,
               delay=delay / 1000)
        for delay in (20, 100, 200)
    ] + [
        steady("jitter-30", "750 kbit/s, up to 30 ms of jitter", rate=MIDDLING, jitter=0.03),
        steady("queue-50ms", "750 kbit/s, a queue of 50 ms", rate=MIDDLING, queue=0.05),
        steady("queue-1s", "750 kbit/s, a queue of 1 s", rate=MIDDLING, queue=1.0),
    ]  # fmt: skip


def _changes() -> list[Line]:
    return [
        stepping(
            "step-3000-600", "3,000, then 600, then 3,000 kbit/s",
            {"rate": 3_000_000}, {"rate": 600_000}, {"rate": 3_000_000}, firefox=True,
        ),
        stepping(
            "step-250-1500", "250, then 1,500, then 250 kbit/s",
            {"rate": 250_000}, {"rate": 1_500_000}, {"rate": 250_000},
        ),
        stepping(
            "download", "2,000 kbit/s, a download in the middle third",
            {"rate": 2_000_000}, {"downloads": 1}, {"downloads": 0},
        ),
    ]  # fmt: skip


def _traces() -> list[Line]:
    # Queues in bytes, as devices have them: 100 ms of the Wi-Fi's usual rate, 500 ms of LTE's.
    wifi = {"jitter": 0.005, "loss": 0.005, "burst": 3, "queue_bytes": 50_000}
    lte = {"delay": 0.03, "jitter": 0.01, "queue_bytes": 150_000}
    return [
        Line("wifi", "Wi-Fi, contended (a trace of ours)", [(0.0, wifi)], 2.0, True, traces.wifi),
        Line("lte", "LTE, moving (a trace of ours)", [(0.0, lte)], 2.0, False, traces.lte),
    ]


LINES = [*_rates(), *_losses(), *_delays(), *_changes(), *_traces()]


def named(names: list[str]) -> list[Line]:
    """Returns the lines of these names, in the usual order; all without names."""
    unknown = set(names) - {line.name for line in LINES}
    if unknown:
        raise KeyError(", ".join(sorted(unknown)))
    return [line for line in LINES if not names or line.name in names]
