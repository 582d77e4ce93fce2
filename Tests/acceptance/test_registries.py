"""A cluster whose registry is three NATS servers, of which some are lost."""

import asyncio
import time

import pytest

from harness import expect
from harness.looks import ALICE
from harness.nats import ThreeNats, cluster, finds, linked
from harness.process import until
from test_moves import forbidden, longest_gap, rooms
from test_takeover import without_gaps


@pytest.fixture
def three(loop, tmp_path):
    servers = loop.run_until_complete(ThreeNats(tmp_path).start())
    yield servers
    loop.run_until_complete(servers.kill())


async def durable(ipc, room: str, seconds: float = 15) -> float:
    """Awaits that a call is stored; returns after how many seconds it was."""
    begin = time.monotonic()

    async def stored():
        reply = await ipc.call("room.update", room=room, custom={"at": time.time()})
        return "durable" not in reply

    await until(stored, "a call is stored", seconds)
    return time.monotonic() - begin


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.seconds(180)
async def test_a_registry_of_three_loses_one_after_another_then_two(start_sfud, three, peers):
    names = {"a": "up", "b": "up"}
    daemons = dict(
        zip("ab", await cluster(start_sfud, three, "a", "b", more=("--nats-replicas", "3")))
    )
    async with daemons["a"].client() as at_a, daemons["b"].client() as at_b:
        there = await rooms(daemons, (at_a, at_b), "ab")
        room = there["a"].id
        alice = await there["a"].join("alice", await peers("aiortc"), **ALICE)
        bob = await there["b"].join("bob", await peers("aiortc"), slots=1)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        await durable(at_a, room)
        began = time.time()
        for number, server in enumerate(three.servers):
            await server.kill()
            waited = [await durable(at_a, room)]
            await at_b.call("room.create", room=f"{room}-{number}")
            waited.append(await durable(at_b, f"{room}-{number}"))
            print(f"without server {number}: stored after {waited[0]:.1f} and {waited[1]:.1f} s")
            await server.start()
            await asyncio.gather(*(finds(one, names) for one in daemons.values()))
            await asyncio.sleep(2)

        for server in three.servers[:2]:
            await server.kill()
        await asyncio.gather(*(finds(one, names, registry="away") for one in daemons.values()))
        begin = time.monotonic()
        mute = {"participants": ["alice"], "media": ["video"]}
        muted = await there["b"].call("participant.hardMute", **mute)
        assert muted["durable"] is False and time.monotonic() - begin < 1, muted
        await expect.still(bob.peer, seen.video, counter="bytesReceived")
        ended = time.time()
        await there["b"].call("participant.hardUnmute", **mute)
        await three.servers[0].start()
        await asyncio.gather(*(finds(one, names, seconds=30) for one in daemons.values()))
        print(f"stored {await durable(at_a, room):.1f} s after the registry is back")

        # Nobody has noticed anything of all that.
        sounds = [
            one.time for one in await bob.peer.sounds(seen.audio, began) if one.level > 0.05
        ]
        assert longest_gap([one for one in sounds if one < ended]) < 1
        await expect.moving(bob.peer, seen.video, ALICE["hue"], time.time())
        assert not forbidden(at_a) and not forbidden(at_b)
        assert (await there["b"].call("room.get"))["node"] == "a"
        for client in (at_a, at_b):
            without_gaps(client.events, room)
