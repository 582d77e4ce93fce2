"""Faults of the system and of those who drive the daemon, beside a room that must not notice.

The room is `sfu-bench load --check`: it fails where a packet is lost, doubled, late in number, or is
not the very one that was sent. Names begin with the row of docs/reliability.md.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import socket
import time
from pathlib import Path

import pytest

from harness import expect, process
from harness.clock import WallClock
from harness.ipc import IPC, Refused, timed
from harness.scene import longest_gap, watching
from harness.sfud import Sfud, binary
from test_load import figures, finish, start


@contextlib.asynccontextmanager
async def unharmed(daemon: Sfud, seconds: int = 6):
    """Runs while a room of five plays, and judges the room in the end."""
    load = await start(
        *("sfu-bench", "load", "--ipc", daemon.ipc),
        *("--viewers", 4, "--seconds", seconds, "--check"),
    )
    try:
        async with IPC(daemon.ipc) as ipc:

            async def plays():
                return (await ipc.call("server.stats"))["rtpOut"] > 500

            await process.until(plays, "a room that plays", seconds=20)
        yield load
        assert load.returncode is None, "the room ended before the fault did"
    finally:
        status, output, errors = await finish(load)
    assert status == 0, f"{errors}\n{output}"
    report = figures(output)
    assert int(report["copies received"]) == int(report["copies expected"]) > 1000
    latency = report["latency p50 p99 p99.9 max"]
    print(f"beside it {report['copies received']} copies, none lost, within {latency}")


async def raw(daemon: Sfud):
    return await asyncio.open_unix_connection(str(daemon.ipc), limit=1 << 21)


def request(number: int, method: str, **params) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def descriptors(daemon: Sfud) -> int:
    return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))


@pytest.mark.seconds(60)
async def test_j3_a_thousand_clients_that_crash_harm_nobody_and_miss_nothing(sfud, ipc):
    """Each follows a room from where the last one was, has something said, and dies in mid-line."""
    await ipc.call("room.create", room="followed")
    since, heard = (await ipc.call("room.get", room="followed"))["seq"], []
    async with unharmed(sfud):
        before = descriptors(sfud)
        begin = time.monotonic()
        for turn in range(1000):
            reader, writer = await raw(sfud)
            last = heard[-1] if heard else since
            writer.write(
                request(1, "events.subscribe", rooms=["followed"], since={"followed": last})
                + request(2, "message.publish", room="followed", topic="t", message=str(turn))
                + request(3, "room.get", room="followed")[:20]
            )
            # The event of what it says itself it does not wait for every time.
            while len(heard) < turn // 2 * 2:
                message = json.loads(await reader.readline())
                assert "error" not in message, message
                if message.get("method") == "event":
                    assert message["params"]["event"] == "message.received", message
                    heard.append(message["params"]["seq"])
            writer.transport.abort()
        seconds = time.monotonic() - begin

        async def forgotten():
            return descriptors(sfud) <= before

        await process.until(forgotten, "no descriptor of theirs")
    print(f"1,000 clients died within {seconds:.1f} s, {len(heard)} events heard")
    assert heard == list(range(since + 1, since + 1 + len(heard))) and len(heard) >= 998


@pytest.mark.seconds(90)
async def test_j8_a_thousand_members_and_ten_thousand_rooms_delay_nobody(sfud, ipc):
    """One hears of all of it, and asks for the list of all."""
    async with unharmed(sfud, seconds=12):
        await ipc.call("events.subscribe")
        await ipc.call("room.create", room="big")
        members = [
            {"room": "big", "participant": f"p{number}", "role": "participant"}
            for number in range(1000)
        ]
        await ipc.call_all("participant.join", members)
        await ipc.call_all("room.create", [{"room": f"small{n}"} for n in range(9990)])
        result, seconds = await timed(sfud.ipc, "room.list")
    assert len(result["rooms"]) >= 9991
    joined = [one for one in ipc.events if one.event == "participant.joined"]
    assert len([one for one in joined if one.room == "big"]) == 1000
    print(f"{len(result['rooms'])} rooms, listed within {seconds * 1000:.0f} ms")


@pytest.mark.seconds(60)
async def test_j4_of_two_controllers_one_wins_and_the_other_hears_why(sfud, ipc):
    """They ask the same at once, without waiting: each call has one reply, and both see one room."""
    rounds = 200
    async with unharmed(sfud), IPC(sfud.ipc) as other:
        await ipc.call("events.subscribe")
        await ipc.call("room.create", room="r")

        async def both(method: str, **params):
            calls = (one.call(method, room="r", **params) for one in (ipc, other))
            return await asyncio.gather(*calls, return_exceptions=True)

        for turn in range(rounds):
            name = f"p{turn}"
            joined = await both("participant.join", participant=name)
            # Who joins twice takes over: both are right, and there is one.
            assert not [one for one in joined if isinstance(one, Exception)], joined
            left = await both("participant.leave", participant=name)
            refused = [one for one in left if isinstance(one, Refused)]
            assert len(refused) == 1 and refused[0].code == 4005, left
        states = await both("room.get")
        assert states[0] == states[1] and states[0]["participants"] == []
    seen = [one.seq for one in ipc.events if one.room == "r"]
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    left = [one.data["participant"] for one in ipc.events if one.event == "participant.left"]
    assert [one for one in left if one.startswith("p")] == [f"p{turn}" for turn in range(rounds)]


async def test_j6_a_flood_of_calls_keeps_nobody_else_waiting(sfud, ipc):
    """One writes calls as fast as the socket takes them; another asks in between."""
    await ipc.call("room.create", room="r")
    line = request(1, "room.get", room="r") * 100
    waits = []
    async with unharmed(sfud):
        reader, writer = await raw(sfud)
        answered = 0

        async def flood():
            while True:
                writer.write(line)
                await writer.drain()

        async def drain():
            nonlocal answered
            while chunk := await reader.read(1 << 16):
                answered += chunk.count(b"\n")

        tasks = [asyncio.create_task(flood()), asyncio.create_task(drain())]
        try:
            for _ in range(100):
                begin = time.monotonic()
                await ipc.call("room.get", room="r")
                waits.append(time.monotonic() - begin)
                await asyncio.sleep(0.02)
        finally:
            for task in tasks:
                task.cancel()
            writer.transport.abort()
    waits.sort()
    print(f"{answered} calls of one; another waited {waits[50] * 1e3:.1f}, at most {waits[-1] * 1e3:.1f} ms")
    assert answered > 1000
    assert waits[50] < 0.1


async def strace(daemon: Sfud, *inject: str):
    """Has system calls of the daemon fail; skips where processes may not be looked into."""
    if not shutil.which("strace"):
        pytest.skip("strace is not there")
    tracer = await asyncio.create_subprocess_exec(
        "strace", "-f", "-qq", "-o", "/dev/null", "-p", str(daemon.process.pid),
        *(part for one in inject for part in ("-e", f"inject={one}")),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    status = Path(f"/proc/{daemon.process.pid}/status")
    for _ in range(50):
        if tracer.returncode is not None:
            pytest.skip(f"strace: {(await tracer.stderr.read()).decode()}")
        if not re.search(r"TracerPid:\s+0\n", status.read_text()):
            return tracer
        await asyncio.sleep(0.1)
    raise AssertionError("strace does not begin")


async def test_i3_failing_receives_lose_nothing(sfud):
    """Every third call to receive fails: what came waits for the next."""
    async with unharmed(sfud, seconds=9):
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
                reader, writer = await raw(sfud)
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 5) == b"", "it is let in"
                writer.close()
            assert (await ipc.call("server.info"))["contract"] == 1
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        async with IPC(sfud.ipc) as again:
            assert (await again.call("server.info"))["contract"] == 1
    assert sfud.log_text().count("descriptor") <= 10


async def test_i6_before_memory_ends_nobody_new_is_let_in(start_sfud, tmp_path):
    """What is kept of messages takes it; what plays goes on, and when it is free all is as before."""
    config = tmp_path / "sfud.json5"
    config.write_text("{ limits: { memoryMegabytes: 130, messagesPerTopic: 65536 } }")
    daemon = await start_sfud("--config", str(config))
    async with unharmed(daemon, seconds=12), daemon.client() as ipc:
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
        assert daemon.resident_bytes() < 145 << 20
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
    """What cannot be sent meanwhile is lost; nothing ends, and nothing spins.

    The viewer is Chromium: aiortc takes nothing more afterwards, though sfud sends it.
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
            # What was lost meanwhile says nothing of the path: the picture does not go again.
            await asyncio.sleep(back + 5 - time.time())
            frames = await scene.frames(back)
            gap = longest_gap(frames)
            print(f"back after {frames[0].time - back:.2f} s, then no gap beyond {gap:.2f} s")
            assert frames[0].time - back < 2 and gap < 2 * expect.FREEZE
    finally:
        with contextlib.suppress(AssertionError):
            await ip("address", "delete", f"{address}/32", "dev", "lo")


@pytest.mark.alone
@pytest.mark.seconds(90)
async def test_i10_the_wall_clock_jumps_and_nobody_notices(start_sfud, peers, tmp_path):
    """A day on, and two back for longer than sfud goes without looking."""
    clock = await WallClock(tmp_path).make()
    daemon = await start_sfud(under=clock.under)
    async with watching(daemon, await peers("Chromium"), await peers("Chromium")) as scene:
        async with unharmed(daemon, seconds=20):
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
async def test_e16_a_flood_of_tcp_connections_leaves_calls_alone(sfud, ipc):
    """Ten thousand from 200 addresses, which say nothing or nonsense and stay as long as they may."""
    address = (await ipc.call("server.info"))["tcp"][0].rsplit(":", 1)
    target = (address[0], int(address[1]))
    # A quarter of each worker's 1,024 connections is for those whom nobody has validated.
    places = 2 * 256
    kept: list[socket.socket] = []
    most = 0
    async with unharmed(sfud):
        before = descriptors(sfud)
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
                most = max(most, descriptors(sfud) - before)
                await asyncio.sleep(0)
        seconds = time.monotonic() - begin
        for one in kept:
            one.close()

        async def forgotten():
            return descriptors(sfud) <= before

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
    """Both serve: what plays on the old one, and what begins on the new one."""
    old = await start_sfud()
    async with unharmed(old, seconds=8):
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
    """Both come before it could heed the first."""
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
    """On the old ports and socket, while the old clients go on sending."""
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
