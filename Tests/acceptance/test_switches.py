"""Switches between layers that a viewer asks for: how soon, and without a freeze.

Not part of the usual run, as it measures time: `SFUD_SWITCHES=40 Tests/acceptance/run
test_switches.py`."""

import asyncio
import itertools
import os
import time

import pytest

from harness.looks import ALICE
from harness.media import Frame, hue_distance
from harness.process import until
from test_newcomers import CAMERA, told

#: Switches in each direction.
SWITCHES = int(os.environ.get("SFUD_SWITCHES", 0))
LOW, HIGH = (320, 180), (1280, 720)


def longest_gap(frames: list[Frame]) -> float:
    """Returns the longest time between two pictures that differ."""
    changes = [frames[0]] + [
        after for before, after in itertools.pairwise(frames) if after.counter != before.counter
    ]
    return max(after.time - before.time for before, after in itertools.pairwise(changes))


@pytest.mark.alone
@pytest.mark.skipif(not SWITCHES, reason="SFUD_SWITCHES is not set")
@pytest.mark.seconds(60 + SWITCHES * 8)
async def test_a_preference_is_followed_at_once(room, peers, capsys):
    alice = await room.join("alice", await peers("Chromium"), **ALICE, **CAMERA)
    await room.layers(3)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    subscription = await bob.subscribe(alice.stream)
    took: dict[str, list[float]] = {"up": [], "down": []}
    gaps: dict[str, list[float]] = {"up": [], "down": []}
    for number in range(2 * SWITCHES + 1):
        way, (width, height) = ("down", LOW) if number % 2 == 0 else ("up", HIGH)
        since = time.time()
        await room.call(
            "subscription.update",
            subscription=subscription.id,
            preferredResolution={"width": width, "height": height},
        )

        async def reached() -> float | None:
            frames = await bob.peer.frames(subscription.video, since)
            return next((one.time for one in frames if one.width == width), None)

        at = await until(reached, f"{width} pixels", 10, every=0.02)
        await asyncio.sleep(1)
        frames = await bob.peer.frames(subscription.video, since - 0.3)
        frames = [one for one in frames if hue_distance(one.hue, ALICE["hue"]) < 30]
        # The first one comes while the estimate is still settling.
        if number > 0:
            took[way].append(at - since)
            gaps[way].append(longest_gap(frames))
    with capsys.disabled():
        for way in took:
            print(f"\n{way}: {told('picture', took[way])}; {told('gap', gaps[way])}", end="")
        print()
