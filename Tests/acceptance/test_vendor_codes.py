"""Every code of the vendors' documents, met over a real socket; calls that are to meet one of the
"in process" codes are written together."""

import asyncio
import json
from dataclasses import dataclass, field

import pytest

from harness.ipc import LONGEST_LINE
from harness.rtmp import Nginx

Call = tuple[str, dict]

#: The documents' codes: 43.
CODES = {
    5001, 5002, 5003, 5004, 5005, 5006, 5007, 5008, 5009, 5010, 5011, 5012, 5033, 5034, 5035, 5036,
    5037, 5038, 5039, 5040, 5041, 5042, 5043, 5044, 5045, 5046, 5047, 5048, 5049, 5050, 5069, 5082,
    5085, 5115, 5116, 5117, 5118, 5121, 5122, 5123, 5124, 5125, 5126,
}
#: Those of an operation that is under way.
IN_PROCESS = {5033, 5035, 5037, 5040, 5041, 5043, 5047, 5049, 5121, 5123}


@dataclass
class Row:
    code: int
    call: Call
    #: Calls that are done before.
    after: list[Call] = field(default_factory=list)
    #: A call written with the tested one, in one piece.
    beside: Call | None = None
    mode: str = "lecture"


def floor(step: str, participant: str = "a", **more) -> Call:
    return f"floor.{step}", {"participant": participant, **more}


def mute(verb: str, kind: str) -> Call:
    return f"participant.{verb}", {"participant": "b", "media": [kind], "by": "a"}


MUTE, UNMUTE = ("room.hardMute", {}), ("room.hardUnmute", {})
LOCK, UNLOCK = ("room.lock", {}), ("room.unlock", {})
ASKED, GRANTED = floor("request"), floor("grant", by="m")
RECORD, STOP = ("recording.start", {}), ("recording.stop", {})
STREAM, END = ("streaming.start", {"url": "$url"}), ("streaming.stop", {})

ROWS = [
    Row(5001, ("room.hardMute", {"by": "a"})),
    Row(5002, ("room.hardUnmute", {"by": "a"})),
    Row(5003, floor("request", "m")),
    Row(5003, ("pin.add", {"participants": ["b"], "by": "a"})),
    Row(5004, floor("grant", by="b"), [ASKED]),
    Row(5005, floor("deny", by="b"), [ASKED]),
    Row(5006, floor("release", by="b"), [ASKED, GRANTED]),
    Row(5007, ("recording.start", {"by": "a"})),
    Row(5008, ("recording.stop", {"by": "a"})),
    Row(5009, mute("hardMute", "audio")),
    Row(5010, mute("hardUnmute", "audio")),
    Row(5011, mute("hardMute", "video")),
    Row(5012, mute("hardUnmute", "video")),
    Row(5033, RECORD, beside=RECORD),
    Row(5034, RECORD, [RECORD]),
    Row(5035, STOP, [RECORD], beside=STOP),
    Row(5036, STOP),
    Row(5037, MUTE, beside=MUTE),
    Row(5038, MUTE, [MUTE]),
    Row(5039, UNMUTE),
    Row(5040, UNMUTE, [MUTE], beside=UNMUTE),
    Row(5041, ASKED, beside=ASKED),
    Row(5041, floor("cancel"), [ASKED], beside=floor("cancel")),
    Row(5041, floor("finish"), [ASKED, GRANTED], beside=floor("finish")),
    Row(5042, ASKED, [ASKED]),
    Row(5042, floor("cancel")),
    Row(5043, GRANTED, [ASKED], beside=GRANTED),
    Row(5044, GRANTED, [ASKED, GRANTED]),
    Row(5045, ("participant.hardMute", {"participant": "x", "media": ["audio"]})),
    Row(5045, ("moderator.transfer", {"participant": "x", "by": "m"})),
    Row(5046, floor("grant", "b", by="m"), [ASKED, GRANTED, floor("request", "b")]),
    Row(5047, floor("deny", by="m"), [ASKED], beside=floor("deny", by="m")),
    Row(5048, floor("deny", by="m"), [ASKED, GRANTED]),
    Row(5049, floor("release"), [ASKED, GRANTED], beside=floor("release")),
    Row(5050, floor("release"), [ASKED]),
    Row(5069, GRANTED),
    Row(
        5069,
        floor("grant", "b", by="m"),
        [ASKED, GRANTED, floor("request", "b")],
        beside=floor("release"),
    ),
    Row(5082, ASKED, mode="group"),
    Row(5085, ("moderator.transfer", {"participant": "b", "by": "a"})),
    Row(5115, ("room.lock", {"by": "a"})),
    Row(5116, ("participant.drop", {"participants": ["b"], "by": "a"})),
    Row(5116, ("room.close", {"by": "a"})),
    Row(5117, LOCK, [LOCK]),
    Row(5118, UNLOCK),
    Row(5121, STREAM, beside=STREAM),
    Row(5122, STREAM, [STREAM]),
    Row(5123, END, [STREAM], beside=END),
    Row(5124, END),
    Row(5125, ("streaming.start", {"url": "file:///etc/passwd"})),
    Row(5126, ("pin.add", {"participants": ["x"], "by": "m"})),
    Row(5126, ("pin.add", {"participants": ["a", "b", "m"], "by": "m"})),
]


class Socket:
    """A connection on which lines are written by hand, several in one piece."""

    def __init__(self, path):
        self._path = path
        self._last = 0

    async def __aenter__(self) -> "Socket":
        self._reader, self._writer = await asyncio.open_unix_connection(
            str(self._path), limit=LONGEST_LINE
        )
        return self

    async def __aexit__(self, *_) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    async def replies(self, *calls: Call) -> list[dict]:
        """Writes calls in one piece; returns their replies in the order of the calls."""
        ids = range(self._last + 1, self._last + 1 + len(calls))
        self._last += len(calls)
        lines = [
            json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            for number, (method, params) in zip(ids, calls)
        ]
        self._writer.write("".join(f"{line}\n" for line in lines).encode())
        found: dict[int, dict] = {}
        async with asyncio.timeout(20):
            while len(found) < len(calls):
                message = json.loads(await self._reader.readline())
                if "id" in message:
                    found[message["id"]] = message
        return [found[number] for number in ids]

    async def done(self, method: str, params: dict) -> None:
        [reply] = await self.replies((method, params))
        assert "error" not in reply, (method, params, reply)


@pytest.fixture
def nginx(loop, tmp_path):
    server = loop.run_until_complete(Nginx(tmp_path).start())
    yield server
    loop.run_until_complete(server.stop())


def placed(call: Call, room: str, url: str) -> Call:
    """Returns a call in a room; its live stream goes to an address of the room's own."""
    method, params = call
    known = {key: url if value == "$url" else value for key, value in params.items()}
    return method, {"room": room, **known}


@pytest.mark.seconds(120)
async def test_e2_to_e32_every_code_is_met_over_the_socket(start_sfud, nginx, tmp_path):
    assert {row.code for row in ROWS} == CODES and len(CODES) == 43
    assert {row.code for row in ROWS if row.beside} == IN_PROCESS | {5069}
    daemon = await start_sfud("--recordings", str(tmp_path / "recordings"))
    wrong = []
    async with Socket(daemon.ipc) as socket:
        for number, row in enumerate(ROWS):
            room, url = f"r-{number}", nginx.url(f"key-{number}")
            settings = {"mode": row.mode, "maxActiveTalkers": 3}
            await socket.done("room.create", {"room": room, "settings": settings})
            for name, role in [("m", "moderator"), ("a", "participant"), ("b", "participant")]:
                who = {"room": room, "participant": name, "role": role}
                await socket.done("participant.join", who)
            for call in row.after:
                await socket.done(*placed(call, room, url))
            calls = [one for one in (row.beside, row.call) if one]
            *first, last = await socket.replies(*(placed(one, room, url) for one in calls))
            if any("error" in one for one in first):
                wrong.append((row, first))
            if last.get("error", {}).get("code") != row.code:
                wrong.append((row, last))
            await socket.done("room.close", {"room": room})
    await daemon.stop()
    assert not wrong, wrong
