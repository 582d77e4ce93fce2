"""Recordings of real publishers: ffmpeg decodes the files without any message."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import recorded
from harness.bench import start
from harness.looks import ALICE, BOB
from harness.media import hue_distance
from harness.process import until
from harness.room import Room
from harness.sfud import binary
from harness.strace import strace


async def started(ipc) -> dict:
    """Waits until a recording has started and has media on disk."""
    news = (await ipc.wait_for("recording.started", lambda data: True, 10)).data
    async with asyncio.timeout(10):
        while not any(
            file["bytes"]
            for file in (await ipc.call("recording.files", recording=news["recording"]))["files"]
        ):
            await asyncio.sleep(0.1)
    return news


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
    """Returns a daemon that records under `tmp_path`, and a room in it."""
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
    assert (await recorder.call("room.get"))["recording"] == answer["recording"]
    await asyncio.sleep(3.5)
    await recorder.call("recording.stop")
    end = time.time()
    news = await stopped(recorder.ipc)
    assert news["recording"] == answer["recording"] and "reason" not in news
    assert news["count"] == len(news["files"]) == 2 and news["bytes"] > 0
    pages = recorder.ipc.pages("recording.files", "files", recording=answer["recording"], limit=1)
    assert [file async for file in pages] == news["files"]

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
    assert len(shown) > 35, len(shown)
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


async def test_a_silent_room_hears_of_its_recording(recorder):
    answer = await recorder.call("recording.start")
    news = (await recorder.ipc.wait_for("recording.started", lambda data: True, 10)).data
    assert news == {"recording": answer["recording"], "directory": answer["directory"]}
    assert (await recorder.call("room.get"))["recording"] == answer["recording"]
    await recorder.call("recording.stop")
    news = await stopped(recorder.ipc)
    assert news["recording"] == answer["recording"]
    assert (news["count"], news["files"]) == (0, []) and "next" not in news


@pytest.mark.alone
async def test_sound_and_picture_agree(recorder, peers):
    """A beep begins with each twentieth picture; it does so in the recording too, within 40 ms."""
    await recorder.join("alice", await peers("aiortc"), **ALICE, fps=20, beeps=True)
    await recorder.call("recording.start")
    await started(recorder.ipc)
    await asyncio.sleep(12)
    await recorder.call("recording.stop")
    files = by_kind((await stopped(recorder.ipc))["files"], "alice")
    [video], [audio] = files["video"], files["audio"]

    seconds = [
        video["start"] + frame.time
        for frame in recorded.frames(recorded.decodes(Path(video["path"])))
        if frame.counter % 20 == 0
    ]
    sound = recorded.decodes(Path(audio["path"]))
    beeps = [
        audio["start"] + recorded.moment(sound, at)
        for at in recorded.onsets(recorded.samples(sound))
    ]
    # Sender reports arrive within the first seconds; the times of earlier media are not exact.
    settled = [beep for beep in beeps if beep > audio["start"] + 6]
    assert len(settled) >= 4, beeps
    errors = [min(second - beep for second in seconds if abs(second - beep) < 0.5)
              for beep in settled]
    print("picture after sound, in ms:", [round(1000 * one) for one in errors])
    assert all(abs(error) <= 0.040 for error in errors), errors


async def test_muted_and_gone_are_gaps(recorder, peers):
    alice = await recorder.join("alice", await peers("Chromium"), **ALICE, width=640, height=360)
    await recorder.join("bob", await peers("aiortc"), **BOB)
    await recorder.call("recording.start")
    await started(recorder.ipc)
    await asyncio.sleep(2)
    await recorder.call("participant.hardMute", participant="alice", media=["audio", "video"])
    muted = time.time()
    await asyncio.sleep(2)
    unmuted = time.time()
    await recorder.call("participant.hardUnmute", participant="alice", media=["audio", "video"])
    await asyncio.sleep(2)
    await alice.leave()
    left = time.time()
    await asyncio.sleep(1)
    back = time.time()
    await recorder.join("alice", await peers("Chromium"), **ALICE, width=640, height=360)
    await asyncio.sleep(2)
    await recorder.call("recording.stop")
    files = (await stopped(recorder.ipc))["files"]

    bobs = by_kind(files, "bob")
    assert len(bobs["audio"]) == len(bobs["video"]) == 1
    assert not bobs["audio"][0]["gaps"] and not bobs["video"][0]["gaps"]
    for kind, found in by_kind(files, "alice").items():
        first, second = found
        [gap] = first["gaps"]
        assert gap["reason"] == "muted"
        assert abs(gap["start"] - muted) < 0.3 and -0.1 <= gap["end"] - unmuted < 1.5, (kind, gap)
        track = recorded.decodes(Path(first["path"]))
        # An Opus packet's time precedes its presentation by the look-ahead of 6.5 ms.
        times = [first["start"] + one for one in track.times]
        assert not [one for one in times if gap["start"] + 0.002 < one < gap["end"] - 0.01], kind
        assert first["start"] + first["duration"] <= left + 0.1
        assert second["start"] >= back and not second["gaps"]
        recorded.decodes(Path(second["path"]))
    session = json.loads((Path(files[0]["path"]).parent / "session.json").read_text())
    told = [
        (one["type"], one["participant"]) for one in session["events"] if one["type"] != "size"
    ]
    assert told.count(("muted", "alice")) == told.count(("unmuted", "alice")) == 2
    assert told.count(("joined", "alice")) == 2 and told.count(("left", "alice")) == 1
    sizes = [one for one in session["events"] if one["type"] == "size"]
    assert sizes and all(one["width"] > 0 for one in sizes)


async def largest_layer_is_sent(room: Room) -> bool:
    [stream] = (await room.call("stream.list"))["streams"]
    return any(one["active"] and one["height"] == 540 for one in stream["video"]["layers"])


@pytest.mark.seconds(120)
async def test_a_layer_that_goes_is_replaced(recorder, peers):
    await recorder.join(
        "alice", await peers("Chromium"), codec="VP8", simulcast=True, **ALICE,
        width=960, height=540, fps=15,
    )
    await recorder.call("recording.start")
    await started(recorder.ipc)
    # How soon an encoder sends its largest layer is the browser's decision.
    await until(lambda: largest_layer_is_sent(recorder), "alice sends 540 lines", 30)
    await asyncio.sleep(4)
    await recorder.call("recording.stop")
    files = by_kind((await stopped(recorder.ipc))["files"], "alice")
    [video] = files["video"]
    track = recorded.decodes(Path(video["path"]))
    shown = recorded.frames(track)
    assert [frame.counter for frame in shown] == sorted(frame.counter for frame in shown)
    session = json.loads((Path(video["path"]).parent / "session.json").read_text())
    sizes = [(one["width"], one["height"]) for one in session["events"] if one["type"] == "size"]
    assert sizes[-1] == (960, 540), sizes


@pytest.mark.seconds(240)
async def test_files_outlive_the_daemon(start_sfud, peers, tmp_path):
    """Sends SIGKILL at odd moments, SFUD_KILLS times: data on disk decodes, except for the last two
    seconds."""
    for round_ in range(int(os.environ.get("SFUD_KILLS", 3))):
        directory = tmp_path / str(round_)
        daemon = await start_sfud("--recordings", str(directory))
        async with daemon.client() as ipc:
            room = await Room(ipc).open()
            await room.join("alice", await peers("aiortc"), **ALICE, width=320, height=180)
            await room.call("recording.start")
            await started(ipc)
            await asyncio.sleep(2.5 + 0.37 * (round_ % 7))
            daemon.process.kill()
            killed = time.time()
            await daemon.process.wait()
        [session] = directory.glob("*/session.json")
        record = json.loads(session.read_text())
        assert record["stopped"] is None and len(record["files"]) == 2
        for file in record["files"]:
            assert not file["complete"]
            track = recorded.probe(session.parent / file["path"])
            missing = killed - (file["start"] + track.times[-1])
            assert missing <= 2, (file["kind"], missing)
            assert recorded.is_sound(track.path)


@pytest.mark.seconds(900)
async def test_k2_killed_at_any_step_on_the_disk_it_leaves_what_can_be_read(start_sfud, tmp_path):
    """Sends SIGKILL at each step of the recording's file operations, SFUD_KILLS times.

    The first kill is in the first call that makes a file in the recording's directory, the second
    in the third call that makes, writes or renames one, and so on. Earlier there is nothing to
    read. The next daemon records beside the files of the last one.
    """
    told = []
    for kill in range(int(os.environ.get("SFUD_KILLS", 2))):
        directory = tmp_path / str(kill)
        # Each missing directory of the path is made, and then the recording's.
        number = len(directory.parts) + 1 + 2 * kill
        for step in (number, None):
            daemon = await start_sfud("--recordings", str(directory))
            load = await start("sfu-bench", "load", "--ipc", daemon.ipc, "--viewers", 1)
            async with daemon.client() as ipc:
                await ipc.call("events.subscribe")
                while (await ipc.call("server.stats"))["rtpOut"] < 20:
                    await asyncio.sleep(0.05)
                [room] = (await ipc.call("room.list"))["rooms"]
                if step:
                    calls = f"mkdir,openat,pwrite64,rename:signal=SIGKILL:when={step}"
                    tracer = await strace(daemon, calls)
                with contextlib.suppress(ConnectionError):
                    await ipc.call("recording.start", room=room["room"])
                if step:
                    assert await asyncio.wait_for(daemon.process.wait(), 10) == -signal.SIGKILL
                    await tracer.wait()
                else:
                    await started(ipc)
                    await asyncio.sleep(1)
                    await ipc.call("recording.stop", room=room["room"])
                    await stopped(ipc)
                    await daemon.stop()
            load.kill()
            await load.communicate()
        sessions = sorted(filter(Path.is_dir, directory.glob("*")), key=lambda one: one.stat().st_mtime)
        told.append([read_back(one) for one in sessions])
        assert told[-1][-1] == "composed" and len(told[-1]) == 2, told
    print("\n".join(f"{2 * kill + 1}: {one}" for kill, one in enumerate(told)))


def read_back(session: Path) -> str:
    """Makes one file of a recording with sfuctl; returns the file, or the reason for a failure."""
    tool = binary().with_name("sfuctl")
    output = session.parent / f"{session.name}.mp4"
    compose = (tool, "compose", session, "--output", output, "--size", "320x180")
    done = subprocess.run(compose, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        assert recorded.is_sound(output)
        return "composed"
    lines = done.stderr.splitlines()
    assert done.returncode > 0 and lines and all(one.startswith("sfuctl: ") for one in lines), done
    return lines[-1]


async def test_a_full_disk_ends_the_recording_alone(start_sfud, peers, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    recorded.run("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk))
    config = tmp_path / "sfud.json5"
    config.write_text("{ limits: { recordingFreeBytes: 0 } }")
    try:
        daemon = await start_sfud("--config", str(config), "--recordings", str(disk))
        async with daemon.client() as ipc:
            room = await Room(ipc).open()
            alice = await room.join("alice", await peers("aiortc"), **ALICE)
            bob = await room.join("bob", await peers("aiortc"), slots=1)
            seen = await bob.subscribe(alice.stream)
            await room.call("recording.start")
            news = (await ipc.wait_for("recording.stopped", lambda data: True, 30)).data
            assert news["reason"] == "disk-full"
            assert (await room.call("room.get")).get("recording") is None
            for file in news["files"]:
                track = recorded.probe(Path(file["path"]))
                assert track.times[-1] + 0.1 >= file["duration"] > 0
                assert recorded.is_sound(track.path)
            # Nobody else is affected.
            since = time.time()
            await asyncio.sleep(1)
            frames = await bob.peer.frames(seen.video, since)
            assert len(frames) > 10
    finally:
        recorded.run("umount", "-l", str(disk))


SLOW = r"""
#define _GNU_SOURCE
#include <sys/types.h>
#include <unistd.h>
#include <sys/syscall.h>
ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    usleep(count * 100);
    return syscall(SYS_pwrite64, file, bytes, count, offset);
}
ssize_t pwrite64(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite(file, bytes, count, offset);
}
"""


async def test_a_slow_disk_ends_the_recording_alone(start_sfud, peers, tmp_path):
    """Writes to a disk that takes 10 kB a second."""
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW)
    recorded.run("clang", "-shared", "-fPIC", "-o", str(library), str(source))
    config = tmp_path / "sfud.json5"
    config.write_text("{ limits: { recordingWaitingBytes: 65536 } }")
    daemon = await start_sfud(
        "--config", str(config), "--recordings", str(tmp_path / "slow"),
        under=("env", f"LD_PRELOAD={library}"),
    )
    async with daemon.client() as ipc:
        room = await Room(ipc).open()
        alice = await room.join("alice", await peers("aiortc"), **ALICE)
        bob = await room.join("bob", await peers("aiortc"), slots=1)
        seen = await bob.subscribe(alice.stream)
        await room.call("recording.start")
        news = (await ipc.wait_for("recording.stopped", lambda data: True, 30)).data
        assert news["reason"] == "too-slow"
        for file in news["files"]:
            assert Path(file["path"]).exists()
        since = time.time()
        reply = await room.call("participant.hardMute", participant="alice", media=["audio"])
        assert time.time() - since < 0.5 and "fence" in reply
        await asyncio.sleep(1)
        assert len(await bob.peer.frames(seen.video, since)) > 10


async def test_autorecord_and_the_end_of_a_room(recorder, peers):
    ipc = recorder.ipc
    await ipc.call("room.create", room="auto", settings={"autoRecord": True})
    room = Room(ipc)
    room.id = "auto"
    await room.join("alice", await peers("aiortc"), **ALICE)
    await started(ipc)
    await asyncio.sleep(1.5)
    await room.call("room.close")
    news = await stopped(ipc)
    assert news["reason"] == "room-closed" and len(news["files"]) == 2
    for file in news["files"]:
        recorded.decodes(Path(file["path"]))
    listed = await ipc.call("recording.list", room="auto")
    [one] = listed["recordings"]
    assert one["state"] == "stopped" and one["files"] == news["files"]
    assert one["count"] == news["count"] == 2 and "next" not in one
    assert one["bytes"] == sum(Path(file["path"]).stat().st_size for file in one["files"])


async def test_a_silent_room_hears_that_it_is_recorded(recorder):
    ipc = recorder.ipc
    answer = await recorder.call("recording.start")
    news = (await ipc.wait_for("recording.started", lambda data: True, 10)).data
    assert news["recording"] == answer["recording"] and Path(news["directory"]).is_dir()
    await recorder.call("recording.stop")
    assert (await stopped(ipc))["count"] == 0
