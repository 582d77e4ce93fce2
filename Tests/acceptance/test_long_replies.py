"""Replies that are longer than the longest call: clients can read whatever sfud writes."""

import asyncio
import contextlib
import json
import sys

import pytest

from harness.demo import SERVER
from test_sfuctl import sfuctl

sys.path.insert(0, str(SERVER.parent))

from sfud_ipc import IPC, LONGEST_CALL

ROOMS = 1_500
PEOPLE = 18
CUSTOM = {"note": "x" * 60_000}


@contextlib.asynccontextmanager
async def connected(path: str):
    """Returns the example's client, and the number of its connections."""
    ups = []

    async def up() -> None:
        ups.append(True)

    client = IPC(path, lambda event: None, on_up=up)
    task = asyncio.create_task(client.run())
    await asyncio.wait_for(client.connected.wait(), 10)
    yield client, ups
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


@pytest.mark.seconds(120)
async def test_many_rooms_are_listed(sfud, ipc):
    for number in range(ROOMS):
        await ipc.call("room.create", room=f"room-{number}")
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "rooms")
    assert (status, errors) == (0, "")
    assert all(f"room-{number}" in output for number in range(ROOMS))
    async with connected(sfud.ipc) as (client, ups):
        rooms = (await client.call("room.list"))["rooms"]
        assert len(rooms) == ROOMS
        assert len(json.dumps(rooms)) > LONGEST_CALL
        assert len(ups) == 1


async def test_a_room_of_people_with_much_to_say_is_shown(sfud, ipc):
    async with connected(sfud.ipc) as (client, ups):
        await client.call("room.create", room="r")
        for number in range(PEOPLE):
            shown = await client.call(
                "participant.join", room="r", participant=f"p-{number}", custom=CUSTOM
            )
        assert len(shown["room"]["participants"]) == PEOPLE
        assert len(json.dumps(shown)) > LONGEST_CALL
        assert len(ups) == 1
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "room", "r")
    assert (status, errors) == (0, "")
    assert all(f"p-{number}" in output for number in range(PEOPLE))
