"""Real clients behind networks with burst loss, reordering, duplication and NAT rebinding."""

import asyncio
import random
import time

import pytest

from harness import expect
from harness.link import Link
from harness.looks import ALICE
from harness.process import until
from harness.scene import Scene, longest_gap, watch


def changes(room) -> list[str]:
    """Returns the connections' changes since they were connected."""
    told = [one.data for one in room.ipc.events if one.event == "participant.connection"]
    return [one["connection"] for one in told if one["connection"] != "connected"]


async def test_h1_of_random_loss_on_both_sides_nothing_is_left(room, peers):
    """Random loss of 5 % up and 5 % down, over a round trip of 100 ms: retransmissions repair
    it."""
    up = await Link.open(delay=0.05)
    down = await Link.open(delay=0.05)
    alice, bob = await peers("Chromium"), await peers("Chromium")
    scene = await watch(room, alice, bob, up, down, noise=60)

    async def counted() -> tuple[dict, dict]:
        [sent] = [one for one in (await alice.stats())["out"] if one["kind"] == "video"]
        return sent, await bob.inbound(scene.seen.video)

    before = await counted()
    begin = time.time()
    up.loss_up = down.loss = 0.05
    await asyncio.sleep(8)
    end = time.time()
    up.loss_up = down.loss = 0.0
    # The last lost packets are requested within two round trips.
    await asyncio.sleep(0.5)
    after = await counted()
    sent, lost, late, again, asked = (
        after[side][name] - before[side].get(name, 0)
        for side, name in (
            (0, "framesSent"), (1, "packetsLost"), (0, "retransmittedPacketsSent"),
            (1, "retransmittedPacketsReceived"), (1, "pliCount"),
        )
    )  # fmt: skip
    whole = after[1]["framesDecoded"] - before[1]["framesDecoded"]
    packets = after[1]["packetsReceived"] - before[1]["packetsReceived"]
    gap = longest_gap([one for one in await scene.frames(begin) if one.time < end])
    print(
        f"{whole} of {sent} frames were whole, in {packets} packets, {lost} lost, {again} again; "
        f"{late} again from the publisher, {asked} keyframes asked for, "
        f"the longest gap {gap:.2f} s"
    )
    assert late > 10 and again > 10, "nothing was lost"
    # Some are in flight at each end.
    assert abs(whole - sent) <= 5 and asked == 0
    assert gap < 2 * expect.FREEZE
    for link in (up, down):
        await link.close()


#: The side of the line with the faults. A publisher's is among the long tests.
SIDES = [pytest.param("publisher", marks=pytest.mark.slow), "viewer"]


@pytest.mark.parametrize("side", SIDES)
async def test_h2_bursts_of_loss_are_survived_without_reconnecting(room, peers, side):
    """Everything is lost for 50 to 500 ms, again and again (Gilbert-Elliott model)."""
    link = await Link.open(delay=0.02)
    ways = {"publisher": {"up": link}, "viewer": {"down": link}}[side]
    scene = await watch(room, await peers("Chromium"), await peers("Chromium"), **ways)
    chance = random.Random(2)
    begin = time.time()
    lost = 0.0
    while time.time() - begin < 12:
        await asyncio.sleep(chance.uniform(1, 3))
        link.loss = link.loss_up = 1.0
        burst = chance.uniform(0.05, 0.5)
        await asyncio.sleep(burst)
        link.loss = link.loss_up = 0.0
        lost += burst
    end = time.time()
    await scene.moving(end)
    await scene.heard(end)
    gap = longest_gap(await scene.frames(begin))
    print(f"{side}: {lost:.1f} of {end - begin:.0f} s lost, the longest freeze {gap:.2f} s")
    assert gap < 2
    assert not changes(room)
    await link.close()


@pytest.mark.parametrize("side", SIDES)
async def test_h3_what_is_late_or_double_is_neither_lost_nor_shown_twice(room, peers, side):
    link = await Link.open(delay=0.02)
    ways = {"publisher": {"up": link}, "viewer": {"down": link}}[side]
    scene = await watch(room, await peers("Chromium"), await peers("Chromium"), **ways)
    link.reorder = link.duplicate = 0.05
    begin = time.time()
    await asyncio.sleep(10)
    end = time.time()
    link.reorder = link.duplicate = 0.0
    frames = [one for one in await scene.frames(begin) if one.time < end]
    gap = longest_gap(frames)
    if side == "viewer":
        asked = (await scene.bob.peer.inbound(scene.seen.video))["nackCount"]
    else:
        sent = (await scene.alice.peer.stats())["out"]
        asked = sum(one.get("nackCount", 0) for one in sent if one["kind"] == "video")
    print(f"{side}: {len(frames)} frames, the longest gap {gap:.2f} s, {asked} NACKs")
    # Twenty pictures a second are drawn; a twentieth of the packets is late, up to 100 ms.
    assert len(frames) > 100
    assert gap < 3
    assert asked < 50
    if side == "publisher":
        stats = await room.ipc.call("server.stats")
        assert stats["drops"].get("srtp-replay", 0) > 10, stats["drops"]
    assert not changes(room)
    await link.close()


@pytest.mark.parametrize("delays", [(0.15, 0.15), (0.05, 0.2)], ids=["300ms", "50and200ms"])
async def test_h4_a_long_and_uneven_path_is_used_as_it_is(room, peers, delays):
    """Neither a long delay nor jitter of 30 ms is taken for a narrow path, and the viewer's browser
    knows its round trip as well as sfud does."""
    link = await Link.open(delay=delays[0], delay_up=delays[1], jitter=0.03)
    scene = await watch(room, await peers("Chromium"), await peers("Chromium"), down=link)
    begin = time.time()
    await asyncio.sleep(4)
    frames = await scene.frames(begin)
    stats = await room.call("stats.get", participant="bob")
    away = stats["transports"][0]["roundTripTime"]
    told = await room.call("subscription.explain", subscription=scene.seen.id)
    gap = longest_gap(frames)
    print(
        f"{len(frames)} frames, the longest gap {gap:.2f} s; {away:.0f} ms and back, "
        f"{told['estimate'] / 1000:.0f} kbit/s, {told['sent']}"
    )
    assert gap < 2 * expect.FREEZE
    assert abs(away - 1000 * sum(delays)) < 100
    # Only sent media can show what the path carries.
    assert told["limit"] == "none" and told["estimate"] > told["sent"]["bitrate"]

    async def learnt() -> float | None:
        return (await scene.bob.peer.inbound(scene.seen.audio)).get("roundTripTime")

    # A browser tells its clock about every 5 s for sound.
    trip = await until(learnt, "the viewer knows its round trip", 20)
    print(f"the viewer takes the round trip for {1000 * trip:.0f} ms")
    assert abs(trip - sum(delays)) < 0.1
    assert not changes(room)
    await link.close()


@pytest.mark.alone
@pytest.mark.parametrize("side", ["publisher", "viewer"])
async def test_f4_a_client_whose_address_changes_is_followed(room, peers, side):
    """A NAT gives it another port, twice during a call, without any notice."""
    link = await Link.open(delay=0.005)
    ways = {"publisher": {"up": link}, "viewer": {"down": link}}[side]
    scene = await watch(room, await peers("Chromium"), await peers("Chromium"), **ways)
    for turn in range(2):
        begin = time.time()
        await link.rebind()
        await scene.moving(begin + 0.1, frames=40, freeze=8)
        gap = longest_gap(await scene.frames(begin - 0.5))
        print(f"{side}: a gap of {gap:.2f} s")
        assert gap < 7
    await scene.heard(time.time())
    await link.close()


class Victim(asyncio.DatagramProtocol):
    """An address that answers nothing, and records what it is sent."""

    def __init__(self):
        self.received: list[bytes] = []

    def datagram_received(self, data, address):
        self.received.append(data)


async def test_f5_no_media_goes_to_an_address_that_answers_nothing(room, peers):
    """A viewer names somebody else's address in valid checks and packets, and continues at its
    own."""
    bob = await peers("aiortc")
    scene = await watch(room, await peers("Chromium"), bob)
    socket, victim = await asyncio.get_running_loop().create_datagram_endpoint(
        Victim, local_addr=("127.0.0.1", 0)
    )
    begin = time.time()
    sent = 0
    # Longer than the silence after which a path would have been given up, if silence counted.
    for turn in range(160):
        forged = bob.forged_check() if turn % 2 == 0 else bob.forged_feedback()
        socket.sendto(forged, bob.server())
        sent += 1
        await asyncio.sleep(0.05)
    frames = await scene.frames(begin)
    socket.close()
    gap = longest_gap(frames)
    print(
        f"{sent} forged, {len(victim.received)} came of it, the longest of "
        f"{max(map(len, victim.received))} bytes; the viewer's longest gap was {gap:.2f} s"
    )
    # Only answers to the checks, and sfud's own checks: STUN begins with two zero bits.
    assert victim.received and all(one[0] < 4 for one in victim.received)
    assert len(victim.received) <= 2 * sent and max(map(len, victim.received)) <= 128
    assert gap < 2 * expect.FREEZE and not changes(room)


@pytest.mark.slow
@pytest.mark.alone  # Four stacks at once take both cores.
async def test_f5_every_stack_goes_on_to_consent(room, peers):
    """Media stops 30 s after the last answer to one of sfud's checks, so all stacks have to
    answer."""
    publisher = await room.join("alice", await peers("Chromium"), **ALICE)
    scenes = []
    for stack in ("Chromium", "Firefox", "aiortc", "GStreamer"):
        viewer = await room.join(stack.lower(), await peers(stack), slots=1)
        seen = await viewer.subscribe(publisher.stream)
        scenes.append(Scene(room, publisher, viewer, seen))
    connected = time.time()
    for scene in scenes:
        await scene.moving()
    await asyncio.sleep(connected + 32 - time.time())
    now = time.time()
    for scene in scenes:
        await scene.moving(now)
        await scene.heard(now)
    assert not changes(room)
