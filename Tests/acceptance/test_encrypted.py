"""End-to-end encrypted calls, of whose frames sfud sees the first bytes only."""

import time
from pathlib import Path

import pytest

from harness import expect
from harness.looks import ALICE
from harness.room import Member, Room

SEALED = (Path(__file__).parent / "harness/sealed.js").read_text()
KEY = 0x5EED


async def join(room: Room, name: str, peer, key: int, slots: int = 0, **publish) -> Member:
    """Joins like `Room.join`, with everything sent and received encrypted under the key."""
    await room.call("participant.join", participant=name)
    await peer.evaluate(f"(() => {{ {SEALED} seal({key}); return 0; }})()")
    if publish:
        await peer.publish(**publish)
    if slots:
        await peer.receive(slots)
    member = Member(room, name, peer)
    await member.negotiate()
    await room.connected(name)
    return member


@pytest.mark.parametrize("stack", ["Chromium", "Firefox"])
async def test_f12_who_has_the_key_sees_and_hears_and_nobody_else(room, peers, stack):
    alice = await join(room, "alice", await peers(stack), KEY, codec="VP8", **ALICE)
    bob = await join(room, "bob", await peers("Chromium"), KEY, slots=1)
    eve = await join(room, "eve", await peers("Chromium"), KEY + 1, slots=1)

    seen = await bob.subscribe(alice.stream)
    tried = await eve.subscribe(alice.stream)

    await expect.first_frame(bob.peer, seen.video, ALICE["hue"], seen.since)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], time.time(), frames=60)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)
    counts = await bob.peer.evaluate("sealed()")
    print(f"{counts['opened']} frames opened, {counts['refused']} were not what was sent")
    assert counts["opened"] > 100 and counts["refused"] == 0
    stranger = await eve.peer.evaluate("sealed()")
    assert stranger["opened"] == 0 and stranger["refused"] > 100
    assert not await eve.peer.frames(tried.video)


async def test_f12_layers_are_switched_without_looking_into_frames(room, peers):
    look = {**ALICE, "width": 960, "height": 540, "fps": 15}
    alice = await join(room, "alice", await peers("Chromium"), KEY, codec="VP8", simulcast=True, **look)
    bob = await join(room, "bob", await peers("Chromium"), KEY, slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.size(bob.peer, seen.video, 960, 540)
    for width, height in ((240, 135), (960, 540)):
        wanted = {"width": width, "height": height}
        await room.call("subscription.update", subscription=seen.id, preferredResolution=wanted)
        await expect.size(bob.peer, seen.video, width, height)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], time.time(), freeze=1)
    counts = await bob.peer.evaluate("sealed()")
    print(f"{counts['opened']} frames opened, {counts['refused']} were not what was sent")
    assert counts["opened"] > 100 and counts["refused"] == 0
