"""Figures of a call, from its recording. Times are in seconds from the line's
beginning; before that the call had a free line for a while."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from harness.expect import advances, longest_freeze
from harness.media import Frame

#: Seconds after a change of the line in which the size of the picture may still be wrong.
SETTLE = 5.0
#: A layer fits if it and the sound take at most this share of the line.
FITS = 0.9
#: Bytes that a datagram takes besides its RTP packet: IP, UDP and the SRTP tag.
AROUND = 28 + 10


@dataclass
class Recording:
    """All that was recorded of one call."""

    seconds: float
    frames: list[Frame]
    """Pictures that the viewer showed, before the line began too."""
    lead: float = 0.0
    """Seconds from the connection to the line's beginning."""
    changes: list[float] = field(default_factory=list)
    """Times at which the line became another."""
    capacity: list[tuple[float, float]] = field(default_factory=list)
    """(time, bits a second that the call may take); empty if that cannot be said."""
    rates: list[tuple[float, float]] = field(default_factory=list)
    """(time, bits a second of the line)."""
    delivered: list[tuple[float, int]] = field(default_factory=list)
    """(time, bytes) of datagrams that the viewer was sent, headers included."""
    waits: list[tuple[float, float]] = field(default_factory=list)
    """(time, seconds in the queue) of datagrams."""
    others: list[tuple[float, int]] = field(default_factory=list)
    """(time, bytes) of the downloads beside it."""
    estimates: list[tuple[float, float]] = field(default_factory=list)
    """(time, bits a second that the sender took the line for)."""
    counters: dict[str, float] = field(default_factory=dict)
    """Counters of the viewer, by the names in `COUNTERS`."""
    layers: dict[int, float] = field(default_factory=dict)
    """Bits a second that the publisher sent, by the picture's height, sound included."""
    cpu_limited: float = 0.0
    """Seconds in which the publisher's encoder gave in to the machine."""
    dropped: int = 0
    """Datagrams that were lost, or found the queue full."""


#: From W3C webrtc-stats; a browser without one of them leaves it out.
COUNTERS = [
    "freezeCount", "totalFreezesDuration", "framesDecoded", "framesDropped", "keyFramesDecoded",
    "packetsLost", "nackCount", "pliCount", "retransmittedPacketsReceived", "jitterBufferDelay",
    "jitterBufferEmittedCount",
]  # fmt: skip


def figures(call: Recording) -> dict[str, Any]:
    """Returns the figures of one call, ready for JSON; None for what there is no figure of."""
    shown = readable(call.frames)
    frames = of_the_line(shown)
    spans = sizes_over_time(frames, call.seconds)
    waits = sorted(wait for _, wait in call.waits)
    bits = 8 * sum(size for _, size in call.delivered)
    frozen = call.counters.get("totalFreezesDuration")
    return {
        "deliveredBits": bits,
        "bitrate": bits / call.seconds,
        "othersBitrate": 8 * sum(size for _, size in call.others) / call.seconds,
        "framesPerSecond": sum(frame.time >= 0 for frame in frames) / call.seconds,
        "firstFrame": shown[0].time + call.lead if shown else None,
        "sizes": shares(spans, [(0.0, call.seconds)]),
        "settledSizes": shares(spans, settled(call.changes, call.seconds)),
        "atBest": at_best(spans, call),
        "switches": len(spans) - 1 if spans else 0,
        "freezes": call.counters.get("freezeCount"),
        "frozen": frozen,
        "frozenPerMinute": None if frozen is None else frozen * 60 / call.seconds,
        "longestGap": longest_gap(frames, call.seconds),
        "reactions": reactions(spans, call.changes, call.seconds),
        "queueMean": sum(waits) / len(waits) if waits else None,
        "queueP95": percentile(waits, 95),
        "estimateMedian": percentile(sorted(rate for _, rate in call.estimates), 50),
        "estimateP95": percentile(sorted(rate for _, rate in call.estimates), 95),
        "layers": {str(height): rate for height, rate in sorted(call.layers.items())},
        "cpuLimited": call.cpu_limited,
        "dropped": call.dropped,
        "counters": call.counters,
    }


def readable(frames: list[Frame]) -> list[Frame]:
    """Returns the new pictures, without repeated ones and those whose counter was misread, which
    goes on from neither neighbour."""
    fresh = without_repeats(frames)
    links = [advances(before, after) for before, after in itertools.pairwise(fresh)]
    return without_repeats(
        [
            frame
            for frame, before, after in zip(fresh, [False, *links], [*links, False])
            if before or after
        ]
    )


def without_repeats(frames: list[Frame]) -> list[Frame]:
    return frames[:1] + [
        after for before, after in itertools.pairwise(frames) if after.counter != before.counter
    ]


def of_the_line(frames: list[Frame]) -> list[Frame]:
    """Returns the frames from the line's beginning on, after the one that was shown then."""
    before = sum(frame.time < 0 for frame in frames)
    return frames[max(0, before - 1) :]


@dataclass(frozen=True)
class Span:
    """A time in which the picture had one size."""

    begin: float
    end: float
    height: int


def sizes_over_time(frames: list[Frame], end: float) -> list[Span]:
    """Returns the sizes of the picture, each until the first frame of the next; before the first
    frame there is none."""
    firsts = [list(run)[0] for _, run in itertools.groupby(frames, key=lambda one: one.height)]
    ends = [frame.time for frame in firsts[1:]] + [end]
    return [Span(frame.time, end, frame.height) for frame, end in zip(firsts, ends)]


def settled(changes: list[float], end: float) -> list[tuple[float, float]]:
    """Returns the times from `SETTLE` seconds after the start and each change to the next one."""
    begins = sorted({0.0, *changes})
    ends = [*begins[1:], end]
    return [(begin + SETTLE, end) for begin, end in zip(begins, ends) if begin + SETTLE < end]


def overlap(span: Span, begin: float, end: float) -> float:
    return max(0.0, min(span.end, end) - max(span.begin, begin))


def shares(spans: list[Span], times: list[tuple[float, float]]) -> dict[str, float]:
    """Returns the share of the times at each height, tallest first; what is missing to 1 is time
    before the first frame."""
    total = sum(end - begin for begin, end in times)
    at: Counter[int] = Counter()
    for span in spans:
        at[span.height] += sum(overlap(span, begin, end) for begin, end in times)
    return {str(height): at[height] / total for height in sorted(at, reverse=True) if at[height]}


def at_best(spans: list[Span], call: Recording) -> float | None:
    """Returns the share of the settled time at the highest layer that fits, or above; None if no
    layer fits, or if there are no layers or no known capacity."""
    if not call.capacity or len(call.layers) < 2:
        return None
    good = total = 0.0
    steps = call.capacity + [(call.seconds, 0.0)]
    for (since, capacity), (until, _) in itertools.pairwise(steps):
        fitting = [height for height, rate in call.layers.items() if rate <= FITS * capacity]
        if not fitting or since + SETTLE >= until:
            continue
        total += until - since - SETTLE
        good += sum(
            overlap(span, since + SETTLE, until) for span in spans if span.height >= max(fitting)
        )
    return good / total if total else None


def longest_gap(frames: list[Frame], end: float) -> float | None:
    """Returns the longest time without a new picture, apart from pauses of the publisher itself;
    also at the end, but not before the first one. None without pictures."""
    if not frames:
        return None
    between = longest_freeze(frames)[0] if len(frames) > 1 else 0.0
    return max(between, end - frames[-1].time)


def reactions(spans: list[Span], changes: list[float], end: float) -> list[float | None]:
    """Returns the seconds from each change of the line to the first frame of another size; None
    if the size stayed until the next change."""
    return [
        next((one.begin - change for one in spans[1:] if change < one.begin < until), None)
        for change, until in zip(changes, [*changes[1:], end])
    ]


def percentile(ordered: list[float], percent: float) -> float | None:
    """Returns the value that so many percent of the values do not exceed."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def growth(before: dict[str, Any], after: dict[str, Any]) -> dict[str, float]:
    """Returns by how much the viewer's counters grew; a counter that it lacks is left out."""
    return {name: after[name] - before.get(name, 0) for name in COUNTERS if name in after}


def layer_rates(
    before: list[dict[str, Any]], after: list[dict[str, Any]], seconds: float
) -> dict[int, float]:
    """Returns the bits a second of each layer with the sound, by height, from the publisher's
    outbound RTP statistics."""

    def bits(entry: dict[str, Any]) -> float:
        old = next((one for one in before if one["ssrc"] == entry["ssrc"]), {})
        grown = {
            name: entry.get(name, 0) - old.get(name, 0)
            for name in ("bytesSent", "headerBytesSent", "packetsSent")
        }
        around = grown["headerBytesSent"] + AROUND * grown["packetsSent"]
        return 8 * (grown["bytesSent"] + around)

    sound = sum(bits(one) for one in after if one["kind"] == "audio")
    return {
        one["frameHeight"]: (bits(one) + sound) / seconds
        for one in after
        if one["kind"] == "video" and one.get("frameHeight")
    }


def cpu_limited(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> float:
    """Returns how many seconds the processor limited the publisher's quality."""

    def worst(entries: Iterable[dict[str, Any]]) -> float:
        return max((one.get("qualityLimitationDurations", {}).get("cpu", 0) for one in entries),
                   default=0)  # fmt: skip

    return worst(after) - worst(before)
