"""A viewer's picture when its network carries less than the publisher sends.

The machine encodes three layers, decodes them and simulates the network on the same cores, so times
are judged a little more generously than in `LayerFollowingTests`, where the same runs in virtual
time. `docs/bandwidth.md` has the figures.

The publisher is Chromium with three layers of VP8, which take what `bitrates` says and up to a
fifth more; the viewer's datagrams pass a bottleneck (`harness/link.py`).
"""

import asyncio
import itertools
import time

import pytest

from harness import expect
from harness.link import Link
from harness.looks import ALICE
from harness.process import until

pytestmark = pytest.mark.alone

TOP, MIDDLE, LOW = (1280, 720), (640, 360), (320, 180)
# Of 20, 60, 150, 300 and 600 specks, 60 let Chromium send the most frames: 17 to 30 a second of
# each layer. With 600 its lower layers had 4 to 9, and 600 kbit/s was steady in three runs of four.
CAMERA = dict(
    codec="VP8", simulcast=True, bitrates=[120_000, 350_000, 1_500_000],
    width=1280, height=720, fps=30, noise=60,
)
# An almost still picture; no layer has to drop frames to keep to its rate.
CALM = CAMERA | dict(noise=0)


@pytest.fixture
def links(loop):
    """Returns `await links(rate=…)`, which makes a network for one client."""
    made = []

    async def make(**settings) -> Link:
        made.append(await Link.open(**settings))
        return made[-1]

    yield make
    for link in made:
        loop.run_until_complete(link.close())


async def steady(viewer, mid: str, size: tuple[int, int], within: float, hold: float = 3) -> float:
    """Awaits `hold` seconds of pictures of one size only; returns the seconds until the first of
    them arrived, which must be `within`."""
    begin = time.time()
    seen = []

    async def settled():
        seen[:] = await viewer.peer.frames(mid, begin)
        run = list(itertools.takewhile(
            lambda frame: (frame.width, frame.height) == size, reversed(seen)
        ))
        return run and run[0].time - run[-1].time >= hold and run[-1].time - begin

    try:
        after = await until(settled, "", within + hold + 2)
    except AssertionError:
        explained = await viewer.room.call(
            "subscription.explain", subscription=viewer.seen.id
        )
        raise AssertionError(
            f"not {size} within {within} s: {expect.describe(seen)}; {explained}"
        ) from None
    assert after <= within, f"{size} after {after:.1f} s"
    return after


def freezes(frames) -> list[float]:
    """Returns the freeze of the picture at each change of size, in seconds."""
    return [
        after.time - before.time
        for before, after in itertools.pairwise(frames)
        if (before.width, before.height) != (after.width, after.height)
    ]


async def watch(room, peers, links, slots: int = 1, camera=CAMERA, **link):
    alice = await room.join("alice", await peers("Chromium"), **ALICE, **camera)
    await room.layers(3)
    path = await links(**link)
    bob = await room.join("bob", await peers("Chromium"), slots=slots, link=path)
    bob.seen = await bob.subscribe(alice.stream)
    return alice, bob, path


@pytest.mark.parametrize(
    "rate, size, within", [(3_000_000, TOP, 5), (600_000, MIDDLE, 8), (200_000, LOW, 8)]
)
@pytest.mark.seconds(90)
async def test_a_joiner_gets_the_layer_that_fits(room, peers, links, rate, size, within):
    alice, bob, _ = await watch(room, peers, links, rate=rate, delay=0.02)
    print("after", await steady(bob, bob.seen.video, size, within, hold=5))


@pytest.mark.seconds(120)
async def test_layers_follow_the_bandwidth(room, peers, links):
    alice, bob, link = await watch(room, peers, links, rate=3_000_000, delay=0.02)
    mid = bob.seen.video
    await steady(bob, mid, TOP, within=10)
    for rate, size, within in [
        (600_000, MIDDLE, 8), (200_000, LOW, 8), (3_000_000, TOP, 12),
    ]:
        begin = time.time()
        link.rate = rate
        after = await steady(bob, mid, size, within, hold=5)
        stands = freezes(await bob.peer.frames(mid, begin))
        explained = await room.call("subscription.explain", subscription=bob.seen.id)
        print(f"{rate}: {size} after {after:.2f} s, still", [f"{one:.3f}" for one in stands],
              f"estimated {explained['estimate']}")
        assert (explained["sent"]["width"], explained["sent"]["height"]) == size
        assert explained["limit"] == ("none" if size == TOP else "bandwidth"), explained
        if size != TOP:
            # A layer that does not fill the path says no more of its rate than the queue did
            # before, so the estimate need not come down to it, as long as nothing more is tried.
            above = CAMERA["bitrates"][[LOW, MIDDLE, TOP].index(size) + 1]
            assert explained["estimate"] < above, explained
    await expect.heard(bob.peer, bob.seen.audio, ALICE["tone"], time.time())


@pytest.mark.slow
@pytest.mark.seconds(120)
async def test_too_little_for_video_keeps_the_sound(room, peers, links):
    alice, bob, link = await watch(room, peers, links, rate=1_500_000, delay=0.02)
    await expect.first_frame(bob.peer, bob.seen.video, ALICE["hue"], bob.seen.since)
    await asyncio.sleep(3)

    link.rate = 60_000
    disabled = await room.ipc.wait_for("subscription.videoDisabled", seconds=25)
    assert disabled.data["reason"] == "quality" and disabled.audience == ["bob"]
    await asyncio.sleep(6)  # the bottleneck's queue drains
    before = await bob.peer.inbound(bob.seen.audio)
    # sfud probes whether the path carries video again.
    await expect.still(bob.peer, bob.seen.video, counter="bytesReceived")
    await asyncio.sleep(5)
    after = await bob.peer.inbound(bob.seen.audio)
    samples = after["totalSamplesReceived"] - before["totalSamplesReceived"]
    concealed = after["concealedSamples"] - before["concealedSamples"]
    print(f"{concealed} of {samples} samples made up")
    # The limit is 2 %, and is met on an idle machine: of 60 kbit/s the sound takes 57, so that any
    # other packet delays it.
    assert concealed <= samples * 0.05, f"{concealed} of {samples} samples made up"
    explained = await room.call("subscription.explain", subscription=bob.seen.id)
    assert explained["sent"] is None and explained["limit"] == "bandwidth"

    begin = time.time()
    link.rate = 1_500_000
    enabled = await room.ipc.wait_for("subscription.videoEnabled", seconds=40)
    assert enabled.data["reason"] == "quality"
    await expect.first_frame(bob.peer, bob.seen.video, ALICE["hue"], begin)
    print("video back after", time.time() - begin)


@pytest.mark.seconds(90)
async def test_a_preference_takes_effect_at_once(room, peers, links):
    alice, bob, _ = await watch(room, peers, links, camera=CALM)
    mid = bob.seen.video
    await steady(bob, mid, TOP, within=15, hold=1)
    times = []
    for width, height in [LOW, TOP, MIDDLE, LOW, MIDDLE, TOP, LOW]:
        begin = time.time()
        wanted = {"width": width, "height": height}
        await room.call(
            "subscription.update", subscription=bob.seen.id, preferredResolution=wanted
        )

        async def shown():
            frames = await bob.peer.frames(mid, begin)
            return next((one for one in frames if (one.width, one.height) == (width, height)), None)

        frame = await until(shown, f"{width}x{height}", 5, every=0.02)
        times.append(frame.time - begin)
        left = [
            one.time - begin for one in room.ipc.events
            if one.event == "subscription.layerChanged" and one.time >= begin
        ]
        print(f"{width}x{height}: left after {left}, seen after {times[-1]:.3f}")
        await asyncio.sleep(0.7)
    print("until the first picture:", sorted(f"{one:.3f}" for one in times))
    # The limit is 0.3 s at the 95th percentile; two cores encode, decode and measure here.
    assert sorted(times)[len(times) // 2] <= 0.3
    assert max(times) <= 1
    changed = [one for one in room.ipc.events if one.event == "subscription.layerChanged"]
    assert len(changed) >= len(times)
    for one in changed:
        assert one.data.get("previous") != one.data.get("current"), one


@pytest.mark.seconds(60)
async def test_what_nobody_watches_is_not_asked_for(room, peers, links):
    alice, bob, _ = await watch(room, peers, links)
    await steady(bob, bob.seen.video, TOP, within=15, hold=1)
    small = {"width": LOW[0], "height": LOW[1]}
    await room.call("subscription.update", subscription=bob.seen.id, preferredResolution=small)
    wanted = await room.ipc.wait_for(
        "stream.layersWanted",
        lambda data: [one["rid"] for one in data["layers"] if one["wanted"]] == ["q"],
        10,
    )
    assert wanted.audience == ["alice"] and len(wanted.data["layers"]) == 3
    await alice.peer.encode(["q"])

    async def low_alone():
        [stream] = (await room.call("stream.list"))["streams"]
        return [one["rid"] for one in stream["video"]["layers"] if one["active"]] == ["q"]

    await until(low_alone, "alice sends the lowest alone", 10)
    begin = time.time()
    await room.call("subscription.update", subscription=bob.seen.id, preferredResolution=None)
    wanted = await room.ipc.wait_for(
        "stream.layersWanted",
        lambda data: {one["rid"] for one in data["layers"] if one["wanted"]} >= {"f"},
        2,
    )
    assert wanted.time - begin <= 1
    await alice.peer.encode([one["rid"] for one in wanted.data["layers"] if one["wanted"]])

    async def large():
        # Chromium adapts the size of a single encoding to the machine's speed.
        frames = await bob.peer.frames(bob.seen.video, begin)
        return next((one for one in frames if one.width > MIDDLE[0]), None)

    print("back after", (await until(large, "a large picture", 5)).time - begin)
