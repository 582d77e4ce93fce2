"""What does not fit in a line comes in pages: clients can read whatever sfud writes."""

import asyncio
import contextlib
import json
import os
import socket
import sys

import pytest

from harness.demo import SERVER
from test_sfuctl import sfuctl

sys.path.insert(0, str(SERVER.parent))

from sfud_ipc import IPC

#: Calls that are written at once: no more than sfud queues.
BATCH = 250
PEOPLE = 30
MESSAGES = 40
CUSTOM = {"note": "x" * 60_000}
PAGE = 512 << 10  # bytes before which a page ends


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


def enter_all(path: str, names: dict[str, list[str]]) -> None:
    """Makes rooms and joins the people of each, a batch of calls at a time."""

    def call(method: str, room: str, more: str = "") -> str:
        params = f'{{"room":"{room}"{more}}}'
        return f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}\n'

    def join(name: str) -> str:
        return f',"participant":"{name}","snapshot":false'

    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        for room, people in names.items():
            calls = [call("room.create", room)]
            calls += [call("participant.join", room, join(name)) for name in people]
            for start in range(0, len(calls), BATCH):
                batch = calls[start : start + BATCH]
                connection.sendall("".join(batch).encode())
                replies = b""
                while replies.count(b"\n") < len(batch):
                    replies += connection.recv(1 << 20)
                assert b'"error"' not in replies, replies[-2000:]


@pytest.mark.seconds(3_000)
async def test_l14_rooms_and_people_are_listed(sfud, ipc):
    """In full with SFUD_ROOMS=10000 SFUD_NAMES=1000, which is what the limits allow."""
    rooms = int(os.environ.get("SFUD_ROOMS", "1500"))
    people = int(os.environ.get("SFUD_NAMES", "1"))
    named = {
        f"room-{number}": [f"person-{number}-{one}" for one in range(people)]
        for number in range(rooms - 1)
    }
    # One room is as full as rooms are by default.
    named["full"] = [f"full-{one}" for one in range(1_000)]
    await asyncio.to_thread(enter_all, str(sfud.ipc), named)
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "rooms")
    assert (status, errors) == (0, "")
    assert all(room in output for room in named)
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "room", "full")
    assert (status, errors) == (0, "")
    assert all(name in output for name in named["full"])
    async with connected(sfud.ipc) as (client, ups):
        found = [room async for room in client.pages("room.list", "rooms")]
        assert len(found) == rooms and {room["room"] for room in found} == set(named)
        assert all(
            room["counts"]["participants"] == len(named[room["room"]]) for room in found
        )
        few = [room async for room in client.pages("room.list", "rooms", state="ended")]
        assert few == []
        assert len((await client.call("room.list", limit=7))["rooms"]) == 7
        for room in ["full", "room-0", f"room-{rooms - 2}"]:
            pages = client.pages("participant.list", "participants", room=room)
            assert [one["participant"] async for one in pages] == named[room]
        assert len(ups) == 1


@pytest.mark.seconds(60)
async def test_rooms_with_long_custom_data_are_listed(sfud, ipc):
    names = {f"long-{number}" for number in range(PEOPLE)}
    for name in names:
        await ipc.call("room.create", room=name, custom=CUSTOM)
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "rooms")
    assert (status, errors) == (0, "")
    assert all(name in output for name in names)
    async with connected(sfud.ipc) as (client, ups):
        rooms = [room async for room in client.pages("room.list", "rooms")]
        assert len(rooms) == PEOPLE and {room["room"] for room in rooms} == names
        assert len(ups) == 1


async def test_a_room_of_people_with_much_to_say_is_shown(sfud, ipc):
    names = {f"p-{number}" for number in range(PEOPLE)}
    async with connected(sfud.ipc) as (client, ups):
        await client.call("room.create", room="r")
        for name in names:
            joined = await client.call(
                "participant.join", room="r", participant=name, custom=CUSTOM
            )
        assert joined["participantInfo"]["custom"] == CUSTOM
        for shown in (joined["roomInfo"], await client.call("room.get", room="r")):
            assert shown["counts"]["participants"] == PEOPLE
            first, after = shown["participants"], shown["next"]["participants"]
            assert len(json.dumps(first)) < PAGE
            pages = client.pages("participant.list", "participants", room="r", after=after)
            people = first + [it async for it in pages]
            assert len(people) == PEOPLE and {it["participant"] for it in people} == names
        bare = await client.call(
            "participant.join", room="r", participant="last", custom=CUSTOM, snapshot=False
        )
        assert "participants" not in bare["roomInfo"]
        assert len(ups) == 1
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "room", "r")
    assert (status, errors) == (0, "")
    assert all(name in output for name in names)


async def test_kept_messages_come_in_pages(sfud, ipc):
    async with connected(sfud.ipc) as (client, ups):
        await client.call("room.create", room="r")
        await client.call("participant.join", room="r", participant="ann")
        for number in range(MESSAGES):
            message = f"{number} " + "m" * 60_000
            await client.call(
                "message.publish", room="r", topic="t", message=message, persist=True
            )
        topic = {"room": "r", "participant": "ann", "topic": "t"}
        pages = client.pages("message.subscribe", "messages", **topic)
        kept = [int(it["message"].partition(" ")[0]) async for it in pages]
        assert kept == list(range(MESSAGES))
        assert len(ups) == 1
