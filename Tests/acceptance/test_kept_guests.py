"""Participants at other nodes than their room's home, whose daemon dies and goes on."""

import asyncio
import os
import time
from signal import Signals

import pytest

from harness import expect
from harness.looks import ALICE
from harness.nats import cluster, linked
from harness.room import Room
from test_nodes import nats  # noqa: F401
from test_takeover import answered, without_gaps

DEATHS = int(os.environ.get("SFUD_HOME_DEATHS", 2))


@pytest.mark.parametrize("signal", [Signals.SIGKILL, Signals.SIGHUP], ids=["kill", "upgrade"])
@pytest.mark.seconds(60 + 15 * DEATHS)
async def test_who_is_elsewhere_plays_on_when_the_home_goes_on(start_sfud, nats, peers, signal):
    """The home's daemon is killed, and its keeper starts it again, or it is replaced: nobody
    offers again."""
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c", keeper=True)))
    await linked(daemons["a"], "b", "c")
    async with daemons["b"].client() as at_b, daemons["c"].client() as at_c:
        for client in (at_b, at_c):
            await client.call("events.subscribe")
        room, there, near = Room(at_b), Room(at_c), Room(daemons["a"].client())
        await near.ipc.open()
        await near.ipc.call("events.subscribe")
        there.id = near.id = room.id
        assert (await near.call("room.create"))["node"] == "a"
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        host = await near.join("host", await peers("aiortc"), slots=1, **ALICE)
        bob = await there.join("bob", await peers("aiortc"), slots=2)
        seen = await bob.subscribe(alice.stream)
        from_home = await bob.subscribe(host.stream)
        at_home = await host.subscribe(alice.stream)
        views = ((bob, seen.video), (bob, from_home.video), (host, at_home.video))
        for member, mid in views:
            await expect.moving(member.peer, mid, ALICE["hue"], seen.since)
        await near.ipc.close()
        people = (await room.call("participant.list"))["participants"]
        assert [one["node"] for one in people] == ["b", "a", "c"]
        host.room = room

        for _ in range(DEATHS):
            killed = time.time()
            os.kill(daemons["a"].child(), signal)
            _, waited = await answered(at_b, "room.get", room=room.id)
            for member, mid in views:
                await expect.moving(member.peer, mid, ALICE["hue"], killed + 1, frames=60)
            print(f"answered {waited:.2f} s after the signal")
            assert waited < 2
            people = (await room.call("participant.list"))["participants"]
            assert [one["connection"] for one in people] == ["connected"] * 3
            assert [one["node"] for one in people] == ["b", "a", "c"]

            # Rights hold, and come back.
            await room.call("participant.hardMute", participants=["alice"], media=["video"])
            muted = time.time()
            await asyncio.sleep(1)
            for member, mid in ((bob, seen.video), (host, at_home.video)):
                assert not await member.peer.frames(mid, muted + 0.5)
            await room.call("participant.hardUnmute", participants=["alice"], media=["video"])
            since = time.time()
            for member, mid in views:
                await expect.moving(member.peer, mid, ALICE["hue"], since)
        assert not left(at_c)
        for client in (at_b, at_c):
            without_gaps(client.events, room.id)
        # An offer of somebody who stayed is answered by the node where it was.
        await bob.negotiate()
        assert "127.0.0.3" in bob.answers[-1]


@pytest.mark.parametrize("signal", [Signals.SIGKILL, Signals.SIGHUP], ids=["kill", "upgrade"])
@pytest.mark.seconds(60 + 20 * DEATHS)
async def test_who_is_elsewhere_plays_on_when_their_node_goes_on(start_sfud, nats, peers, signal):
    """The daemon of a node with participants of another node's room is killed, and its keeper
    starts it again, or it is replaced: nobody offers again."""
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c", keeper=True)))
    await linked(daemons["a"], "b", "c")
    async with daemons["a"].client() as at_a, daemons["c"].client() as at_c:
        at_b = daemons["b"].client()
        await at_b.open()
        for client in (at_a, at_b, at_c):
            await client.call("events.subscribe")
        home, there, away = Room(at_a), Room(at_b), Room(at_c)
        there.id = away.id = home.id
        assert (await home.call("room.create"))["node"] == "a"
        host = await home.join("host", await peers("aiortc"), slots=1, **ALICE)
        alice = await there.join("alice", await peers("aiortc"), slots=1, **ALICE)
        # She has two pictures, and tells for each what it takes.
        carol = await there.join("carol", await peers("aiortc"), slots=2)
        dave = await there.join("dave", await peers("aiortc"), slots=1)
        bob = await away.join("bob", await peers("aiortc"), slots=1)
        views = []
        pairs = ((carol, host), (carol, alice), (dave, alice), (bob, alice), (host, alice))
        for viewer, publisher in pairs:
            seen = await viewer.subscribe(publisher.stream)
            views.append((viewer, seen.video))
            await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)
        await at_b.close()
        alice.room = carol.room = dave.room = home
        names = ["host", "alice", "carol", "dave", "bob"]

        for _ in range(DEATHS):
            killed = time.time()
            os.kill(daemons["b"].child(), signal)
            for viewer, mid in views:
                await expect.moving(viewer.peer, mid, ALICE["hue"], killed + 1, frames=60)
            gaps = [longest(await viewer.peer.frames(mid, killed - 1)) for viewer, mid in views]
            print("longest gaps after the signal: " + " ".join(f"{gap:.2f} s" for gap in gaps))
            assert max(gaps) < 2
            people = (await home.call("participant.list"))["participants"]
            assert [one["participant"] for one in people] == names
            assert [one["connection"] for one in people] == ["connected"] * 5
            assert [one["node"] for one in people] == ["a", "b", "b", "b", "c"]

            # Rights hold, and come back.
            await home.call("participant.hardMute", participants=["alice"], media=["video"])
            muted = time.time()
            await asyncio.sleep(1)
            for viewer, mid in views[1:]:
                assert not await viewer.peer.frames(mid, muted + 0.5)
            await home.call("participant.hardUnmute", participants=["alice"], media=["video"])
            since = time.time()
            for viewer, mid in views:
                await expect.moving(viewer.peer, mid, ALICE["hue"], since)
        for client in (at_a, at_c):
            assert not left(client)
            without_gaps(client.events, home.id)
        # An offer of somebody who stayed is answered by the node where it was.
        await carol.negotiate()
        assert "127.0.0.2" in carol.answers[-1]


def left(client):
    """Returns what a connection was told of people who had to come again."""
    return [
        event.data
        for event in client.events
        if event.event in ("participant.moveWanted", "stream.destroyed")
        or event.event == "participant.connection"
        and event.data["connection"] == "disconnected"
    ]


def longest(frames):
    """Returns the longest time between two frames."""
    times = [frame.time for frame in frames]
    return max((after - before for before, after in zip(times, times[1:])), default=99.0)
