"""Faults of the system, beside a room that must stay unharmed.

Names begin with the row of docs/reliability.md; the room is `harness.bench.unharmed`.
"""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
import socket
import time

import pytest

from harness import expect, process
from harness.bench import finish, start, unharmed
from harness.clock import WallClock
from harness.ipc import IPC, Refused, raw
from harness.scene import longest_gap, watching
from harness.sfud import Sfud, binary
from harness.strace import strace


async def test_i1_failing_sends_lose_nothing(sfud):
    """Fails every tenth send call: its datagrams are sent a moment later, in order."""
    async with unharmed(sfud):
        for error in ("ENOBUFS", "EAGAIN"):
            tracer = await strace(sfud, f"sendmsg:error={error}:when=10+10")
            await asyncio.sleep(2)
            tracer.send_signal(signal.SIGINT)
            await tracer.wait()


async def test_i3_failing_receives_lose_nothing(sfud):
    """Fails every third receive call: its datagrams wait for the next."""
    async with unharmed(sfud):
        for error in ("EINTR", "ENOMEM", "EAGAIN"):
            tracer = await strace(sfud, f"recvmmsg:error={error}:when=3+3")
            await asyncio.sleep(2)
            tracer.send_signal(signal.SIGINT)
            await tracer.wait()


async def test_i4_without_descriptors_nobody_new_is_let_in_and_nobody_is_lost(sfud, ipc):
    pid = sfud.process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    async with unharmed(sfud):

        async def gone():
            return 'msg="ipc disconnected"' in sfud.log_text()

        await process.until(gone, "whoever looked whether it plays has left its descriptor")
        taken = {int(one) for one in os.listdir(f"/proc/{pid}/fd")}
        free = next(number for number in range(len(taken) + 1) if number not in taken)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, limits[1]))
        try:
            for _ in range(20):
                reader, writer = await raw(sfud.ipc)
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 5) == b"", "it is let in"
                writer.close()
            assert (await ipc.call("server.info"))["contract"] == 2
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        async with IPC(sfud.ipc) as again:
            assert (await again.call("server.info"))["contract"] == 2
    assert sfud.log_text().count("descriptor") <= 10


async def test_i6_before_memory_ends_nobody_new_is_let_in(start_sfud, tmp_path):
    """Fills the memory with kept messages; media continues, and once it is free all is as
    before."""
    config = tmp_path / "sfud.json5"
    config.write_text("{ limits: { memoryMegabytes: 130, messagesPerTopic: 65536 } }")
    daemon = await start_sfud("--config", str(config))
    async with unharmed(daemon), daemon.client() as ipc:
        await ipc.call("room.create", room="door")
        full = None
        for number in range(100):
            try:
                await ipc.call("room.create", room=f"r{number}")
            except Refused as refused:
                full = refused
                break
            say = {"room": f"r{number}", "topic": "t", "persist": True, "message": "m" * 4000}
            await asyncio.gather(*(ipc.call("message.publish", **say) for _ in range(1000)))
        print(f"{number} rooms in {daemon.resident_bytes() >> 20} MiB: {full}")
        assert full and (full.code, full.reason) == (4029, "limit-reached")
        # The last room that was let in may fill up: its messages are here, and in the memory for
        # the next life, where as much may be outdated as is not.
        assert daemon.resident_bytes() < 160 << 20
        with pytest.raises(Refused, match="memory"):
            await ipc.call("participant.join", room="door", participant="late")
        for one in range(number):
            await ipc.call("room.close", room=f"r{one}")

        async def let_in():
            try:
                return await ipc.call("participant.join", room="door", participant="late")
            except Refused:
                return None

        await process.until(let_in, "memory to be free again", seconds=8, every=2.5)
        print(f"{daemon.resident_bytes() >> 20} MiB when all had gone")
    await daemon.stop()


async def ip(*arguments: str) -> None:
    command = await asyncio.create_subprocess_exec("ip", *arguments)
    assert await command.wait() == 0, arguments


@pytest.mark.alone
async def test_h12_an_address_goes_and_comes_back(start_sfud, peers):
    """Datagrams sent meanwhile are lost; nothing ends, and nothing spins.

    The viewer is Chromium: aiortc receives nothing afterwards, though sfud sends it.
    """
    address = "192.0.2.77"
    await ip("address", "add", f"{address}/32", "dev", "lo")
    try:
        daemon = await start_sfud(host=address, workers=1)
        async with watching(daemon, await peers("aiortc"), await peers("Chromium")) as scene:
            await ip("address", "delete", f"{address}/32", "dev", "lo")
            gone = time.time()
            used = daemon.processor_seconds()
            await asyncio.sleep(3)
            assert daemon.processor_seconds() - used < 0.5
            assert not await scene.frames(gone + 1)
            assert len((await scene.room.call("room.get"))["participants"]) == 2

            await ip("address", "add", f"{address}/32", "dev", "lo")
            back = time.time()
            await scene.moving(back)
            await scene.heard(back)
            # Loss in the meantime says nothing about the path: the picture is not switched off
            # again.
            await asyncio.sleep(back + 5 - time.time())
            frames = await scene.frames(back)
            gap = longest_gap(frames)
            print(f"back after {frames[0].time - back:.2f} s, then no gap beyond {gap:.2f} s")
            assert frames[0].time - back < 2 and gap < 2 * expect.FREEZE
    finally:
        with contextlib.suppress(AssertionError):
            await ip("address", "delete", f"{address}/32", "dev", "lo")


@contextlib.asynccontextmanager
async def standing_still(daemon: Sfud, seconds: float):
    daemon.process.send_signal(signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        daemon.process.send_signal(signal.SIGCONT)
    yield


async def test_i9_a_tenth_of_a_second_without_the_process_loses_nothing(sfud):
    """Datagrams that arrive meanwhile wait in the socket's buffer."""
    async with unharmed(sfud):
        for _ in range(3):
            async with standing_still(sfud, 0.1):
                await asyncio.sleep(1)


@pytest.mark.alone
@pytest.mark.seconds(60)
@pytest.mark.parametrize("stall", [1, 5])
async def test_i9_after_a_stall_all_is_as_live_as_before(sfud, peers, stall):
    """Everybody is still connected, and media that arrived meanwhile is not delivered late."""
    async with watching(sfud, await peers("Chromium"), await peers("Chromium")) as scene:
        peer, sound = scene.bob.peer, scene.seen.audio

        async def lags(since: float) -> list[float]:
            """Returns the delay of pictures, by a clock of the publisher's."""
            return sorted(one.time - one.counter / 20 for one in await scene.frames(since))

        await asyncio.sleep(2)
        usual = await lags(time.time() - 2)
        async with standing_still(sfud, stall):
            back = time.time()
            await asyncio.sleep(0.5)
            before = await peer.inbound(sound)
            await asyncio.sleep(2)
            after = await peer.inbound(sound)
        frames = await scene.frames(back)
        later = (await lags(back + 0.5))[-1] - usual[len(usual) // 2]
        waited, count = (
            after[name] - before[name] for name in ("jitterBufferDelay", "jitterBufferEmittedCount")
        )
        print(
            f"seen after {frames[0].time - back:.2f} s, then at most {later:.2f} s later than"
            f" before; sound waits {waited / count * 1e3:.0f} ms to be played"
        )
        assert frames[0].time - back < 0.5 and later < 0.3 and waited / count < 0.3
        assert longest_gap([one for one in frames if one.time > back]) < 2 * expect.FREEZE
        await scene.heard(back)
        told = [one for one in scene.ipc.events if "connection" in one.data]
        assert {one.data["connection"] for one in told} <= {"connecting", "connected"}, told
        drops = (await scene.ipc.call("server.stats"))["drops"]
        assert drops["stale"] > stall * 50, drops


@pytest.mark.seconds(90)
async def test_i10_the_wall_clock_jumps_and_nobody_notices(start_sfud, peers, tmp_path):
    """Sets the clock a day ahead, and two back for longer than sfud's interval between looks at
    it."""
    clock = await WallClock(tmp_path).make()
    daemon = await start_sfud(under=clock.under)
    async with watching(daemon, await peers("Chromium"), await peers("Chromium")) as scene:
        async with unharmed(daemon):
            for day, seconds in ((1, 3), (-1, 11)):
                clock.seconds = day * 86_400
                begin = time.time()
                await asyncio.sleep(seconds)
                created = await scene.ipc.call("room.create", room=f"on{day}")
                assert abs(created["created"] - (time.time() + clock.seconds)) < 2
                frames = await scene.frames(begin)
                stood = longest_gap(frames)
                assert frames[-1].time - begin > seconds - 1 and stood < 2 * expect.FREEZE, stood
                await scene.heard(begin)
        told = [one.data for one in scene.ipc.events]
        changes = [one["connection"] for one in told if "connection" in one]
        assert set(changes) <= {"connecting", "connected", "disconnected"}, changes
    assert await daemon.stop() < 2


async def test_i12_signals_that_mean_nothing_do_nothing(sfud):
    async with unharmed(sfud):
        for _ in range(20_000):
            for number in (signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGWINCH):
                sfud.process.send_signal(number)


@pytest.mark.sfud("--tcp", "127.0.0.1:0")
@pytest.mark.seconds(60)
async def test_a_flood_of_tcp_connections_leaves_calls_alone(sfud, ipc):
    """Ten thousand connections from 200 addresses, silent or with garbage, stay as long as they
    may."""
    address = (await ipc.call("server.info"))["tcp"][0].rsplit(":", 1)
    target = (address[0], int(address[1]))
    # A quarter of each worker's 1,024 connections is for unvalidated peers.
    places = 2 * 256
    kept: list[socket.socket] = []
    most = 0
    async with unharmed(sfud):
        before = sfud.descriptors()
        begin = time.monotonic()
        for number in range(10_000):
            one = socket.socket()
            one.bind((f"127.9.0.{1 + number % 200}", 0))
            one.setblocking(False)
            one.connect_ex(target)
            if number % 2:
                with contextlib.suppress(OSError):
                    one.send(bytes([0, 20]) + os.urandom(20))
            kept.append(one)
            if len(kept) > 800:
                kept.pop(0).close()
            if number % 20 == 0:
                most = max(most, sfud.descriptors() - before)
                await asyncio.sleep(0)
        seconds = time.monotonic() - begin
        for one in kept:
            one.close()

        async def forgotten():
            return sfud.descriptors() <= before

        await process.until(forgotten, "no descriptor of theirs")
    print(f"10,000 connections within {seconds:.1f} s, at most {most} at a time")
    assert 100 < most <= places


async def test_i13_without_random_numbers_there_are_no_weak_keys_but_none():
    if not shutil.which("strace"):
        pytest.skip("strace is not there")
    trace = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=getrandom:error=EIO")
    child = await asyncio.create_subprocess_exec(
        *trace, str(binary()), "--ipc", "/nowhere", "--udp", "127.0.0.1:0", "--workers", "1",
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, errors = await asyncio.wait_for(child.communicate(), 10)
    if b"ptrace" in errors or b"PTRACE" in errors:
        pytest.skip("processes may not be looked into")
    assert child.returncode == 71 and b"ready" not in output, errors
    assert len(errors.decode().splitlines()) == 1, errors
    print(errors.decode().strip())


async def test_k5_a_new_daemon_beside_one_that_drains(start_sfud):
    """Both serve: running calls on the old one, and new ones on the new one."""
    old = await start_sfud()
    async with unharmed(old):
        new = await start_sfud()
        async with old.client() as ipc:
            await ipc.call("server.drain")
            with pytest.raises(Refused) as refusal:
                await ipc.call("room.create", room="late")
            assert refusal.value.code == 4503
        async with unharmed(new, seconds=3):
            pass
        await new.stop()


async def test_k4_a_second_signal_ends_it_at_once(start_sfud):
    """Both arrive before it could handle the first."""
    daemon = await start_sfud()
    async with daemon.client() as ipc:
        await ipc.call("room.create", room="r")
        daemon.process.send_signal(signal.SIGSTOP)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        daemon.process.send_signal(signal.SIGCONT)
        status = await asyncio.wait_for(daemon.process.wait(), 2)
    print(f"it ended with {status} after {(time.monotonic() - begin) * 1e3:.0f} ms")
    assert status == 130 and not daemon.ipc.exists()


async def test_k1_killed_under_load_it_is_back_within_a_second(start_sfud):
    """It uses the old ports and socket again, while the old clients continue to send."""
    daemon = await start_sfud()
    load = await start("sfu-bench", "load", "--ipc", daemon.ipc, "--viewers", 20, "--seconds", 30)
    try:
        async with daemon.client() as ipc:

            async def plays():
                return (await ipc.call("server.stats"))["rtpOut"] > 2000

            await process.until(plays, "a room that plays")
            boot = (await ipc.call("server.info"))["boot"]
        os.kill(daemon.process.pid, signal.SIGKILL)
        begin = time.monotonic()
        await daemon.process.wait()
        child = await process.start(
            binary(), "--ipc", daemon.ipc, "--udp", daemon.udp, "--workers", "2",
            output=daemon.log, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            line = await asyncio.wait_for(child.stdout.readline(), 5)
            seconds = time.monotonic() - begin
            assert line.startswith(b"ready "), daemon.log_text()
            print(f"ready {seconds * 1e3:.0f} ms after the kill")
            assert seconds < 1
            async with daemon.client() as ipc:
                assert (await ipc.call("server.info"))["boot"] != boot
                assert (await ipc.call("room.list"))["rooms"] == []
            after = Sfud(daemon.directory)
            after.process = child
            async with unharmed(after, seconds=3):
                pass
            child.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(child.wait(), 2) == 0
        finally:
            await process.kill(child)
    finally:
        if load.returncode is None:
            load.send_signal(signal.SIGINT)
        await finish(load)
