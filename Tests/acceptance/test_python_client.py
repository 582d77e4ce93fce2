"""The Python client for the IPC, against a stand-in for sfud that answers as a test says."""

import asyncio
import contextlib
import json
import sys

import pytest

from harness.sfud import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "clients/python"))

from sfud_ipc import CONTRACT, IPC, LONGEST_LINE, Refused, passing


class StandIn:
    """A socket whose calls are answered from `answers`: method → params → lines to send."""

    def __init__(self, contract: int = CONTRACT):
        self.connections = 0
        self.events: list[dict] = []
        self.answers = {
            "server.info": lambda params: {"contract": contract},
            "events.subscribe": lambda params: {},
            "node.list": lambda params: {"nodes": []},
        }

    async def serve(self, reader, writer) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError):
            while line := await reader.readline():
                request = json.loads(line)
                result = self.answers[request["method"]](request["params"])
                writer.write(result if isinstance(result, bytes) else reply(request, result))
                await writer.drain()
        writer.close()


def reply(request: dict, result: dict) -> bytes:
    message = {"jsonrpc": "2.0", "id": request["id"], "result": result}
    return json.dumps(message).encode() + b"\n"


def event(length: int, seq: int) -> bytes:
    """Returns a line with an event, of that many bytes before its end."""
    params = {"event": "e", "room": "r", "seq": seq, "audience": "all", "data": {"note": ""}}
    message = {"jsonrpc": "2.0", "method": "event", "params": params}
    params["data"]["note"] = "x" * (length - len(json.dumps(message)))
    line = json.dumps(message).encode()
    assert len(line) == length
    return line + b"\n"


@contextlib.asynccontextmanager
async def connected(sfud: StandIn, tmp_path, fits: bool = True):
    path = str(tmp_path / "sfud.sock")
    server = await asyncio.start_unix_server(sfud.serve, path)
    client = IPC(path, sfud.events.append)
    task = asyncio.create_task(client.run())
    if fits:
        await asyncio.wait_for(client.connected.wait(), 5)
    try:
        yield client
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        server.close()


async def test_the_longest_line_is_read_and_a_longer_one_skipped(tmp_path):
    sfud = StandIn()
    lines = event(LONGEST_LINE, 1) + event(LONGEST_LINE + 1, 2) + event(3 * LONGEST_LINE, 3)
    sfud.answers["message.publish"] = lambda params: lines + event(200, 4)
    sfud.answers["room.get"] = lambda params: {"room": "r"}
    async with connected(sfud, tmp_path) as client:
        publishing = asyncio.create_task(client.call("message.publish"))  # is not answered
        while len(sfud.events) < 2:
            await asyncio.sleep(0.01)
        assert await client.call("room.get", room="r") == {"room": "r"}
        publishing.cancel()
    assert [it["seq"] for it in sfud.events] == [1, 4]
    assert sfud.connections == 1


async def test_a_call_that_is_too_long_is_not_sent(tmp_path):
    async with connected(StandIn(), tmp_path) as client:
        with pytest.raises(Refused) as refused:
            await client.call("message.publish", message="x" * LONGEST_LINE)
        assert refused.value.reason == "too-long"


async def test_pages_are_followed_to_the_last(tmp_path):
    sfud = StandIn()
    asked = []

    def rooms(params: dict) -> dict:
        asked.append(params)
        start = int(params.get("after", 0))
        more = {"next": str(start + 2)} if start < 4 else {}
        return {"rooms": [{"room": f"r{start}"}, {"room": f"r{start + 1}"}]} | more

    sfud.answers["room.list"] = rooms
    async with connected(sfud, tmp_path) as client:
        pages = client.pages("room.list", "rooms", state="ongoing", limit=2)
        assert [it["room"] async for it in pages] == [f"r{number}" for number in range(6)]
    assert [it.get("after") for it in asked] == [None, "2", "4"]
    assert all(it["state"] == "ongoing" and it["limit"] == 2 for it in asked)


@pytest.mark.parametrize(
    "boot, registry, since",
    [
        ("b1", {}, {"r": 7}),
        ("b0", {}, None),
        # A node says itself which rooms are gone, whichever it is and however old.
        ("b0", {"registry": "reached"}, {"r": 7}),
        ("b0", {"registry": "away"}, {"r": 7}),
    ],
)
async def test_a_restarted_program_asks_for_what_it_missed_of_the_same_sfud(
    tmp_path, boot, registry, since
):
    sfud = StandIn()
    asked = []
    sfud.answers["server.info"] = lambda params: {"contract": CONTRACT, "boot": "b1"}
    sfud.answers["node.list"] = lambda params: {"nodes": []} | registry
    sfud.answers["events.subscribe"] = lambda params: asked.append(params) or {}
    path = str(tmp_path / "sfud.sock")
    async with await asyncio.start_unix_server(sfud.serve, path):
        client = IPC(path, sfud.events.append, seen={"r": 7}, boot=boot)
        task = asyncio.create_task(client.run())
        await asyncio.wait_for(client.connected.wait(), 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [it.get("since") for it in asked] == [since]
    assert client.boot == "b1" and client.has_same_rooms == (since is not None)


async def test_another_contract_is_named_and_not_spoken(tmp_path):
    sfud = StandIn(contract=1)
    async with connected(sfud, tmp_path, fits=False) as client:
        await asyncio.sleep(0.5)
        assert 1 <= sfud.connections <= 4  # with growing pauses
        assert not client.connected.is_set()
        with pytest.raises(Refused, match="speaks version 1 of the contract") as refused:
            await client.call("room.list")
        assert refused.value.reason == "wrong-contract"


async def test_an_expected_refusal_passes_and_no_other():
    with passing("already-exists"):
        raise Refused("already-exists", "there is one")
    with pytest.raises(Refused):
        with passing("already-exists"):
            raise Refused("draining", "no new rooms")
