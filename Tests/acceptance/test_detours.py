"""Two nodes that do not hear each other: real daemons, NATS, and proxies that cut one path."""

import asyncio
import time

import pytest

from harness import expect
from harness.looks import BOB
from harness.nats import Nats, finds, linked
from harness.node_path import NodePath
from harness.process import until
from harness.room import Room
from test_moves import longest_gap
from test_spans import At


@pytest.fixture
def nats(loop, tmp_path):
    server = loop.run_until_complete(Nats(tmp_path).start())
    yield server
    loop.run_until_complete(server.kill())


async def three_nodes(start_sfud, nats):
    """Three nodes, and the paths to the second and third one."""
    common = ("--nats", nats.url)
    a = await start_sfud(*common, "--node", "a", "--link", "127.0.0.1:0", workers=1)
    paths, daemons = [], [a]
    for name, host in (("b", "127.0.0.2"), ("c", "127.0.0.3")):
        path = await NodePath.open(host)
        paths.append(path)
        daemons.append(await start_sfud(*common, "--node", name, *path.flags, host=host, workers=1))
    up = dict.fromkeys("abc", "up")
    await asyncio.gather(*(finds(one, up) for one in daemons))
    for daemon, name in zip(daemons, "abc", strict=True):
        await linked(daemon, *(set("abc") - {name}))
    return daemons, paths


async def logged(daemon, message: str) -> bool:
    return any(
        f'msg="{message}"' in line and "node=c" in line
        for line in daemon.log_text().splitlines()
    )


@pytest.mark.seconds(90)
@pytest.mark.parametrize("stack", ["Chromium", "Firefox"])
async def test_a_stream_goes_another_way_where_two_nodes_do_not_hear_each_other(
    start_sfud, nats, peers, capsys, stack
):
    daemons, paths = await three_nodes(start_sfud, nats)
    a, b, c = daemons
    async with a.client() as at_a, b.client() as at_b, c.client() as at_c:
        for ipc in (at_b, at_c):
            await ipc.call("events.subscribe")
        room = await Room(at_a).open()
        bob = await At(room, at_b).join("bob", await peers("aiortc"), **BOB)
        viewer = await At(room, at_c).join("viewer", await peers(stack), slots=1)
        assert " 127.0.0.3 " in viewer.answers[0]
        seen = await viewer.subscribe(bob.stream)
        await expect.moving(viewer.peer, seen.video, BOB["hue"], seen.since)
        await expect.heard(viewer.peer, seen.audio, BOB["tone"], seen.since)

        # No datagram passes between b and c from now on.
        paths[0].cut.add("127.0.0.3")
        paths[1].cut.add("127.0.0.2")
        cut = time.time()
        await until(lambda: logged(a, "node does not hear others"), "the cut", 10)
        await expect.moving(viewer.peer, seen.video, BOB["hue"], time.time())
        await asyncio.sleep(1)
        frames = [one.time for one in await viewer.peer.frames(seen.video, cut)]
        gap = longest_gap([cut, *frames])
        await expect.heard(viewer.peer, seen.audio, BOB["tone"], time.time())
        with capsys.disabled():
            print(f"\n{stack}: without a picture for {gap:.2f} s when the path was cut")
        assert gap < 2.5

        # What holds at all nodes holds on the way, too.
        result = await room.call(
            "participant.hardMute", participant="bob", media=["audio", "video"]
        )
        assert "silent" not in result["fence"], result
        await expect.still(viewer.peer, seen.video)
        await expect.still(viewer.peer, seen.audio)
        again = time.time()
        await room.call("participant.hardUnmute", participant="bob", media=["audio", "video"])
        await expect.moving(viewer.peer, seen.video, BOB["hue"], again)

        paths[0].cut.clear()
        paths[1].cut.clear()
        healed = time.time()
        assert not await logged(a, "node hears the others again")
        await until(lambda: logged(a, "node hears the others again"), "the direct way", 20)
        await asyncio.sleep(1)
        frames = [one.time for one in await viewer.peer.frames(seen.video, healed)]
        with capsys.disabled():
            print(f"{stack}: longest gap {longest_gap(frames):.2f} s when it was mended")
        assert longest_gap(frames) < 0.5
        await expect.moving(viewer.peer, seen.video, BOB["hue"], time.time())
    for path in paths:
        await path.close()
