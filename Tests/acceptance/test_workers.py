"""Rooms that span workers: publisher and viewer on different ones, each with its own port."""

import re
import time
from pathlib import Path

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.process import until
from harness.room import Room


@pytest.fixture
def spread(loop, start_sfud, tmp_path):
    """Returns a room of a daemon that places transports on the least loaded worker in turn."""
    config = tmp_path / "sfud.json5"
    config.write_text("{ limits: { workerSpread: 0 } }")
    daemon = loop.run_until_complete(start_sfud("--config", str(config), workers=2))
    ipc = daemon.client()
    loop.run_until_complete(ipc.open())
    yield loop.run_until_complete(Room(ipc).open())
    loop.run_until_complete(ipc.close())
    loop.run_until_complete(daemon.stop())


async def load(room: Room) -> list[int]:
    """Returns the number of transports of each worker."""
    return [one["transports"] for one in (await room.ipc.call("server.stats"))["workers"]]


async def test_simulcast_reaches_viewers_on_both_workers(spread, peers):
    alice = await spread.join(
        "alice", await peers("Chromium"), codec="VP8", simulcast=True, **ALICE,
        width=960, height=540, fps=15,
    )
    far = await spread.join("far", await peers("Chromium"), slots=1)
    near = await spread.join("near", await peers("aiortc"), slots=1)
    assert await load(spread) == [2, 1]

    seen = [(viewer, await viewer.subscribe(alice.stream)) for viewer in (far, near)]

    for viewer, subscription in seen:
        first = await expect.first_frame(
            viewer.peer, subscription.video, ALICE["hue"], subscription.since
        )
        assert first.time - subscription.since < 1, "the first picture is late"
        await expect.heard(viewer.peer, subscription.audio, ALICE["tone"], subscription.since)
    # From the smallest layer, which Chromium sends first, up to the largest.
    await expect.size(far.peer, seen[0][1].video, 960, 540)
    for viewer, subscription in seen:
        await expect.moving(viewer.peer, subscription.video, ALICE["hue"], time.time(), freeze=1)
    assert (await far.peer.inbound(seen[0][1].video))["packetsLost"] <= 0

    # One gate on each worker, and not one packet after the reply.
    reply = await spread.call("stream.update", stream=alice.stream, video=False)
    assert reply["fence"]["packets"] > 0
    for viewer, subscription in seen:
        await expect.still(viewer.peer, subscription.video)
    begin = time.time()
    await spread.call("stream.update", stream=alice.stream, video=True)
    for viewer, subscription in seen:
        frame = await expect.first_frame(
            viewer.peer, subscription.video, ALICE["hue"], begin
        )
        assert frame.time - begin < 1, "the picture is late to come back"
    stats = await spread.call("stats.get")
    assert {one["participant"] for one in stats["subscriptions"]} == {"far", "near"}
    assert all(one["packets"] > 0 for one in stats["subscriptions"])
    [video] = [one for one in stats["streams"] if one["kind"] == "video"]
    assert {one["rid"] for one in video["encodings"]} == {"q", "h", "f"}


async def test_one_leaves_and_comes_again(spread, peers):
    alice = await spread.join("alice", await peers("Chromium"), slots=1, **ALICE)
    bob = await spread.join("bob", await peers("Chromium"), slots=1, **BOB)
    assert await load(spread) == [1, 1]
    bobs, alices = await bob.subscribe(alice.stream), await alice.subscribe(bob.stream)
    await expect.moving(bob.peer, bobs.video, ALICE["hue"], bobs.since)
    await expect.moving(alice.peer, alices.video, BOB["hue"], alices.since)
    await expect.heard(bob.peer, bobs.audio, ALICE["tone"], bobs.since)

    await alice.leave()
    await expect.still(bob.peer, bobs.video)
    again = await spread.join("alice", await peers("Chromium"), slots=1, **ALICE)
    assert await load(spread) == [1, 1]
    bobs, alices = await bob.subscribe(again.stream), await again.subscribe(bob.stream)

    await expect.moving(bob.peer, bobs.video, ALICE["hue"], bobs.since)
    await expect.moving(again.peer, alices.video, BOB["hue"], alices.since)
    await expect.heard(again.peer, alices.audio, BOB["tone"], alices.since)


def turns(process: int) -> dict[str, int]:
    """Returns the length of the turns of each thread, by its name; empty if the kernel does not
    say."""
    found = {}
    for thread in Path(f"/proc/{process}/task").iterdir():
        try:
            turn = re.search(r"slice\s*:\s*(\d+)", (thread / "sched").read_text())
            if turn:
                found[(thread / "comm").read_text().strip()] = int(turn[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


async def test_workers_are_woken_before_what_is_busy(start_sfud):
    """Uses short time slices, so that neither calls nor other processes delay packets."""
    daemon = await start_sfud(workers=2)
    if not turns(daemon.process.pid):
        pytest.skip("this kernel does not say how long a thread's turns are")

    async def short():
        # A thread names itself when it begins to run, which may be after the daemon is ready.
        of = turns(daemon.process.pid)
        others = [length for name, length in of.items() if not name.startswith("worker-")]
        workers = [of.get(f"worker-{number}") for number in range(2)]
        return workers == [100_000] * 2 and others and min(others) > 100_000

    await until(short, "only workers have short turns", 5)
    await daemon.stop()
