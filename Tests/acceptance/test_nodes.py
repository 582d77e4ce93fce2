"""Rooms of several daemons that share a registry: real NATS, real links, real media."""

import asyncio
import os
import re
import signal
import socket
from pathlib import Path

import pytest

from harness import expect, process
from harness.ipc import Refused
from harness.looks import ALICE
from harness.nats import Nats, cluster, finds, linked, nodes
from harness.room import Room
from harness.sfud import REPOSITORY, free_ports
from test_daemon import EX_CONFIG, get, run
from test_sfuctl import sfuctl


@pytest.fixture
def nats(loop, tmp_path):
    server = loop.run_until_complete(Nats(tmp_path).start())
    yield server
    loop.run_until_complete(server.kill())


async def refused(call) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


async def test_a_room_at_one_node_is_joined_by_way_of_another(start_sfud, nats, peers):
    a, b, c = await cluster(start_sfud, nats, "a", "b", "c")
    await linked(a, "b")
    async with a.client() as at_a, b.client() as at_b, c.client() as at_c:
        await at_c.call("events.subscribe")
        await at_b.call("events.subscribe")
        room = Room(at_b)
        created = await at_a.call("room.create", room=room.id)
        assert created["node"] == "a"
        joined = await room.call("participant.join", participant="probe")
        assert joined["node"] == "b" and joined["roomInfo"]["node"] == "a"
        await room.call("participant.leave", participant="probe")

        # All of its calls, offers too, go to b, and its media as well.
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        assert " 127.0.0.2 " in alice.answers[0]
        seen = await alice.subscribe(alice.stream)
        await expect.moving(alice.peer, seen.video, ALICE["hue"], seen.since)

        # Events at c, numbered as at the home, none missing and none twice.
        await at_c.wait_for("participant.joined", lambda data: data["participant"] == "alice")
        await at_c.wait_for("subscription.connected")
        await room.call("room.close", detail="over")
        await at_c.wait_for("room.closed")
        numbers = [event.seq for event in at_c.events if event.room == room.id]
        assert numbers == list(range(1, len(numbers) + 1))
        # A late subscriber at c gets what is kept, as at a.
        async with c.client() as late:
            await at_a.call("room.create", room="second")
            await at_a.call("participant.join", room="second", participant="x")
            await at_c.wait_for("participant.joined", lambda data: data["participant"] == "x")
            await late.call("events.subscribe", rooms=["second"], since={"second": 0})
            await late.wait_for("participant.joined")
            assert [event.event for event in late.events][:2] == [
                "room.created",
                "participant.joined",
            ]

        # One name is one room, and errors are the home's.
        taken = await refused(at_c.call("room.create", room="second"))
        assert (taken.code, taken.reason) == (4009, "already-exists")
        nobody = await refused(at_c.call("participant.get", room="second", participant="y"))
        assert nobody.reason == "no-such-participant"
        assert (await refused(at_c.call("room.get", room="none"))).reason == "no-such-room"

    status, output, _ = await sfuctl("--ipc", b.ipc, "nodes")
    assert status == 0 and re.search(r"^a +up .*up +[0-9.]+ ms$", output, re.MULTILINE), output
    status, output, _ = await sfuctl("--ipc", c.ipc, "room", "second")
    assert status == 0 and re.search(r"^home +a$", output, re.MULTILINE), output


async def test_a_home_without_memory_lets_nobody_in_by_way_of_others(start_sfud, nats, tmp_path):
    """All calls come over the link, so no connection of its own tells the home to look."""
    [b] = await cluster(start_sfud, nats, "b")
    limit = (b.resident_bytes() >> 20) + 16
    config = tmp_path / "sfud.json5"
    config.write_text(f"{{ limits: {{ memoryMegabytes: {limit}, messagesPerTopic: 65536 }} }}")
    a = await start_sfud(
        "--config", str(config), "--nats", nats.url, "--node", "a", "--link", "127.0.0.2:0",
        host="127.0.0.2", workers=1,
    )  # fmt: skip
    await finds(b, {"a": "up", "b": "up"})
    async with a.client() as at_a:
        for room in ["door", *(f"r{number}" for number in range(12))]:
            await at_a.call("room.create", room=room)
    async with b.client() as at_b:
        await at_b.call("participant.join", room="door", participant="early")
        for number in range(12):
            say = {"room": f"r{number}", "topic": "t", "persist": True, "message": "m" * 4000}
            await asyncio.gather(*(at_b.call("message.publish", **say) for _ in range(1000)))
            if a.resident_bytes() >> 20 > limit + 4:
                break
        late = await refused(at_b.call("participant.join", room="door", participant="late"))
        assert (late.code, late.data["limit"]) == (4029, "memoryMegabytes"), late


async def test_many_nodes_ask_for_one_name_at_once(start_sfud, nats):
    daemons = await cluster(start_sfud, nats, "a", "b", "c")
    clients = [await daemon.client().open() for daemon in daemons]
    for number in range(20):
        calls = [client.call("room.create", room=f"r{number}") for client in clients]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(result, dict) for result in results) == 1, results
        for result in results:
            assert isinstance(result, dict) or result.reason == "already-exists"
        homes = [await client.call("room.get", room=f"r{number}") for client in clients]
        assert len({home["node"] for home in homes}) == 1
    for client in clients:
        await client.close()


async def test_the_rooms_of_a_killed_node_go_on_and_no_others_move(start_sfud, nats):
    a, b, c = await cluster(start_sfud, nats, "a", "b", "c")
    async with a.client() as at_a, b.client() as at_b, c.client() as at_c:
        await at_c.call("events.subscribe")
        await at_a.call("room.create", room="moved")
        await at_b.call("room.create", room="kept")
        await at_c.call("room.get", room="moved")
        await at_c.wait_for("room.created")
        os.kill(a.process.pid, signal.SIGKILL)
        await finds(b, {"a": "lost", "b": "up", "c": "up"})
        home = (await at_b.call("room.get", room="moved"))["node"]
        assert home in "bc"
        assert (await at_c.call("room.get", room="moved"))["node"] == home
        assert (await refused(at_c.call("room.create", room="moved"))).reason == "already-exists"
        assert (await at_c.call("room.get", room="kept"))["node"] == "b"
        await at_c.call("room.close", room="moved")
        ended = await at_c.wait_for("room.closed")
        assert (ended.room, ended.seq, ended.data["reason"]) == ("moved", 2, "closed")


async def test_the_registry_may_go_and_be_wiped(start_sfud, nats):
    a, b = await cluster(start_sfud, nats, "a", "b")
    await linked(a, "b")
    async with a.client() as at_a, b.client() as at_b:
        await at_b.call("events.subscribe")
        await at_a.call("room.create", room="r")
        await at_b.call("room.get", room="r")
        await nats.kill()
        nats.wipe()
        await finds(b, {"a": "up", "b": "up"}, registry="away")
        no = await refused(at_b.call("room.create", room="s"))
        assert (no.code, no.reason) == (4506, "registry-away")
        joined = await at_b.call("participant.join", room="r", participant="x")
        assert joined["node"] == "b"
        await at_b.wait_for("participant.joined")
        await nats.start()
        for daemon in (a, b):
            await finds(daemon, {"a": "up", "b": "up"})

        async def is_claimed():
            return (await refused(at_b.call("room.create", room="r"))).reason == "already-exists"

        await process.until(is_claimed, "the room's name is taken again")
        assert (await at_b.call("room.create", room="s"))["node"] == "b"
        assert (await at_a.call("room.get", room="s"))["node"] == "b"
        assert not [event for event in at_b.events if event.event == "room.closed"]


async def test_strangers_are_turned_away(start_sfud, nats):
    http = free_ports()
    daemon = await start_sfud(
        "--nats", nats.url, "--node", "a", "--link", f"127.0.0.1:{free_ports()}",
        "--http", f"127.0.0.1:{http}", workers=1,
    )  # fmt: skip
    await finds(daemon, {"a": "up"})
    host, port = (await nodes(daemon))["a"]["address"].rsplit(":", 1)
    with socket.create_connection((host, int(port))) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        stranger.settimeout(5)
        while await asyncio.to_thread(stranger.recv, 4096):
            pass
    tls = await asyncio.create_subprocess_exec(
        "openssl", "s_client", "-connect", f"{host}:{port}", "-tls1_3",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    await asyncio.wait_for(tls.wait(), 10)

    page = ""

    async def counted():
        nonlocal page
        _, _, page = await asyncio.to_thread(get, http, "/metrics")
        return "sfud_link_strangers_total 2" in page

    await process.until(counted, "two strangers are counted")
    document = (REPOSITORY / "docs/metrics.md").read_text()
    [section] = re.findall(r"^## Nodes$.*?(?=^## )", document, re.MULTILINE | re.DOTALL)
    listed = set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))
    exposed = set(re.findall(r"^# TYPE (sfud_(?:node|link|registry|journal|rooms_y)\w*) ", page, re.MULTILINE))
    assert listed == exposed


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (("--node", "a"), "node: needs --nats"),
        (("--nats", "nats://127.0.0.1:1"), "nats: needs --node"),
        (("--nats", "nats://127.0.0.1:1", "--node", "a"), "nats: needs --link"),
        (("--nats", "http://x", "--node", "a", "--link", "127.0.0.1:1"), "nats: must be"),
        (("--nats", "nats://x", "--node", "a.b", "--link", "127.0.0.1:1"), "node: "),
        (("--nats", "nats://x", "--node", "a", "--link", "0.0.0.0:1"), "link: "),
        (("--nats-key", "/etc/hostname"), "nats-key: needs --nats"),
    ],
)
def test_settings_that_cannot_be_are_named(flags, reason):
    done = run(*flags)
    assert done.returncode == EX_CONFIG, done
    assert reason in done.stderr and len(done.stderr.splitlines()) == 1


async def test_a_node_may_start_before_the_registry(start_sfud, tmp_path):
    nats = Nats(tmp_path)
    daemon = await start_sfud(
        "--nats", nats.url, "--node", "a", "--link", "127.0.0.1:0", workers=1
    )
    async with daemon.client() as ipc:
        assert (await refused(ipc.call("room.create", room="r"))).reason == "registry-away"
        await nats.start()
        await finds(daemon, {"a": "up"})
        assert (await ipc.call("room.create", room="r"))["node"] == "a"
    assert await daemon.stop() < 2
    await nats.kill()


async def test_without_a_registry_there_is_no_cluster(sfud, ipc):
    assert await ipc.call("node.list") == {"nodes": []}
    created = await ipc.call("room.create", room="r")
    assert "node" not in created
    joined = await ipc.call("participant.join", room="r", participant="x")
    assert "node" not in joined
    names = {
        (task / "comm").read_text().strip()
        for task in Path(f"/proc/{sfud.process.pid}/task").iterdir()
    }
    assert not any(name.startswith(("registry", "nats")) for name in names)
