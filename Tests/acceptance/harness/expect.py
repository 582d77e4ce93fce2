"""Checks of a viewer's picture and sound; each awaits its condition and reports what it saw."""

import itertools
import statistics
import time

from harness.media import COUNTER_BITS, Frame, Sound, hue_distance
from harness.peer import Peer
from harness.process import until

#: The longest time without a new frame or sound that is no freeze, in seconds. The sources run at
#: 15 to 20 frames a second on a machine that encodes and decodes everything on two cores.
FREEZE = 0.5
#: GStreamer as a viewer has been seen to pause for up to 0.61 s in a few calls. The reason is
#: unknown: its own loss counter counts late packets as lost.
FREEZES = {"GStreamer": 1.0}


class Froze(AssertionError):
    """The picture stood still for too long. On a machine that is busy with other tests this may be
    a stall of the machine, so the test is repeated alone."""


def advances(before: Frame, after: Frame) -> bool:
    """Whether the second is a later picture of the same source."""
    steps = (after.counter - before.counter) % (1 << COUNTER_BITS)
    return 0 < steps < 200


def describe(frames: list[Frame]) -> str:
    tail = [
        f"{frame.time:.2f} {frame.width}x{frame.height} hue {frame.hue:.0f} #{frame.counter}"
        for frame in frames[-5:]
    ]
    return f"{len(frames)} frames, last: {tail}"


def longest_freeze(changes: list[Frame]) -> tuple[float, Frame, Frame]:
    """Returns the longest freeze, in seconds, and the pictures before and after it.

    Only time in which the publisher drew pictures counts. A publisher that drew none, on a busy
    machine, goes on with the next number, so all its later pictures are late by that pause; after a
    freeze on the way they are punctual again.
    """
    numbers = [0]
    for before, after in itertools.pairwise(changes):
        numbers.append(numbers[-1] + (after.counter - before.counter) % (1 << COUNTER_BITS))
    # One picture may come in two sizes.
    period = statistics.median(
        (changes[i + 1].time - changes[i].time) / (numbers[i + 1] - numbers[i])
        for i in range(len(changes) - 1)
        if numbers[i + 1] > numbers[i]
    )
    late = [frame.time - number * period for frame, number in zip(changes, numbers)]
    found = []
    for i, (before, after) in enumerate(itertools.pairwise(changes)):
        pause = max(0, min(late[i + 1 :]) - late[i])
        found.append((after.time - before.time - pause, before, after))
    return max(found, key=lambda one: one[0])


async def trouble(peer: Peer, mid: str) -> dict:
    """Returns the viewer's counters that show where a picture was lost: on the path, or in
    itself."""
    names = ["packetsLost", "nackCount", "pliCount", "keyFramesDecoded", "framesReceived"]
    names += ["framesDecoded", "framesDropped", "retransmittedPacketsReceived"]
    told = await peer.inbound(mid)
    return {name: told[name] for name in names if name in told}


async def first_frame(peer: Peer, mid: str, hue: float, since: float, seconds: float = 10) -> Frame:
    """Awaits the first picture of `hue` after the time `since`."""
    frames: list[Frame] = []

    async def shown():
        frames[:] = await peer.frames(mid, since)
        return next((one for one in frames if hue_distance(one.hue, hue) < 30), None)

    try:
        return await until(shown, "", seconds, every=0.02)
    except AssertionError:
        raise AssertionError(
            f"{peer.stack} shows no picture of hue {hue} on {mid} within {seconds} s: "
            f"{describe(frames)}; {await peer.inbound(mid)}"
        ) from None


async def moving(
    peer: Peer,
    mid: str,
    hue: float,
    since: float = 0,
    frames: int = 30,
    freeze: float | None = None,
    seconds: float = 15,
) -> list[Frame]:
    """Awaits `frames` pictures of `hue`, the first after `since`, without a freeze, a step back or
    a picture of another hue."""
    freeze = freeze or FREEZES.get(peer.stack, FREEZE)
    start = (await first_frame(peer, mid, hue, since, seconds)).time
    seen: list[Frame] = []

    async def enough():
        seen[:] = await peer.frames(mid, start)
        return len(seen) >= frames

    try:
        await until(enough, "", seconds)
    except AssertionError:
        raise AssertionError(
            f"{peer.stack} does not go on on {mid}: {describe(seen)}; {await peer.inbound(mid)}"
        ) from None
    # A busy machine may show a picture twice; the time of the next change counts.
    changes = [seen[0]] + [
        after for before, after in itertools.pairwise(seen) if after.counter != before.counter
    ]
    steps = [advances(before, after) for before, after in itertools.pairwise(changes)]
    # Compressed counter cells are sometimes misread while the encoder starts at a low bitrate.
    assert len(steps) > frames // 2 and steps.count(False) <= len(steps) // 20, (
        f"{peer.stack}: not moving: {describe(seen)}"
    )
    gap, before, after = longest_freeze(changes)
    if gap > freeze:
        raise Froze(
            f"{peer.stack}: froze for {gap:.2f} s on {mid}, {before.time - start:.2f} s after the"
            f" first frame, between {describe([before, after])}; {await trouble(peer, mid)}"
        )
    strange = [one for one in seen if hue_distance(one.hue, hue) >= 30]
    assert not strange, f"{peer.stack}: pictures of another hue: {describe(strange)}"
    return seen


async def heard(peer: Peer, mid: str, tone: float, since: float = 0, seconds: float = 10) -> None:
    """Awaits half a second of uninterrupted sound of frequency `tone`."""
    sounds: list[Sound] = []

    async def sounding():
        sounds[:] = await peer.sounds(mid, since)
        last = sounds[-5:]
        return len(last) == 5 and all(
            abs(one.tone - tone) < 25 and one.level > 0.05 for one in last
        )

    try:
        await until(sounding, "", seconds)
    except AssertionError:
        last = [f"{one.tone:.0f} Hz at {one.level:.3f}" for one in sounds[-10:]]
        raise AssertionError(
            f"{peer.stack} hears no {tone} Hz on {mid}: {last}; {await peer.inbound(mid)}"
        ) from None


async def silent(peer: Peer, mid: str, seconds: float = 5) -> None:
    """Awaits half a second of silence, or no sound arriving at all."""
    begin = time.time()

    async def quiet():
        sounds = await peer.sounds(mid, begin)
        last = sounds[-5:]
        # A stack that plays nothing while nothing arrives reports no sound.
        return time.time() - begin > 1 and all(one.level < 0.01 for one in last)

    await until(quiet, f"{peer.stack} goes quiet on {mid}", seconds)


async def packets(peer: Peer, mid: str) -> int:
    return (await peer.inbound(mid)).get("packetsReceived", 0)


async def still(
    peer: Peer, mid: str, seconds: float = 1, counter: str = "packetsReceived"
) -> None:
    """Checks that nothing arrives on an m-line for the time given, except packets in flight: the
    viewer may take a moment to drain its socket's buffer.

    Probes of the path are padding, which counts as packets; where they may run, `bytesReceived`
    counts the media alone."""
    begin = time.time()

    async def counted() -> int:
        return (await peer.inbound(mid)).get(counter, 0)

    count = await counted()

    async def over():
        nonlocal count
        before, count = count, await counted()
        settling = time.time() - begin < 0.3
        came = f"{count - before} more of {counter} on {mid}"
        assert settling or count == before, f"{peer.stack}: {came}"
        return time.time() - begin > seconds

    await until(over, "", seconds + 5)


async def size(peer: Peer, mid: str, width: int, height: int, seconds: float = 20) -> None:
    """Awaits a picture of that size, which an encoder reaches as its estimate grows."""
    last: list[Frame] = []

    async def reached():
        last[:] = (await peer.frames(mid, time.time() - 1))[-1:]
        return last and (last[0].width, last[0].height) == (width, height)

    try:
        await until(reached, "", seconds)
    except AssertionError:
        raise AssertionError(
            f"{peer.stack} sees no {width}x{height} within {seconds} s: {describe(last)}"
        ) from None
