"""Networks without UDP: media over TCP (RFC 6544, RFC 4571)."""

import asyncio
import contextlib
import hmac
import re
import socket
import struct
import time
import urllib.request
import zlib

import pytest

from harness import expect
from harness.looks import ALICE
from harness.process import until
from harness.scene import watching
from harness.sfud import Sfud, free_ports
from harness.tcp_link import CANDIDATE, TCPLink, tcp_only

#: Longest pause that is no freeze here, in seconds: these tests are not about smoothness.
SHAKY = 1.5
HTTP = free_ports()
FLAGS = ("--tcp", "127.0.0.1:0", "--http", f"127.0.0.1:{HTTP}")
SFUD = pytest.mark.sfud(*FLAGS)


async def metrics() -> dict[str, float]:
    """Returns the metrics by name and labels; sfud's figures are at most a second old."""

    def fetch():
        with urllib.request.urlopen(f"http://127.0.0.1:{HTTP}/metrics", timeout=5) as reply:
            return reply.read().decode()

    lines = (await asyncio.to_thread(fetch)).splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {name: float(value) for name, value in pairs}


async def counted(name: str, least: float = 1) -> None:
    async def reached():
        return (await metrics()).get(name, 0) >= least

    await until(reached, f"{name} reaches {least}", 5, every=0.2)


def ended(cause: str) -> str:
    return f'sfud_tcp_ended_total{{cause="{cause}"}}'


def dropped(cause: str, content: str) -> str:
    return f'sfud_send_queue_drops_total{{cause="{cause}",content="{content}"}}'


class NoUDP:
    """A link that only removes the UDP candidates from the answer."""

    async def rewrite(self, answer: str) -> str:
        return tcp_only(answer)


@SFUD
async def test_chromium_plays_over_tcp(sfud, room, peers):
    assert re.search(r" tcp=127\.0\.0\.1:\d+,127\.0\.0\.1:\d+$", sfud.ready_line)
    info = await room.ipc.call("server.info")
    assert sfud.ready_line.endswith(" tcp=" + ",".join(info["tcp"]))

    alice = await room.join("alice", await peers("Chromium"), link=NoUDP(), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1, link=NoUDP())
    seen = await bob.subscribe(alice.stream)

    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, frames=60)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)
    for member in (alice, bob):
        path = await member.peer.path()
        assert (path["local"], path["remote"]) == ("tcp", "tcp")
        assert f"127.0.0.1:{path['port']}" in info["tcp"]
    await counted("sfud_tcp_accepted_total", 2)
    await counted('sfud_tcp_connections{state="validated"}', 2)


async def test_h11_tcp_over_ipv6(start_sfud, peers):
    """From the relays on: Chromium itself has no candidates on ::1."""
    daemon = await start_sfud("--tcp", "[::1]:0", host="[::1]", workers=1)
    links = [await TCPLink.open() for _ in range(2)]
    try:
        both = await peers("Chromium"), await peers("Chromium")
        async with watching(daemon, *both, *links) as scene:
            await scene.heard()
            assert all(remote.startswith("[::1]:") for remote in await scene.remotes())
            assert [link.count for link in links] == [1, 1]
    finally:
        for link in links:
            await link.close()


@SFUD
async def test_udp_comes_first_where_it_gets_through(room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    lines = [line for line in alice.answers[0].splitlines() if "a=candidate:" in line]
    kinds = [line.split()[2] for line in lines]
    assert kinds[0] == "udp" and kinds.count("udp") == kinds.count("tcp")
    priorities = [int(line.split()[3]) for line in lines[: len(set(lines))]]
    assert priorities == sorted(priorities, reverse=True)
    path = await alice.peer.path()
    assert (path["local"], path["remote"]) == ("udp", "udp")


async def test_without_the_flag_there_is_no_tcp(sfud, room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    assert not CANDIDATE.search(alice.answers[0])
    assert "tcp" not in await room.ipc.call("server.info")
    assert "tcp" not in sfud.ready_line


@SFUD
async def test_a_connection_that_ends_is_made_anew(room, peers):
    link = await TCPLink.open()
    try:
        alice = await room.join("alice", await peers("Chromium"), **ALICE)
        bob = await room.join("bob", await peers("Chromium"), slots=1, link=link)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        before = link.count

        link.cut()
        begin = time.time()

        # The client has to notice that the connection has ended and make another one.
        await expect.moving(bob.peer, seen.video, ALICE["hue"], begin + 0.5)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"], begin + 0.5)
        assert link.count > before
    finally:
        await link.close()


@SFUD
@pytest.mark.flaky_outside(reason="a stall of the busy machine looks like a freeze")
async def test_a_peer_that_stops_reading_costs_the_others_nothing(room, peers):
    link = await TCPLink.open()
    try:
        alice = await room.join("alice", await peers("Chromium"), **ALICE)
        bob = await room.join("bob", await peers("Chromium"), slots=1, link=link)
        carol = await room.join("carol", await peers("Chromium"), slots=1, link=NoUDP())
        bobs = await bob.subscribe(alice.stream, audioFallback=False)
        carols = await carol.subscribe(alice.stream)
        await expect.first_frame(bob.peer, bobs.video, ALICE["hue"], bobs.since)
        await expect.first_frame(carol.peer, carols.video, ALICE["hue"], carols.since)

        link.reading.clear()
        begin = time.time()

        await expect.moving(carol.peer, carols.video, ALICE["hue"], begin, freeze=SHAKY)
        await expect.heard(carol.peer, carols.audio, ALICE["tone"], begin)
        await counted(dropped("stale", "video"))
        for mid in (carols.video, carols.audio):
            assert (await carol.peer.inbound(mid))["packetsLost"] == 0

        link.reading.set()
        begin = time.time()
        await expect.moving(bob.peer, bobs.video, ALICE["hue"], begin + 1, freeze=SHAKY)
        await expect.heard(bob.peer, bobs.audio, ALICE["tone"], begin + 1)
    finally:
        await link.close()


@SFUD
@pytest.mark.alone
async def test_a_slow_connection_costs_video_before_audio(room, peers):
    link = await TCPLink.open()
    try:
        hard = {"noise": 600, "width": 320, "height": 180}
        alice = await room.join("alice", await peers("Chromium"), **ALICE, **hard)
        bob = await room.join("bob", await peers("Chromium"), slots=1, link=link)
        seen = await bob.subscribe(alice.stream, audioFallback=False)
        await expect.first_frame(bob.peer, seen.video, ALICE["hue"], seen.since)

        # Less than audio and video need together, more than the audio alone.
        link.rate = 200_000
        await counted(dropped("stale", "video"))
        begin, before = time.time(), await metrics()
        packets = await expect.packets(bob.peer, seen.audio)

        async def enough():
            return await expect.packets(bob.peer, seen.audio) > packets + 150

        await until(enough, "three seconds of sound")
        after = await metrics()
        video, audio = (
            sum(after[name] - before[name] for name in (dropped("stale", kind), dropped("full", kind)))
            for kind in ("video", "audio")
        )
        # Audio waits briefly for the connection to become writable, so some of it is too late.
        assert video > 3 * audio and audio < 30, (video, audio)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"], begin)
    finally:
        await link.close()


class Raw:
    """A raw TCP connection under the test's control."""

    def __init__(self, address: tuple[str, int]):
        self.socket = socket.create_connection(address, timeout=5)

    async def ended_after(self, seconds: float) -> tuple[float, bytes]:
        """Returns the seconds until the other side closed it, and the data before that."""
        loop = asyncio.get_running_loop()
        self.socket.setblocking(False)
        begin, said = time.monotonic(), b""
        async with asyncio.timeout(seconds):
            with contextlib.suppress(ConnectionError):
                while data := await loop.sock_recv(self.socket, 4096):
                    said += data
        return time.monotonic() - begin, said

    def send(self, *frames: bytes) -> None:
        self.socket.sendall(b"".join(struct.pack(">H", len(one)) + one for one in frames))

    async def frame(self) -> bytes:
        loop = asyncio.get_running_loop()
        self.socket.setblocking(False)
        async with asyncio.timeout(5):
            data = b""
            while len(data) < 2 or len(data) < 2 + struct.unpack(">H", data[:2])[0]:
                more = await loop.sock_recv(self.socket, 4096)
                assert more, "the connection has ended"
                data += more
        return data[2:]


def check(username: str, password: str) -> bytes:
    """Returns a connectivity check (RFC 8445 §7.2.4)."""
    name = username.encode()
    body = struct.pack(">HH", 6, len(name)) + name + b"\0" * (-len(name) % 4)
    body += struct.pack(">HHI", 0x24, 4, 1) + struct.pack(">HHQ", 0x802A, 8, 7)

    def head(length: int) -> bytes:
        return struct.pack(">HHI", 1, length, 0x2112A442) + b"twelve bytes"

    tag = hmac.digest(password.encode(), head(len(body) + 24) + body, "sha1")
    body += struct.pack(">HH", 8, 20) + tag
    sum_ = zlib.crc32(head(len(body) + 8) + body) ^ 0x5354554E
    body += struct.pack(">HHI", 0x8028, 4, sum_)
    return head(len(body)) + body


@SFUD
async def test_strangers_on_tcp_get_nothing_and_do_not_stay(sfud: Sfud, room, peers):
    await room.call("participant.join", participant="alice")
    peer = await peers("aiortc")
    await peer.receive(1)
    offer = await peer.offer()
    answer = (await room.call("transport.offer", participant="alice", sdp=offer))["sdp"]
    _, host, port = CANDIDATE.search(answer).groups()
    address = (host, int(port))

    def value(sdp: str, name: str) -> str:
        return re.search(rf"^a={name}:(\S+)", sdp, re.MULTILINE)[1]

    username = f"{value(answer, 'ice-ufrag')}:{value(offer, 'ice-ufrag')}"
    password = value(answer, "ice-pwd")

    good, silent, slow, wrong, large, http = (Raw(address) for _ in range(6))
    good.send(check(username, password))
    success = await good.frame()
    assert success[:2] == b"\x01\x01"
    wrong.send(check(username, "not the password at all"))
    large.send(check(username, password))
    assert (await large.frame())[:2] == b"\x01\x01"
    large.send(b"\0" * 1473)
    http.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
    for one in (wrong, large, http):
        seconds, said = await one.ended_after(3)
        assert seconds < 1 and said == b""

    async def drip():
        slow.socket.sendall(struct.pack(">H", 100))
        with contextlib.suppress(ConnectionError):
            while True:
                slow.socket.send(b"\0")
                await asyncio.sleep(0.5)

    dripping = asyncio.create_task(drip())
    results = await asyncio.gather(silent.ended_after(8), slow.ended_after(8))
    dripping.cancel()
    for seconds, said in results:
        assert 4 < seconds < 7 and said == b""
    for cause, least in {"unauthenticated": 1, "oversized": 2, "silent": 2}.items():
        await counted(ended(cause), least)
    # A validated connection stays, and ends with its transport.
    good.send(check(username, password))
    assert (await good.frame())[:2] == b"\x01\x01"
    await room.call("participant.leave", participant="alice")
    await good.ended_after(3)
    await counted(ended("released"))
