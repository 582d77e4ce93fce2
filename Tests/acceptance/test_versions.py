"""A node of an earlier version shares rooms with one of this version.

`SFUD_PREVIOUS_BINARY` names the earlier one's sfud; `make acceptance-versions` builds it."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.nats import cluster
from harness.process import until
from harness.room import Room
from test_nodes import nats  # noqa: F401
from test_takeover import answered, without_gaps

PREVIOUS = os.environ.get("SFUD_PREVIOUS_BINARY", "")
BOTH = ["audio", "video"]

pytestmark = [
    pytest.mark.skipif(not PREVIOUS, reason="only with SFUD_PREVIOUS_BINARY"),
    pytest.mark.slow,
    pytest.mark.alone,
    pytest.mark.seconds(150),
]


async def takes_people(room: Room, node: str) -> None:
    """Awaits that who joins by way of a node connects there: media comes through to the home."""

    async def taken():
        joined = await room.call("participant.join", participant="probe")
        await room.call("participant.leave", participant="probe")
        return joined["node"] == node

    await until(taken, f"people connect at {node}", 15, every=0.2)


async def plays(viewer, seen, look: dict, since: float) -> None:
    await expect.moving(viewer.peer, seen.video, look["hue"], since)
    await expect.heard(viewer.peer, seen.audio, look["tone"], since)


@pytest.mark.parametrize("home, edge", [("earlier", "this"), ("this", "earlier")])
async def test_two_versions_share_a_room(start_sfud, nats, peers, home, edge):
    programs = {"earlier": Path(PREVIOUS)}
    started = await cluster(start_sfud, nats, home, edge, programs=programs)
    daemons = dict(zip((home, edge), started))
    async with daemons[home].client() as at_home, daemons[edge].client() as at_edge:
        for name, client in ((home, at_home), (edge, at_edge)):
            await client.call("events.subscribe")
            print(f"{name}: {(await client.call('server.info'))['version']}")
        room, there = Room(at_home), Room(at_edge)
        there.id = room.id
        created = await room.call("room.create", custom={"topic": "tea"})
        assert created["node"] == home
        await takes_people(there, edge)
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        bob = await there.join("bob", await peers("aiortc"), slots=1, **BOB)
        people = (await room.call("participant.list"))["participants"]
        assert {one["participant"]: one["node"] for one in people} == {"alice": home, "bob": edge}
        views = {
            "alice": (bob, await bob.subscribe(alice.stream), ALICE),
            "bob": (alice, await alice.subscribe(bob.stream), BOB),
        }
        for viewer, seen, look in views.values():
            await plays(viewer, seen, look, seen.since)

        # A mute is in force when it is answered, whoever is asked for it.
        for moderator in (room, there):
            for who, (viewer, seen, look) in views.items():
                muted = {"participants": [who], "media": BOTH}
                result = await moderator.call("participant.hardMute", **muted)
                assert "silent" not in result["fence"] and "durable" not in result, result
                await asyncio.gather(
                    *(
                        expect.still(viewer.peer, mid, counter="bytesReceived")
                        for mid in (seen.audio, seen.video)
                    )
                )
                since = time.time()
                await moderator.call("participant.hardUnmute", **muted)
                await plays(viewer, seen, look, since)

        # The other version goes on with the room from what the home has written.
        await there.call("participant.hardMute", participants=["bob"], media=["audio"])
        os.kill(daemons[home].process.pid, signal.SIGKILL)
        state, waited = await answered(at_edge, "room.get", room=room.id)
        print(f"{edge} has answered {waited:.2f} s after {home} was killed")
        assert waited <= 4 and state["node"] == edge, (waited, state)
        assert state["custom"] == {"topic": "tea"}
        people = {one["participant"]: one for one in state["participants"]}
        assert people["alice"]["connection"] == "disconnected"
        assert people["bob"]["connection"] == "connected"
        assert people["bob"]["hardMuted"] == ["audio"]
        wanted = await at_edge.wait_for(
            "participant.moveWanted", lambda data: data["participant"] == "alice"
        )
        assert (wanted.data["node"], wanted.data["reason"]) == (edge, "node-lost")

        alice.room, alice.peer = there, await peers("aiortc")
        await alice.peer.publish(**ALICE)
        await alice.peer.receive(1)
        await alice.negotiate()
        seen = await bob.subscribe(alice.stream)
        await plays(bob, seen, ALICE, seen.since)
        seen = await alice.subscribe(bob.stream)
        await expect.moving(alice.peer, seen.video, BOB["hue"], seen.since)
        without_gaps(at_edge.events, room.id)
