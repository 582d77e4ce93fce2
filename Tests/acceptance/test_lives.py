"""Calls that outlive the daemon's process: it crashes, or is replaced by another version."""

import asyncio
import itertools
import json
import os
import signal
import statistics
import time

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.room import Room

#: Deaths, and upgrades, of one run; `SFUD_DEATHS=200` gives a percentile that means something.
DEATHS = int(os.environ.get("SFUD_DEATHS", 3))
#: Longest time without a new picture or sound over a crash, and over an upgrade, in seconds.
GAP_AFTER_CRASH = 0.5
GAP_AFTER_UPGRADE = 0.3


async def reconnected(daemon, room: Room, seen: int) -> Room:
    """Returns the room on a new connection, which gets the events that it has missed."""
    deadline = time.monotonic() + 5
    while True:
        client = daemon.client()
        try:
            await client.open()
            await client.call("events.subscribe", since={room.id: seen})
            break
        except (ConnectionError, FileNotFoundError):
            assert time.monotonic() < deadline, "the daemon does not come back"
            await asyncio.sleep(0.02)
    again = Room(client)
    again.id = room.id
    return again


def last_seq(room: Room) -> int:
    return max((one.seq for one in room.ipc.events if one.room == room.id), default=0)


async def gap(viewer, mid: str, begin: float, seconds: float = 2.0) -> float:
    """Returns the longest time without a new picture from shortly before `begin` on."""
    await asyncio.sleep(max(0, begin + seconds - time.time()))
    frames = [one for one in await viewer.frames(mid, begin - 0.5)]
    changes = [frames[0]] + [
        after for before, after in itertools.pairwise(frames) if after.counter != before.counter
    ]
    assert changes[-1].time > begin + seconds - 0.5, "the picture does not go on"
    return max(after.time - before.time for before, after in itertools.pairwise(changes))


class Meeting:
    """Two browsers that see and hear each other, and the room in which they do."""

    def __init__(self, daemon):
        self.daemon = daemon

    async def begin(self, peers) -> "Meeting":
        client = await self.daemon.client().open()
        self.room = await Room(client).open()
        self.alice = await self.room.join("alice", await peers("Chromium"), slots=1, **ALICE)
        self.bob = await self.room.join("bob", await peers("Chromium"), slots=1, **BOB)
        self.seen = [
            (self.bob, await self.bob.subscribe(self.alice.stream), ALICE["hue"]),
            (self.alice, await self.alice.subscribe(self.bob.stream), BOB["hue"]),
        ]
        for viewer, subscription, hue in self.seen:
            await expect.moving(viewer.peer, subscription.video, hue, subscription.since)
        return self

    async def requests(self) -> int:
        """Returns how many keyframes the publishers have been asked for."""
        sums = [
            one.get("pliCount", 0)
            for member in (self.alice, self.bob)
            for one in (await member.peer.stats())["out"]
        ]
        return sum(sums)

    async def gaps(self, begin: float) -> list[float]:
        return await asyncio.gather(
            *(gap(viewer.peer, one.video, begin) for viewer, one, _ in self.seen)
        )

    async def assert_unchanged(self, before: dict) -> None:
        """Asserts that a signalling server finds everything as it was."""
        after = await state(self.room)
        assert after == before


async def state(room: Room) -> dict:
    """Returns all that a signalling server can ask of a room, without what changes by itself."""
    found = {}
    for method, key in [
        ("participant.list", "participants"),
        ("stream.list", "streams"),
        ("subscription.list", "subscriptions"),
        ("transport.list", "transports"),
    ]:
        of_bob = method in ("subscription.list", "transport.list")
        asked = {"participant": "bob"} if of_bob else {}
        items = (await room.call(method, **asked))[key]
        for item in items:
            for name in ("video", "layers", "layer", "limit", "estimate"):
                item.pop(name, None)
        found[method] = items
    return json.loads(json.dumps(found))


@pytest.mark.alone
@pytest.mark.seconds(60 + DEATHS * 5)
async def test_a_call_goes_on_after_a_crash(start_sfud, peers, capsys):
    """The daemon is killed; its next life goes on without a new offer."""
    daemon = await start_sfud(keeper=True)
    meeting = await Meeting(daemon).begin(peers)
    before = await state(meeting.room)
    asked = await meeting.requests()
    boot = (await meeting.room.ipc.call("server.info"))["boot"]
    gaps = []
    for number in range(DEATHS):
        await asyncio.sleep(0.3 + 0.37 * (number % 3))
        seen = last_seq(meeting.room)
        begin = time.time()
        os.kill(daemon.child(), signal.SIGKILL)
        await meeting.room.ipc.close()
        meeting.room = await reconnected(daemon, meeting.room, seen)
        for member in (meeting.alice, meeting.bob):
            member.room = meeting.room
        gaps += await meeting.gaps(begin)
        # A message made now has the next number, and nothing was lost or told twice.
        numbers = [one.seq for one in meeting.room.ipc.events if one.room == meeting.room.id]
        assert numbers == list(range(seen + 1, seen + 1 + len(numbers))), (seen, numbers)
    await meeting.assert_unchanged(before)
    assert (await meeting.room.ipc.call("server.info"))["boot"] == boot
    requests = await meeting.requests() - asked
    ordered = sorted(gaps)
    with capsys.disabled():
        print(
            f"\n{DEATHS} deaths: without a new picture p50 {statistics.median(gaps) * 1000:.0f}, "
            f"p99 {ordered[max(0, len(ordered) * 99 // 100 - 1)] * 1000:.0f}, "
            f"worst {ordered[-1] * 1000:.0f} ms; {requests} keyframe requests"
        )
    assert ordered[len(ordered) // 2] <= GAP_AFTER_CRASH
    # One for each publisher and life; a browser asks once more where the machine is busy.
    assert requests <= 4 * DEATHS
    # The calls go on as calls: a mute is heard by nobody.
    await meeting.room.call("participant.hardMute", participants=["alice"], media=["video"])
    viewer, subscription, _ = meeting.seen[0]
    await expect.still(viewer.peer, subscription.video, seconds=0.5)
    assert await daemon.stop() < 2
