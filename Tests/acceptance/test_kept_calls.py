"""Calls to the IPC that were answered, and a daemon that is killed while it answers more."""

import asyncio
import json
import os
import random
import re
import signal
import time
import urllib.request

import pytest

from harness.sfud import free_ports

#: Deaths in all; `SFUD_DEATHS=1000` gives a figure that means something.
DEATHS = int(os.environ.get("SFUD_DEATHS", 4))
#: Daemons at a time, each with that many calls a second about as many rooms.
DAEMONS = 2
CALLS_PER_SECOND = 1_000
ROOMS = 16
#: Participants whose data is saved again and again.
PEOPLE = 300


class Caller:
    """Counts upwards in the rooms of one daemon, and remembers what was answered."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.sent = [0] * ROOMS
        self.answered = [0] * ROOMS
        self.calls = 0
        self.open = []

    async def call(self, method: str, **params):
        reader, writer = await self.connection()
        request = {"jsonrpc": "2.0", "id": 0, "method": method, "params": params}
        writer.write(json.dumps(request).encode() + b"\n")
        line = await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        return json.loads(line)["result"]

    async def connection(self):
        deadline = time.monotonic() + 5
        while True:
            try:
                return await asyncio.open_unix_connection(str(self.daemon.ipc), limit=1 << 22)
            except OSError:
                assert time.monotonic() < deadline, self.daemon.log_text()[-2000:]
                await asyncio.sleep(0.01)

    async def make_rooms(self) -> None:
        for room in range(ROOMS):
            # Nobody joins, and the rooms are to stay.
            settings = {"emptySeconds": None}
            await self.call("room.create", room=f"r{room}", settings=settings)

    async def load(self, seconds: float) -> None:
        """Makes calls until the process is killed after so many seconds."""
        reader, writer = await self.connection()
        end = time.monotonic() + seconds
        answers = asyncio.create_task(self.take(reader))
        begin, made = time.monotonic(), 0
        while time.monotonic() < end:
            due = int((time.monotonic() - begin) * CALLS_PER_SECOND)
            lines = []
            for _ in range(min(due - made, 200)):
                room = self.calls % ROOMS
                self.sent[room] += 1
                lines.append(
                    f'{{"jsonrpc":"2.0","id":{self.sent[room] * ROOMS + room},'
                    f'"method":"room.update","params":{{"room":"r{room}",'
                    f'"custom":{{"count":{self.sent[room]}}}}}}}\n'
                )
                self.calls += 1
                made += 1
            writer.write("".join(lines).encode())
            await asyncio.sleep(0.001)
        os.kill(self.daemon.child(), signal.SIGKILL)
        # Answers that the process had written still arrive.
        await answers
        writer.close()

    async def take(self, reader: asyncio.StreamReader) -> None:
        try:
            while line := await reader.readline():
                reply = json.loads(line)
                assert "result" in reply, f"{reply}; its log:\n{self.daemon.log_tail(40)}"
                room, count = reply["id"] % ROOMS, reply["id"] // ROOMS
                self.answered[room] = max(self.answered[room], count)
        except ConnectionError:
            pass

    async def check(self) -> int:
        """Returns how many answered calls are lost."""
        lost = 0
        for room in range(ROOMS):
            found = (await self.call("room.get", room=f"r{room}"))["custom"].get("count", 0)
            assert found <= self.sent[room]
            lost += max(0, self.answered[room] - int(found))
            # Calls that were not answered have taken effect, or not.
            self.sent[room] = self.answered[room] = int(found)
        return lost


@pytest.mark.seconds(60 + DEATHS * 3)
async def test_no_answered_call_is_lost(start_sfud, capsys):
    """The daemon dies at any moment of its work."""
    callers = [Caller(await start_sfud(keeper=True, workers=1)) for _ in range(DAEMONS)]

    async def live(caller: Caller, chance: random.Random) -> int:
        await caller.make_rooms()
        boot = (await caller.call("server.info"))["boot"]
        lost = 0
        for _ in range(DEATHS // DAEMONS):
            # Lives that end within a second look as if the calls ended them.
            await caller.load(1.1 + chance.random() / 4)
            lost += await caller.check()
        assert (await caller.call("server.info"))["boot"] == boot, "a life began anew"
        return lost

    lost = await asyncio.gather(*(live(one, random.Random(n)) for n, one in enumerate(callers)))
    calls = sum(one.calls for one in callers)
    with capsys.disabled():
        print(f"\n{DEATHS // DAEMONS * DAEMONS} deaths, {calls} calls, lost answers: {sum(lost)}")
    assert sum(lost) == 0
    assert calls > DEATHS * CALLS_PER_SECOND / 2, "too few calls to tell"


def allocated(port: int) -> int:
    """Returns the bytes that the daemon has allocated."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as reply:
        return int(re.search(r"^sfud_heap_bytes (\d+)", reply.read().decode(), re.M)[1])


async def test_saving_takes_no_more_memory_with_time(start_sfud):
    """The records are written over and over, so the live ones are copied together many times."""
    port = free_ports()
    caller = Caller(await start_sfud("--http", f"127.0.0.1:{port}", workers=1))
    await caller.call("room.create", room="r")
    reader, writer = await caller.connection()

    async def change(count: int, method: str, **params) -> None:
        for number in range(count):
            data = {"participant": f"p{number % PEOPLE}", "custom": {"data": [number] * 1_000}}
            request = {
                "jsonrpc": "2.0",
                "id": number,
                "method": method,
                "params": {"room": "r", **data, **params},
            }
            writer.write(json.dumps(request).encode() + b"\n")
            assert "result" in json.loads(await asyncio.wait_for(reader.readline(), 5))

    await change(PEOPLE, "participant.join", snapshot=False)
    # The room keeps its last 1,000 events from here on.
    await change(4 * PEOPLE, "participant.update")
    before = await asyncio.to_thread(allocated, port)
    await change(12 * PEOPLE, "participant.update")
    assert await asyncio.to_thread(allocated, port) - before < 1_000_000
    writer.close()
