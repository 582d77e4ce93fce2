"""Misbehaving IPC clients, beside a room that must stay unharmed.

Names begin with the row of docs/reliability.md; the room is `harness.bench.unharmed`.
"""

import asyncio
import json
import time

import pytest

from harness import process
from harness.bench import unharmed
from harness.ipc import IPC, Refused, raw, request, timed


@pytest.mark.seconds(60)
async def test_j3_a_thousand_clients_that_crash_harm_nobody_and_miss_nothing(sfud, ipc):
    """Each client resumes a room's events after the last one, makes a call, and dies in
    mid-line."""
    await ipc.call("room.create", room="followed")
    since, heard = (await ipc.call("room.get", room="followed"))["seq"], []
    async with unharmed(sfud):
        before = sfud.descriptors()
        begin = time.monotonic()
        for turn in range(1000):
            reader, writer = await raw(sfud.ipc)
            last = heard[-1] if heard else since
            writer.write(
                request(1, "events.subscribe", rooms=["followed"], since={"followed": last})
                + request(2, "message.publish", room="followed", topic="t", message=str(turn))
                + request(3, "room.get", room="followed")[:20]
            )
            # It does not always wait for the event of its own call.
            while len(heard) < turn // 2 * 2:
                message = json.loads(await reader.readline())
                assert "error" not in message, message
                if message.get("method") == "event":
                    assert message["params"]["event"] == "message.received", message
                    heard.append(message["params"]["seq"])
            writer.transport.abort()
        seconds = time.monotonic() - begin

        async def forgotten():
            return sfud.descriptors() <= before

        await process.until(forgotten, "no descriptor of theirs")
    print(f"1,000 clients died within {seconds:.1f} s, {len(heard)} events heard")
    assert heard == list(range(since + 1, since + 1 + len(heard))) and len(heard) >= 998


@pytest.mark.seconds(90)
async def test_j8_a_thousand_members_and_ten_thousand_rooms_delay_nobody(sfud, ipc):
    """One client receives all events, and requests the list of all rooms."""
    async with unharmed(sfud):
        await ipc.call("events.subscribe")
        await ipc.call("room.create", room="big")
        members = [
            {"room": "big", "participant": f"p{number}", "role": "participant"}
            for number in range(1000)
        ]
        await ipc.call_all("participant.join", members)
        await ipc.call_all("room.create", [{"room": f"small{n}"} for n in range(9990)])
        rooms, seconds = await timed(sfud.ipc, "room.list", "rooms")
    assert len(rooms) >= 9991
    counts = next(one["counts"] for one in rooms if one["room"] == "big")
    assert counts == {"participants": 1000, "awaited": 0, "streams": 0}
    joined = [one for one in ipc.events if one.event == "participant.joined"]
    assert len([one for one in joined if one.room == "big"]) == 1000
    print(f"{len(rooms)} rooms, listed within {seconds * 1000:.0f} ms")


@pytest.mark.seconds(60)
async def test_j4_of_two_controllers_one_wins_and_the_other_hears_why(sfud, ipc):
    """Both make the same calls at once, without waiting: each call has one reply, and both see one
    room."""
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
            # A second join takes over: both calls succeed, and one participant remains.
            assert not [one for one in joined if isinstance(one, Exception)], joined
            left = await both("participant.leave", participant=name)
            refused = [one for one in left if isinstance(one, Refused)]
            assert len(refused) == 1 and refused[0].code == 4005, left
        states = await both("room.get")
        assert states[0] == states[1] and states[0]["participants"] == []
    seen = [one.seq for one in ipc.events if one.room == "r"]
    assert seen == list(range(seen[0], seen[0] + len(seen)))
    left = [one.data for one in ipc.events if one.event == "participant.left"]
    for reason in ("left", "replaced"):
        gone = [one["participant"] for one in left if one["reason"] == reason]
        assert [one for one in gone if one.startswith("p")] == [f"p{turn}" for turn in range(rounds)]


async def test_j6_a_flood_of_calls_keeps_nobody_else_waiting(sfud, ipc):
    """One client writes calls as fast as the socket takes them; another makes calls in between."""
    await ipc.call("room.create", room="r")
    line = request(1, "room.get", room="r") * 100
    waits = []
    async with unharmed(sfud):
        reader, writer = await raw(sfud.ipc)
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


@pytest.mark.seconds(60)
async def test_j1_who_never_reads_is_closed_and_nobody_else_misses_anything(sfud, ipc):
    """Three clients request all events and read none; one reads, and receives all of 100,000."""
    await ipc.call("room.create", room="r")
    total, size = 100_000, 400
    say = {"room": "r", "topic": "t", "message": "m" * size}
    async with unharmed(sfud), IPC(sfud.ipc) as reading:
        await reading.call("events.subscribe")
        before = sfud.resident_bytes()
        deaf = [await raw(sfud.ipc) for _ in range(3)]
        for _, writer in deaf:
            writer.transport.pause_reading()
            writer.write(request(1, "events.subscribe"))
        most = 0
        for _ in range(0, total, 500):
            await ipc.call_all("message.publish", [say] * 500)
            most = max(most, sfud.resident_bytes())

        async def heard():
            return sum(one.event == "message.received" for one in reading.events) == total

        await process.until(heard, "all of them", seconds=20)
    print(f"{(most - before) >> 20} MiB more at the most")
    for reader, writer in deaf:
        writer.transport.resume_reading()
        # It reads the socket's buffer, and then the end.
        assert len(await asyncio.wait_for(reader.read(), 5)) < 1 << 20
        writer.close()
    seen = [one.seq for one in reading.events if one.room == "r"]
    assert seen == list(range(seen[0], seen[0] + len(seen)))
