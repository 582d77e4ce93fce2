"""Rooms that outlive their host: real daemons, a real registry, real media."""

import asyncio
import json
import os
import signal
import time

import pytest

from harness import expect
from harness.ipc import Refused
from harness.looks import ALICE
from harness.nats import Nats, cluster, finds, linked
from harness.process import until
from harness.room import Room
from test_nodes import nats, refused  # noqa: F401

TAKEOVERS = int(os.environ.get("SFUD_TAKEOVERS", "2"))


async def answered(client, method, seconds: float = 6, **params):
    """The result of a call, and the seconds until it came."""
    start = time.monotonic()
    result = await asyncio.wait_for(client.call(method, **params), seconds)
    return result, time.monotonic() - start


def without_gaps(events, room: str) -> list[int]:
    numbers = [event.seq for event in events if event.room == room]
    told = [f"{event.seq} {event.event}" for event in events if event.room == room]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))), "\n".join(told)
    return numbers


async def talk(client, room: Room, peers):
    """Alice, who publishes, and Bob join by way of a client's node."""
    await client.call("events.subscribe")
    there = Room(client)
    there.id = room.id
    alice = await there.join("alice", await peers("aiortc"), slots=1, **ALICE)
    return alice, await there.join("bob", await peers("aiortc"), slots=1)


async def test_a_room_outlives_its_host(start_sfud, nats, peers):
    """Two people talk at one host, which is killed; they meet again at another one."""
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c")))
    async with daemons["b"].client() as at_b, daemons["c"].client() as at_c:
        for client in (at_b, at_c):
            await client.call("events.subscribe")
        room = Room(at_b)
        at_a = daemons["a"].client()
        await at_a.open()
        created = await at_a.call("room.create", room=room.id, custom={"topic": "tea"})
        assert created["node"] == "a", created
        alice, bob = await talk(at_a, room, peers)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        alice.room = bob.room = room
        await room.call("participant.join", participant="carol", role="moderator")
        await room.call("participant.hardMute", participants=["bob"], media=["audio"], by="carol")
        await room.call("pin.add", participants=["alice"], by="carol")
        await room.call("message.publish", topic="chat", message="hello", persist=True)

        killed = time.monotonic()
        os.kill(daemons["a"].process.pid, signal.SIGKILL)
        await at_a.close()
        state, waited = await answered(at_b, "room.get", room=room.id)
        assert waited <= 4, f"a call was answered after {waited:.2f} s"
        home = state["node"]
        assert home in "bc" and state["custom"] == {"topic": "tea"}
        assert state["pins"] == ["alice"]
        people = {one["participant"]: one for one in state["participants"]}
        assert people["alice"]["connection"] == people["bob"]["connection"] == "disconnected"
        assert people["bob"]["hardMuted"] == ["audio"] and people["carol"]["role"] == "moderator"

        # Both clients offer again, at the new home.
        for client in (at_b, at_c):
            for who in ("alice", "bob"):
                wanted = await client.wait_for(
                    "participant.moveWanted", lambda data: data["participant"] == who
                )
                assert (wanted.data["node"], wanted.data["reason"]) == (home, "node-lost")
        alice.peer, bob.peer = await peers("aiortc"), await peers("aiortc")
        began = time.monotonic()
        await alice.peer.publish(**ALICE)
        for member in (alice, bob):
            await member.peer.receive(1)
            await member.negotiate()
        address = {"b": "127.0.0.2", "c": "127.0.0.3"}[home]
        assert address in alice.answers[-1] and "127.0.0.1 " not in alice.answers[-1]
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        now = time.monotonic()
        print(
            f"answered {waited:.2f} s after the kill, playing after {now - killed:.2f} s,"
            f" {now - began:.2f} s of them for the clients"
        )
        await at_c.wait_for("subscription.connected")
        for client in (at_b, at_c):
            without_gaps(client.events, room.id)
        # Somebody who comes late gets all that happened, from the old home too.
        async with daemons[home].client() as late:
            await late.call("events.subscribe", rooms=[room.id], since={room.id: 0})
            await late.wait_for("participant.moveWanted")
            assert [event.event for event in late.events][0] == "room.created"
            assert without_gaps(late.events, room.id)[0] == 1


@pytest.mark.parametrize("stack", ["aiortc", "Chromium"])
async def test_who_is_elsewhere_plays_on(start_sfud, nats, peers, stack):
    """Nobody is connected at the home, which is killed: media goes on, at the next home too."""
    daemons = dict(zip("abc", await cluster(start_sfud, nats, "a", "b", "c")))
    # Without media to a node, who joins there connects at the home.
    await linked(daemons["a"], "b", "c")
    async with daemons["b"].client() as at_b, daemons["c"].client() as at_c:
        for client in (at_b, at_c):
            await client.call("events.subscribe")
        room, there = Room(at_b), Room(at_c)
        there.id = room.id
        async with daemons["a"].client() as at_a:
            assert (await at_a.call("room.create", room=room.id))["node"] == "a"
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        bob = await there.join("bob", await peers(stack), slots=1)
        carol = await room.join("carol", await peers("aiortc"), slots=1)
        seen = await bob.subscribe(alice.stream)
        near = await carol.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        await expect.moving(carol.peer, near.video, ALICE["hue"], near.since)
        before = (await bob.peer.inbound(seen.video))["packetsLost"]
        people = (await room.call("participant.list"))["participants"]
        assert [one["node"] for one in people] == ["b", "c", "b"]

        killed = time.time()
        os.kill(daemons["a"].process.pid, signal.SIGKILL)
        state, waited = await answered(at_b, "room.get", room=room.id)
        assert waited <= 4 and state["node"] in "bc", (waited, state)
        taken = time.time()
        for member, mid in ((bob, seen.video), (carol, near.video)):
            await expect.moving(member.peer, mid, ALICE["hue"], killed, frames=90, seconds=20)
            await expect.moving(member.peer, mid, ALICE["hue"], taken, frames=60, seconds=20)
        lost = (await bob.peer.inbound(seen.video))["packetsLost"] - before
        assert lost == 0, f"{lost} packets lost"
        people = (await room.call("participant.list"))["participants"]
        assert [one["connection"] for one in people] == ["connected"] * 3
        assert [one["node"] for one in people] == ["b", "c", "b"]
        moved = [event for event in at_c.events if event.event == "participant.moveWanted"]
        assert not moved, moved

        # The new home is heard: rights, offers, and new people.
        await room.call("participant.hardMute", participants=["alice"], media=["video"])
        muted = time.time()
        await asyncio.sleep(1)
        assert not await bob.peer.frames(seen.video, muted + 0.5)
        await room.call("participant.hardUnmute", participants=["alice"], media=["video"])
        await bob.negotiate()
        since = time.time()
        await expect.moving(bob.peer, seen.video, ALICE["hue"], since)
        dave = await there.join("dave", await peers("aiortc"), slots=1)
        late = await dave.subscribe(alice.stream)
        await expect.moving(dave.peer, late.video, ALICE["hue"], late.since)
        for client in (at_b, at_c):
            without_gaps(client.events, room.id)


@pytest.mark.seconds(60 + 10 * TAKEOVERS)
async def test_no_answered_call_is_lost(start_sfud, nats, tmp_path):
    """Homes are killed again and again, while people join by way of the others."""
    names = ["a", "b", "c"]
    config = tmp_path / "limits.json"
    config.write_text(json.dumps({"limits": {"participantsPerRoom": 20 * TAKEOVERS}}))
    more = ("--config", str(config))
    daemons = dict(zip(names, await cluster(start_sfud, nats, *names, more=more)))
    slowest, joined = 0.0, []
    async with daemons["a"].client() as client:
        await client.call("room.create", room="r")
    for number in range(TAKEOVERS):
        home = (await one_call(daemons, names, "room.get", room="r"))["node"]
        others = [name for name in names if name != home]
        async with daemons[others[0]].client() as client:
            await client.call("events.subscribe", rooms=["r"])
            start = time.monotonic()
            for person in range(20):
                who = f"p{number}.{person}"
                if person == 10:
                    os.kill(daemons[home].process.pid, signal.SIGKILL)
                    start = time.monotonic()
                try:
                    reply = await asyncio.wait_for(
                        client.call("participant.join", room="r", participant=who), 8
                    )
                except Refused as refusal:
                    assert refusal.reason == "outcome-unknown", refusal
                    continue
                if person >= 10:
                    slowest = max(slowest, time.monotonic() - start)
                    start = time.monotonic()
                if "durable" not in reply:
                    joined.append(who)
            present = set()
            after = {}
            while True:
                page = await client.call("participant.list", room="r", **after)
                present |= {one["participant"] for one in page["participants"]}
                if "next" not in page:
                    break
                after = {"after": page["next"]}
            assert set(joined) <= present, set(joined) - present
            without_gaps(client.events, "r")
        host = f"127.0.0.{names.index(home) + 1}"
        flags = ("--nats", nats.url, "--node", home, "--link", f"{host}:0", *more)
        daemons[home] = await start_sfud(*flags, host=host, workers=1)
        await finds(daemons[home], {name: "up" for name in names})
    print(f"{TAKEOVERS} takeovers, the slowest call {slowest:.2f} s, {len(joined)} joins")
    assert slowest <= 4


async def one_call(daemons, names, method, **params):
    async with daemons[names[0]].client() as client:
        return await client.call(method, **params)


async def test_a_host_that_stood_still_finds_its_room_elsewhere(start_sfud, nats, peers):
    a, b = await cluster(start_sfud, nats, "a", "b")
    async with a.client() as at_a, b.client() as at_b:
        for client in (at_a, at_b):
            await client.call("events.subscribe")
        room = Room(at_a)
        assert (await room.call("room.create"))["node"] == "a"
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        os.kill(a.process.pid, signal.SIGSTOP)
        try:
            await at_b.wait_for("participant.moveWanted", seconds=8)
            after = (await at_b.call("room.get", room=room.id))["node"]
            assert after == "b"
        finally:
            os.kill(a.process.pid, signal.SIGCONT)
        # A call that reaches it before it has heard is executed at the new home.
        await at_a.call("participant.join", room=room.id, participant="late")
        assert (await at_a.call("room.get", room=room.id))["node"] == "b"
        for client in (at_a, at_b):
            await client.wait_for("participant.joined", lambda data: data["participant"] == "late")
            without_gaps(client.events, room.id)
        assert [(e.seq, e.event) for e in at_a.events if e.room == room.id] == [
            (e.seq, e.event) for e in at_b.events if e.room == room.id
        ]

        async def ended():
            stats = await at_a.call("server.stats")
            return stats["rooms"] == 0

        await until(ended, "the old copy has ended")
        assert (await at_b.call("participant.get", room=room.id, participant=alice.id))


async def test_calls_say_when_the_registry_does_not_keep_them(start_sfud, nats):
    a, b = await cluster(start_sfud, nats, "a", "b")
    async with a.client() as at_a, b.client() as at_b:
        await at_a.call("room.create", room="r")
        assert "durable" not in await at_b.call("participant.join", room="r", participant="x")
        await nats.kill()
        reply, waited = await answered(at_a, "participant.join", room="r", participant="y")
        assert reply["durable"] is False and waited < 0.7, (reply, waited)
        await finds(b, {"a": "up", "b": "up"}, registry="away")
        reply, waited = await answered(at_b, "participant.join", room="r", participant="z")
        assert reply["durable"] is False and waited < 0.2, (reply, waited)
        nats.wipe()
        await nats.start()
        await finds(b, {"a": "up", "b": "up"})

        async def keeps():
            try:
                reply = await at_b.call("participant.update", room="r", participant="z")
            except Refused:
                return False  # The home has not yet claimed the name again.
            return "durable" not in reply

        await until(keeps, "changes are kept again", 10)
        await finds(a, {"a": "up", "b": "up"})
        os.kill(a.process.pid, signal.SIGKILL)
        state, waited = await answered(at_b, "room.get", room="r")
        people = {one["participant"] for one in state["participants"]}
        assert (state["node"], people) == ("b", {"x", "y", "z"}) and waited <= 4
