"""Rooms whose participants connect at several nodes: real daemons, NATS, links and media."""

import asyncio
import os
import signal
import time

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.nats import Nats, cluster, linked
from harness.room import Room
from test_sfuctl import sfuctl


@pytest.fixture
def nats(loop, tmp_path):
    server = loop.run_until_complete(Nats(tmp_path).start())
    yield server
    loop.run_until_complete(server.kill())


class At(Room):
    """The same room by way of another node."""

    def __init__(self, room: Room, ipc):
        super().__init__(ipc)
        self.id = room.id


async def test_a_viewer_at_another_node_sees_and_hears(start_sfud, nats, peers):
    a, b = await cluster(start_sfud, nats, "a", "b")
    await linked(a, "b")
    await linked(b, "a")
    async with a.client() as at_a, b.client() as at_b:
        await at_b.call("events.subscribe")
        room = await Room(at_a).open()
        alice = await room.join("alice", await peers("aiortc"), **ALICE)
        far = At(room, at_b)
        viewer = await far.join("viewer", await peers("aiortc"), slots=1)
        assert " 127.0.0.2 " in viewer.answers[0] and " 127.0.0.1 5" not in viewer.answers[0]
        seen = await viewer.subscribe(alice.stream)
        await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)
        await expect.heard(viewer.peer, seen.audio, ALICE["tone"], seen.since)

        # A mute holds at all nodes once it is answered.
        result = await room.call("participant.hardMute", participant="alice", media=["audio", "video"])
        assert "silent" not in result["fence"], result
        await expect.still(viewer.peer, seen.video)
        await expect.still(viewer.peer, seen.audio)
        again = time.time()
        await room.call("participant.hardUnmute", participant="alice", media=["audio", "video"])
        await expect.moving(viewer.peer, seen.video, ALICE["hue"], again)


async def meeting(start_sfud, nats):
    """Three nodes with media between all, and a room whose home is the first."""
    daemons = await cluster(start_sfud, nats, "a", "b", "c")
    for daemon, name in zip(daemons, "abc", strict=True):
        await linked(daemon, *(set("abc") - {name}))
    clients = [await daemon.client().open() for daemon in daemons]
    room = await Room(clients[0]).open()
    far = [At(room, client) for client in clients[1:]]
    for client in clients[1:]:
        await client.call("events.subscribe")
    return daemons, clients, (room, *far)


async def test_a_publisher_at_one_node_is_seen_at_the_home_and_at_a_third(start_sfud, nats, peers):
    daemons, clients, (at_a, at_b, at_c) = await meeting(start_sfud, nats)
    bob = await at_b.join("bob", await peers("aiortc"), **BOB)
    near = await at_a.join("near", await peers("aiortc"), slots=1)
    far = await at_c.join("far", await peers("aiortc"), slots=1)
    assert " 127.0.0.3 " in far.answers[0]
    for viewer in (near, far):
        seen = await viewer.subscribe(bob.stream)
        await expect.moving(viewer.peer, seen.video, BOB["hue"], seen.since)
        await expect.heard(viewer.peer, seen.audio, BOB["tone"], seen.since)
    figures = await at_c.call("stats.get")
    assert {one["participant"] for one in figures["transports"]} == {"bob", "near", "far"}
    status, output, _ = await sfuctl("--ipc", daemons[2].ipc, "room", at_a.id)
    assert status == 0 and "far" in output, output
    # The node of the third viewer dies: he is told of as gone, and the others go on.
    again = time.time()
    os.kill(daemons[2].process.pid, signal.SIGKILL)
    gone = await clients[0].wait_for(
        "participant.connection",
        lambda data: data["participant"] == "far" and data["connection"] == "disconnected",
        seconds=15,
    )
    assert gone.data["participant"] == "far"
    await expect.moving(near.peer, "1", BOB["hue"], again)
    await at_b.call("room.close")
    for client in clients[:2]:
        await client.close()


async def test_a_node_that_stands_still_costs_a_mute_one_and_a_half_seconds(
    start_sfud, nats, peers
):
    daemons, clients, (at_a, at_b, at_c) = await meeting(start_sfud, nats)
    alice = await at_a.join("alice", await peers("aiortc"), **ALICE)
    viewer = await at_b.join("viewer", await peers("aiortc"), slots=1)
    seen = await viewer.subscribe(alice.stream)
    await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)
    os.kill(daemons[1].process.pid, signal.SIGSTOP)
    begun = time.monotonic()
    result = await at_a.call(
        "participant.hardMute", participant="alice", media=["audio", "video"]
    )
    took = time.monotonic() - begun
    assert 1 < took < 1.5 and result["fence"]["silent"] == ["b"], (took, result)
    before = await expect.packets(viewer.peer, seen.video)
    os.kill(daemons[1].process.pid, signal.SIGCONT)
    await asyncio.sleep(1)
    assert await expect.packets(viewer.peer, seen.video) == before
    again = time.time()
    result = await at_a.call(
        "participant.hardUnmute", participant="alice", media=["audio", "video"]
    )
    await expect.moving(viewer.peer, seen.video, ALICE["hue"], again)
    for client in clients:
        await client.close()
