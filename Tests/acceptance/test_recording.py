"""Recordings: real publishers, files that ffmpeg decodes without a word."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from harness import recorded
from harness.looks import ALICE, BOB
from harness.media import hue_distance
from harness.room import Room


async def started(ipc) -> dict:
    return (await ipc.wait_for("recording.started", lambda data: True, 10)).data


async def stopped(ipc) -> dict:
    return (await ipc.wait_for("recording.stopped", lambda data: True, 10)).data


def by_kind(files: list[dict], participant: str) -> dict[str, list[dict]]:
    found: dict[str, list[dict]] = {"audio": [], "video": []}
    for file in files:
        if file["participant"] == participant:
            found[file["kind"]].append(file)
    return found


@pytest.fixture
def recorder(loop, start_sfud, tmp_path):
    """A daemon that records under `tmp_path`, and a room in it."""
    daemon = loop.run_until_complete(start_sfud("--recordings", str(tmp_path)))
    ipc = daemon.client()
    loop.run_until_complete(ipc.open())
    room = loop.run_until_complete(Room(ipc).open())
    room.daemon = daemon
    yield room
    loop.run_until_complete(ipc.close())
    if daemon.process.returncode is None:
        loop.run_until_complete(daemon.stop())


CODECS = [
    ("Chromium", "VP8"), ("Chromium", "VP9"), ("Chromium", "H264"), ("Chromium", "AV1"),
    ("aiortc", "VP8"), ("aiortc", "H264"),
]


@pytest.mark.parametrize("stack, codec", CODECS, ids=["-".join(one) for one in CODECS])
async def test_what_is_published_is_recorded(recorder, peers, tmp_path, stack, codec):
    await recorder.join("alice", await peers(stack), codec=codec, **ALICE, width=640, height=360)
    begin = time.time()
    answer = await recorder.call("recording.start")
    await started(recorder.ipc)
    assert (await recorder.call("room.get"))["recording"] is True
    await asyncio.sleep(5)
    await recorder.call("recording.stop")
    end = time.time()
    news = await stopped(recorder.ipc)
    assert news["recording"] == answer["recording"] and "reason" not in news

    assert {Path(file["path"]).parent for file in news["files"]} == {Path(answer["directory"])}
    files = by_kind(news["files"], "alice")
    [video], [audio] = files["video"], files["audio"]
    for file in (video, audio):
        assert not file["gaps"], file
        assert begin - 0.2 <= file["start"] <= begin + 2, (file, begin)
        assert end - 1 <= file["start"] + file["duration"] <= end + 0.1, (file, end)
    picture = recorded.decodes(Path(video["path"]))
    assert picture.codec == {"H264": "h264"}.get(codec, codec.lower())
    assert picture.width > 0 and picture.height > 0
    shown = recorded.frames(picture)
    assert len(shown) > 60, len(shown)
    assert all(hue_distance(frame.hue, ALICE["hue"]) < 20 for frame in shown)
    counters = [frame.counter for frame in shown]
    assert counters == sorted(counters), counters
    sound = recorded.decodes(Path(audio["path"]))
    assert sound.codec == "opus"
    heard = recorded.sounds(sound)[5:-5]
    assert all(abs(one.tone - ALICE["tone"]) < 20 and one.level > 0.1 for one in heard), heard

    session = json.loads((Path(answer["directory"]) / "session.json").read_text())
    assert session["version"] == 1 and session["room"] == recorder.id
    assert session["recording"] == answer["recording"] and session["stopped"] >= end - 1
    assert {file["path"] for file in session["files"]} == {
        Path(file["path"]).name for file in news["files"]
    }
    assert all(file["complete"] for file in session["files"])
    assert ["alice"] == [
        one["participant"] for one in session["events"] if one["type"] == "joined"
    ]
