"""Nodes that drain: their people move to others without a break, and their rooms go on there."""

import asyncio
import itertools
import time

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.media import hue_distance
from harness.nats import cluster, finds, linked
from harness.process import until
from harness.room import Member, Room
from test_nodes import nats  # noqa: F401
from test_takeover import without_gaps

STACKS = ["aiortc", "Chromium", "Firefox"]
#: The longest time without a picture or a sound, on a machine of two cores that encodes and decodes
#: everything beside another test; on a quiet one it is less than half a second. Who connects again
#: instead of moving misses more than two.
GAP = 1.0
#: Pictures after a move.
MANY = {"frames": 40, "freeze": GAP}


async def rooms(daemons, clients, names: str) -> dict[str, Room]:
    """The same room at each node, made at the first one."""
    for client in clients:
        await client.call("events.subscribe")
    there = {name: Room(client) for name, client in zip(names, clients)}
    for room in there.values():
        room.id = there[names[0]].id
    await linked(daemons[names[0]], *names[1:])
    created = await there[names[0]].call("room.create")
    assert created["node"] == names[0]
    return there


async def asked(client, name: str) -> str:
    """Awaits that a participant is asked to move; returns where."""
    wanted = await client.wait_for(
        "participant.moveWanted", lambda data: data["participant"] == name
    )
    assert wanted.data["reason"] == "drain", wanted.data
    return wanted.data["node"]


async def move(member: Member, peer, node: str, slots: int = 0, **publish):
    """Makes the second connection of a participant; returns the first one when sfud has left it."""
    if publish:
        await peer.publish(**publish)
    if slots:
        await peer.receive(slots)
    old, member.peer = member.peer, peer
    await member.negotiate()

    async def moved():
        info = await member.room.call("participant.get", participant=member.id)
        return info["node"] == node

    await until(moved, f"{member.id} moves to {node}", 10, every=0.02)
    return old


def longest_gap(times: list[float]) -> float:
    return max(after - before for before, after in itertools.pairwise(sorted(times)))


def forbidden(client) -> list[str]:
    """Events that somebody would notice."""
    noticed = {"participant.left", "stream.destroyed", "subscription.disconnected"}
    return [
        f"{event.event} {event.data}"
        for event in client.events
        if event.event in noticed
        or (event.event == "participant.connection" and event.data["connection"] != "connected")
    ]


@pytest.mark.parametrize("stack", STACKS)
async def test_a_viewer_moves_unnoticed(start_sfud, nats, peers, stack):
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c")))
    async with daemons["a"].client() as at_a, daemons["b"].client() as at_b:
        there = await rooms(daemons, (at_a, at_b), "ab")
        await linked(daemons["a"], "c")
        alice = await there["a"].join("alice", await peers("aiortc"), **ALICE)
        bob = await there["b"].join("bob", await peers(stack), slots=1)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"])

        await at_b.call("server.drain")
        node = await asked(at_b, "bob")
        began = time.time()
        old = await move(bob, await peers(stack), node, slots=1)
        frames = await expect.moving(bob.peer, seen.video, ALICE["hue"], began, **MANY)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"])
        before = [one.time for one in await old.frames(seen.video, began - 2)]
        pictures = longest_gap(before + [one.time for one in frames])
        sounds = [
            one.time
            for peer in (old, bob.peer)
            for one in await peer.sounds(seen.audio, began - 2)
            if one.level > 0.05
        ]
        sound = longest_gap(sounds)
        print(f"{stack}: {pictures:.3f} s without a picture, {sound:.3f} s without a sound")
        assert pictures < GAP and sound < GAP, (pictures, sound)
        left = await there["a"].call("subscription.list", participant="bob")
        assert [one["subscription"] for one in left["subscriptions"]] == [seen.id]
        assert not forbidden(at_a) and not forbidden(at_b)
        await at_b.wait_for("server.drained", seconds=5)
        without_gaps(at_a.events, there["a"].id)


@pytest.mark.parametrize("stack", STACKS)
async def test_a_publisher_moves_unnoticed(start_sfud, nats, peers, stack):
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c")))
    async with (
        daemons["a"].client() as at_a,
        daemons["b"].client() as at_b,
        daemons["c"].client() as at_c,
    ):
        there = await rooms(daemons, (at_a, at_b, at_c), "abc")
        alice = await there["b"].join("alice", await peers(stack), **ALICE)
        bob = await there["a"].join("bob", await peers("aiortc"), slots=1)
        carol = await there["c"].join("carol", await peers("Chromium"), slots=1)
        stream = alice.stream
        views = [(member, await member.subscribe(stream)) for member in (bob, carol)]
        for member, seen in views:
            await expect.moving(member.peer, seen.video, ALICE["hue"], seen.since)

        await at_b.call("server.drain")
        node = await asked(at_b, "alice")
        began = time.time()
        await move(alice, await peers(stack), node, **ALICE)
        moved = time.time()
        assert alice.stream == stream
        for member, seen in views:
            await expect.moving(member.peer, seen.video, ALICE["hue"], moved + 0.5, **MANY)
            await expect.heard(member.peer, seen.audio, ALICE["tone"], moved)
            frames = await member.peer.frames(seen.video, began - 1)
            sounds = await member.peer.sounds(seen.audio, began - 1)
            pictures = longest_gap([one.time for one in frames])
            sound = longest_gap([one.time for one in sounds if one.level > 0.05])
            print(
                f"{stack} to {member.peer.stack}: {pictures:.3f} s without a picture,"
                f" {sound:.3f} s without a sound"
            )
            assert all(hue_distance(one.hue, ALICE["hue"]) < 30 for one in frames)
            assert pictures < GAP and sound < GAP, (pictures, sound)
        assert not forbidden(at_a) and not forbidden(at_c)

        # A mute of somebody who has moved holds everywhere.
        await there["a"].call("participant.hardMute", participants=["alice"], media=["video"])
        await asyncio.gather(
            *(expect.still(one.peer, seen.video, counter="bytesReceived") for one, seen in views)
        )


async def test_a_home_drains_and_ends_and_nobody_notices(start_sfud, nats, peers):
    """People leave the home, its room leaves it behind them, and its process ends."""
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c")))
    async with daemons["b"].client() as at_b, daemons["c"].client() as at_c:
        async with daemons["a"].client() as at_a:
            there = await rooms(daemons, (at_a, at_b, at_c), "abc")
            room = there["a"]
            alice = await there["a"].join("alice", await peers("aiortc"), slots=1, **ALICE)
            bob = await there["b"].join("bob", await peers("Chromium"), slots=1, **BOB)
            seen = await bob.subscribe(alice.stream)
            back = await alice.subscribe(bob.stream)
            await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
            await expect.moving(alice.peer, back.video, BOB["hue"], back.since)

            await at_a.call("server.drain")
            node = await asked(at_a, "alice")
            assert node in "bc"
            began = time.time()
            old = await move(alice, await peers("aiortc"), node, slots=1, **ALICE)
            await at_a.wait_for("server.drained", seconds=10)
            drained = time.time()
            without_gaps(at_a.events, room.id)
            assert not forbidden(at_a)
        home = (await there["b"].call("room.get"))["node"]
        assert home in "bc"
        await daemons["a"].stop()
        ended = time.time()
        alice.room = there["b"]
        await expect.moving(bob.peer, seen.video, ALICE["hue"], ended, frames=60)
        await expect.moving(alice.peer, back.video, BOB["hue"], ended, frames=60)
        pictures = longest_gap([one.time for one in await bob.peer.frames(seen.video, began - 1)])
        sound = longest_gap(
            [one.time for one in await bob.peer.sounds(seen.audio, began - 1) if one.level > 0.05]
        )
        print(
            f"drained in {drained - began:.1f} s: {pictures:.3f} s without a picture,"
            f" {sound:.3f} s without a sound"
        )
        assert pictures < GAP and sound < GAP, (pictures, sound)
        assert not forbidden(at_b) and not forbidden(at_c)
        # The new home is heard.
        await finds(daemons["b"], {"b": "up", "c": "up"})
        await there["c"].call("participant.hardMute", participants=["alice"], media=["video"])
        await expect.still(bob.peer, seen.video, counter="bytesReceived")
        await there["c"].call("participant.hardUnmute", participants=["alice"], media=["video"])
        await expect.moving(bob.peer, seen.video, ALICE["hue"], time.time())
        for client in (at_b, at_c):
            without_gaps(client.events, room.id)
        await old.close()
