"""Hosts with viewers that are lost: browsers play again by way of another host."""

import os
import signal
import time

import pytest

from harness import expect
from harness.looks import ALICE
from harness.nats import cluster, finds, linked
from harness.room import Room
from test_nodes import nats  # noqa: F401
from test_spans import At

DEATHS = int(os.environ.get("SFUD_EDGE_DEATHS", "1"))


@pytest.mark.seconds(60 + 30 * DEATHS)
async def test_a_browser_at_a_lost_node_plays_again_elsewhere(start_sfud, nats, peers):
    """The signalling server hears that it is disconnected, and has it offer at the other node."""
    addresses = {name: f"127.0.0.{number}" for number, name in enumerate("abc", 1)}
    daemons = dict(zip("abc", await cluster(start_sfud, nats, *"abc")))
    told, played = [], []
    async with daemons["a"].client() as at_a:
        room = await Room(at_a).open()
        alice = await room.join("alice", await peers("aiortc"), **ALICE)
        for death in range(DEATHS):
            edge, other = "bc" if death % 2 == 0 else "cb"
            await linked(daemons["a"], "b", "c")
            who = f"bob{death}"
            async with daemons[edge].client() as at_edge, daemons[other].client() as at_other:
                await at_edge.call("events.subscribe")
                bob = await At(room, at_edge).join(who, await peers("Chromium"), slots=1)
                assert f" {addresses[edge]} " in bob.answers[-1]
                seen = await bob.subscribe(alice.stream)
                await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
                spare = await peers("Chromium")
                await spare.receive(1)

                killed = time.time()
                os.kill(daemons[edge].process.pid, signal.SIGKILL)
                await at_a.wait_for(
                    "participant.connection",
                    lambda data: data["participant"] == who
                    and data["connection"] == "disconnected",
                    10,
                )
                told.append(time.time() - killed)
                bob.room, bob.peer = At(room, at_other), spare
                await bob.room.call("participant.join", participant=who)
                await bob.negotiate()
                assert f" {addresses[other]} " in bob.answers[-1]
                seen = await bob.subscribe(alice.stream)
                frame = await expect.first_frame(bob.peer, seen.video, ALICE["hue"], killed)
                played.append(frame.time - killed)
                await bob.leave()
            flags = ("--nats", nats.url, "--node", edge, "--link", f"{addresses[edge]}:0")
            daemons[edge] = await start_sfud(*flags, host=addresses[edge], workers=1)
            await finds(daemons[edge], {name: "up" for name in "abc"})
    print(
        f"{DEATHS} hosts lost: disconnected after {max(told):.2f} s at most,"
        f" a picture again after {sorted(played)[len(played) // 2]:.2f} s,"
        f" {max(played):.2f} s at most"
    )
    assert max(played) <= 5, played
