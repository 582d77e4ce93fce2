"""Changing a slot's stream over the IPC while it plays, without renegotiation."""

import itertools
import os
import time

import pytest

from harness import expect
from harness.ipc import Refused
from harness.looks import ALICE, BOB, CAROL


@pytest.mark.alone
@pytest.mark.parametrize("first, second", [("VP8", "VP8"), ("H264", "H264"), ("VP8", "VP9")])
async def test_a_slot_changes_from_one_publisher_to_another(room, peers, first, second):
    alice = await room.join("alice", await peers("Chromium"), codec=first, **ALICE)
    bob = await room.join("bob", await peers("Chromium"), codec=second, **BOB)
    viewer = await room.join("viewer", await peers("Chromium"), slots=1)
    seen = await viewer.subscribe(alice.stream)
    await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)
    before = await viewer.peer.inbound(seen.video)

    for publisher, look in ((bob, BOB), (alice, ALICE)):
        begin = time.time()
        await room.call("subscription.update", subscription=seen.id, stream=publisher.stream)
        frames = await expect.moving(viewer.peer, seen.video, look["hue"], begin)
        assert frames[0].time - begin < 1, f"{frames[0].time - begin:.2f} s until the new picture"
        await expect.heard(viewer.peer, seen.audio, look["tone"], begin)

    after = await viewer.peer.inbound(seen.video)
    assert after["ssrc"] == before["ssrc"]
    # A decoder that cannot continue requests a keyframe.
    assert after["pliCount"] == before["pliCount"]
    assert after["packetsLost"] <= 0
    assert after["keyFramesDecoded"] > before["keyFramesDecoded"]


@pytest.mark.alone
async def test_o13_two_slots_show_two_publishers(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), **BOB)
    carol = await room.join("carol", await peers("aiortc"), video=False, **CAROL)
    viewer = await room.join("viewer", await peers("Chromium"), slots=2)

    one = await viewer.subscribe(alice.stream)
    other = await viewer.subscribe(bob.stream)

    assert {one.audio, one.video}.isdisjoint({other.audio, other.video})
    for seen, look in ((one, ALICE), (other, BOB)):
        await expect.moving(viewer.peer, seen.video, look["hue"], seen.since)
        await expect.heard(viewer.peer, seen.audio, look["tone"], seen.since)
    with pytest.raises(Refused) as no_slot:
        await viewer.subscribe(carol.stream)
    assert (no_slot.value.code, no_slot.value.reason) == (4030, "no-free-slot")
    with pytest.raises(Refused) as twice:
        await viewer.subscribe(alice.stream)
    assert twice.value.code == 4009


async def test_the_named_slot_is_taken(room, peers):
    alice = await room.join("alice", await peers("aiortc"), **ALICE)
    viewer = await room.join("viewer", await peers("Chromium"), slots=2)
    slots = {
        kind: [mid["mid"] for mid in viewer.mids if mid["kind"] == kind]
        for kind in ("audio", "video")
    }

    seen = await viewer.subscribe(
        alice.stream, audioMid=slots["audio"][1], videoMid=slots["video"][1]
    )

    assert (seen.audio, seen.video) == (slots["audio"][1], slots["video"][1])
    await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)


async def test_o3_ones_own_stream_comes_back(room, peers):
    alice = await room.join("alice", await peers("Chromium"), slots=1, **ALICE)

    seen = await alice.subscribe(alice.stream)

    await expect.moving(alice.peer, seen.video, ALICE["hue"], seen.since)
    await expect.heard(alice.peer, seen.audio, ALICE["tone"], seen.since)


@pytest.mark.alone
async def test_the_publisher_switches_off_and_on(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)

    await room.call("stream.update", stream=alice.stream, audio=False)
    await expect.still(bob.peer, seen.audio)
    await expect.silent(bob.peer, seen.audio)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], time.time())

    await room.call("stream.update", stream=alice.stream, audio=True, video=False)
    await expect.still(bob.peer, seen.video)
    disabled = await room.ipc.wait_for("subscription.videoDisabled")
    assert disabled.data["reason"] == "publisher" and disabled.audience == ["bob"]
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], time.time())

    begin = time.time()
    await room.call("stream.update", stream=alice.stream, video=True)
    frames = await expect.moving(bob.peer, seen.video, ALICE["hue"], begin)
    assert frames[0].time - begin < 1
    enabled = await room.ipc.wait_for("subscription.videoEnabled")
    assert enabled.data["reason"] == "publisher"


async def test_the_viewer_switches_off_and_on(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    carol = await room.join("carol", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    beside = await carol.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    await expect.moving(carol.peer, beside.video, ALICE["hue"], beside.since)

    await room.call("subscription.update", subscription=seen.id, video=False)
    await expect.still(bob.peer, seen.video)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], time.time())
    disabled = await room.ipc.wait_for("subscription.videoDisabled")
    assert disabled.data["subscription"] == seen.id and disabled.data["reason"] == "subscriber"

    begin = time.time()
    await room.call("subscription.update", subscription=seen.id, video=True, audio=False)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], begin)
    await expect.still(bob.peer, seen.audio)

    # The other viewer was not affected.
    await expect.moving(carol.peer, beside.video, ALICE["hue"], beside.since, frames=60)


async def test_o5_not_one_packet_after_unsubscribing(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    before = time.time()
    reply = await room.call("subscription.remove", subscription=seen.id)

    assert before - 0.1 <= reply["fence"]["time"] <= time.time() + 0.1
    assert reply["fence"]["packets"] >= 0
    await expect.still(bob.peer, seen.video)
    await expect.still(bob.peer, seen.audio)
    with pytest.raises(Refused):
        await room.call("subscription.update", subscription=seen.id, video=True)

    again = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, again.video, ALICE["hue"], again.since)


async def test_a_stream_ends_when_it_is_unpublished(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    reply = await room.call("stream.unpublish", stream=alice.stream)

    assert reply["fence"]["packets"] >= 0
    destroyed = await room.ipc.wait_for("stream.destroyed")
    assert destroyed.data["stream"] == alice.stream
    await expect.still(bob.peer, seen.video)
    assert (await room.call("stream.list"))["streams"] == []


@pytest.mark.alone
async def test_one_leaves_and_comes_again(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    await alice.leave()
    left = await room.ipc.wait_for("participant.left", lambda data: data["participant"] == "alice")
    assert left.data["reason"] == "left" and left.audience == "all"
    await room.ipc.wait_for("stream.destroyed", lambda data: data["stream"] == alice.stream)
    await expect.still(bob.peer, seen.video)

    again = await room.join("alice", await peers("Chromium"), **ALICE)
    seen = await bob.subscribe(again.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)


async def test_a_second_join_takes_the_participant_over(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    again = await room.join("alice", await peers("aiortc"), **ALICE)

    await room.ipc.wait_for("stream.destroyed", lambda data: data["stream"] == alice.stream)
    seen = await bob.subscribe(again.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    participants = (await room.call("room.get"))["participants"]
    assert sorted(one["participant"] for one in participants) == ["alice", "bob"]


async def test_media_is_added_by_a_new_offer(room, peers):
    alice = await room.join("alice", await peers("Chromium"), video=False, slots=1, **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1, **BOB)
    seen = await alice.subscribe(bob.stream)
    heard = await bob.subscribe(alice.stream)
    assert heard.video is None
    await expect.moving(alice.peer, seen.video, BOB["hue"], seen.since)

    await alice.peer.publish(**ALICE, audio=False)
    await alice.negotiate()

    await room.call("subscription.remove", subscription=heard.id)
    both = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, both.video, ALICE["hue"], both.since)
    # Existing streams continue through the renegotiation.
    await expect.moving(alice.peer, seen.video, BOB["hue"], seen.since, frames=80)


@pytest.mark.seconds(900)
@pytest.mark.parametrize("stack", ["Chromium", "Firefox", "aiortc"])
async def test_d3_renegotiating_without_end_keeps_what_plays(room, peers, stack):
    """M-lines are added, end, change direction and are reused, and ICE restarts: thirty offers in a
    row, or as many as SFUD_ROUNDS says."""
    rounds = int(os.environ.get("SFUD_ROUNDS", "30"))
    alice = await room.join("alice", await peers("Chromium"), slots=1, **ALICE)
    bob = await room.join("bob", await peers(stack), slots=1, **BOB)
    published = bob.stream
    seen = await bob.subscribe(alice.stream)
    own = await alice.subscribe(bob.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    begin = time.time()
    for _ in range(rounds):
        await bob.peer.stir(4)
        await bob.negotiate()
        assert bob.stream == published
    end = time.time()
    lines = bob.offers[-1].count("\r\nm=")
    await expect.moving(bob.peer, seen.video, ALICE["hue"], end)
    await expect.moving(alice.peer, own.video, BOB["hue"], end)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], end)
    frames = [one for one in await bob.peer.frames(seen.video, begin) if one.time < end]
    gap = max(after.time - before.time for before, after in itertools.pairwise(frames))
    print(f"{rounds} offers in {end - begin:.1f} s, {lines} m-lines, the longest gap {gap:.2f} s")
    assert gap < 2 * expect.FREEZE
