"""One hostile publisher beside four honest ones: its media harms only itself."""

import asyncio
import json
import re
import subprocess
import time
from pathlib import Path

import pytest

from harness import recorded
from harness.hostile import Hostile, av1, h264, vp8, vp8_header
from harness.looks import ALICE, BOB, CAROL
from harness.media import hue_distance
from harness.process import until
from harness.room import Room
from harness.rtmp import Nginx

pytestmark = pytest.mark.alone

HONEST = {"alice": ALICE, "bob": BOB, "carol": CAROL, "dave": {"hue": 60, "tone": 1600}}
#: The stream's picture: the tiles of five are then as large as the publishers' pictures.
WIDTH, HEIGHT, TILE = 960, 540, (320, 180)
CORNERS = [(0, 90), (320, 90), (640, 90), (160, 270), (480, 270)]
YEAR = 365 * 86400


@pytest.fixture
def nginx(loop, tmp_path):
    server = loop.run_until_complete(Nginx(tmp_path).start())
    yield server
    loop.run_until_complete(server.stop())


def streamer() -> int:
    """Returns the process that decodes and encodes."""
    [found] = [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if b"--streamer" in path.read_bytes()
    ]
    return found


async def attack(
    peer: Hostile, seconds: float, small: list[list[bytes]], large: list[bytes]
) -> dict[str, int]:
    """Sends media that breaks files, clocks, decoders and memory in turn; returns how often.

    `small` are keyframes of H.264 with parameter sets of their own, `large` is one of VP8.
    """
    kinds = {
        "H.264 whose parameter sets alternate": (peer.type("H264"), 60, lambda n: small[n % 2]),
        "AV1 with the forbidden bit": (peer.type("AV1"), 60, lambda n: av1(n % 2 == 0, n % 3 == 0)),
        "VP8 of 16,383 by 16,383": (peer.type("VP8"), 60, lambda n: vp8_header(16383, 16383)),
        "VP8 of 5,120 by 2,880": (peer.type("VP8"), 60, lambda n: vp8_header(5120, 2880)),
        "VP8 of 4,096 by 2,304": (peer.type("VP8"), 30, lambda n: large),
    }
    sent = dict.fromkeys(kinds, 0)
    begin = time.monotonic()
    for turn, (name, (type_, rate, frame)) in enumerate(kinds.items()):
        start = begin + turn * seconds / len(kinds)
        while (elapsed := time.monotonic() - start) < seconds / len(kinds):
            timestamp = int((time.monotonic() - begin) * 90_000)
            await peer.send("video", type_, frame(sent[name]), timestamp)
            # Sound whose reports claim that it was captured years ago, or in years.
            sound = int((time.monotonic() - begin) * 48_000)
            await peer.send("audio", peer.type("opus"), [b"\xfc\xff\xfe"], sound)
            years = (-30, 30, -1, 60, 0)[sent[name] % 5]
            await peer.report("audio", sound, years * YEAR)
            await peer.report("video", timestamp, -years * YEAR)
            sent[name] += 1
            await asyncio.sleep(max(0, start + sent[name] / rate - time.monotonic()))
    return sent


def freezes(path: Path, corner: tuple[int, int]) -> tuple[float, float]:
    """Returns the mean hue of a tile of a stream, and its longest freeze."""
    cut = f"crop={TILE[0]}:{TILE[1]}:{corner[0]}:{corner[1]}"
    track = recorded.Track(path, "h264", 0, *TILE, times=times(path, "v"))
    small = path.with_suffix(f".{corner[0]}-{corner[1]}.mkv")
    recorded.run(
        "ffmpeg", "-v", "error", "-y", "-i", str(path), "-an", "-vf", cut, "-fps_mode",
        "passthrough", "-c:v", "libx264", "-preset", "ultrafast", "-crf", "10", str(small),
    )
    shown = recorded.frames(recorded.Track(small, "h264", 0, *TILE, times=track.times))
    hues = sorted(frame.hue for frame in shown)
    longest, since, last = 0.0, shown[0].time, shown[0].counter
    for frame in shown[1:]:
        if frame.counter != last:
            longest, since, last = max(longest, frame.time - since), frame.time, frame.counter
    return hues[len(hues) // 2], max(longest, shown[-1].time - since)


def times(path: Path, kind: str) -> list[float]:
    """Returns the times of a stream's packets, in seconds."""
    text = recorded.run(
        "ffprobe", "-v", "error", "-select_streams", kind, "-show_entries", "packet=pts_time",
        "-of", "json", str(path),
    )
    return [float(packet["pts_time"]) for packet in json.loads(text)["packets"]]


def longest_step(moments: list[float]) -> float:
    return max(after - before for before, after in zip(moments, moments[1:]))


async def stalls() -> float:
    """Records the longest stall of this process, in which everybody publishes.

    It is available when the task is cancelled.
    """
    longest, last = 0.0, time.monotonic()
    try:
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
    except asyncio.CancelledError:
        return longest


async def keep(url: str, path: Path, seconds: float) -> asyncio.subprocess.Process:
    """Saves a server's stream, without decoding it."""
    return await asyncio.create_subprocess_exec(
        "ffmpeg", "-v", "error", "-i", url, "-t", str(seconds), "-c", "copy", "-y", str(path),
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.slow
@pytest.mark.seconds(240)
async def test_one_hostile_publisher_harms_neither_recording_nor_stream(
    start_sfud, peers, nginx, tmp_path
):
    daemon = await start_sfud("--recordings", str(tmp_path / "recordings"))
    mallory = Hostile()
    seconds = 20
    # Made before anybody publishes: encoding must not stall the publishers in this process.
    small, large = [h264("64x64"), h264("128x128")], vp8("4096x2304")
    try:
        async with daemon.client() as ipc:
            room = await Room(ipc).open()
            for name, look in HONEST.items():
                peer = await peers("aiortc")
                await room.join(name, peer, **look, width=TILE[0], height=TILE[1], fps=10)
            await room.join("mallory", mallory, anything=True)
            url = nginx.url("key")
            await room.call(
                "streaming.start", url=url, layout="grid", width=WIDTH, height=HEIGHT,
                bitrate=3_000_000,
            )
            child = streamer()
            await room.call("recording.start")
            await ipc.wait_for("recording.started", lambda data: True, 10)
            await asyncio.sleep(2)
            video = tmp_path / "stream.mkv"
            keeper = await keep(url, video, seconds + 1)
            await asyncio.sleep(1.5)
            watch = asyncio.create_task(stalls())
            sent = await attack(mallory, seconds, small, large)
            await asyncio.wait_for(keeper.wait(), 20)
            watch.cancel()
            print(f"publishers stood still for {await watch:.2f} s at most")
            assert streamer() == child, "the process that decodes has been started anew"
            status = Path(f"/proc/{child}/status").read_text()
            peak = int(re.search(r"VmHWM:\s+(\d+)", status)[1]) // 1024
            await room.call("recording.stop")
            news = (await ipc.wait_for("recording.stopped", lambda data: True, 10)).data
            assert "reason" not in news
            names = {event.event for event in ipc.events}
            assert not names & {"streaming.interrupted", "streaming.stopped"}
    finally:
        await mallory.close()

    print("sent:", sent)
    print(f"the process that decodes had at most {peak} MiB")
    told = []
    for name, look in HONEST.items():
        [sound], [picture] = (
            [one for one in news["files"] if one["participant"] == name and one["kind"] == kind]
            for kind in ("audio", "video")
        )
        assert not sound["gaps"] and not picture["gaps"], (name, sound["gaps"], picture["gaps"])
        track = recorded.decodes(Path(picture["path"]))
        shown = recorded.frames(track)
        counters = [frame.counter for frame in shown]
        assert counters == list(range(counters[0], counters[0] + len(counters))), name
        # The bright bar over dark blue sometimes leaves a picture without a hue.
        hues = [frame.hue for frame in shown if frame.hue >= 0]
        assert len(hues) > 0.9 * len(shown), name
        assert all(hue_distance(hue, look["hue"]) < 20 for hue in hues), name
        heard = recorded.decodes(Path(sound["path"]))
        assert longest_step(heard.times) < 0.1, name
        told.append(f"{name}: {len(shown)} pictures, {len(heard.times)} packets of sound")
    print("recorded:", "; ".join(told))

    mallorys = [file for file in news["files"] if file["participant"] == "mallory"]
    print(f"mallory has {len(mallorys)} files")
    [session] = (tmp_path / "recordings").glob("*/session.json")
    record = json.loads(session.read_text())
    ended = [one for one in record["events"] if one["type"] == "ended"]
    assert [(one["participant"], one["kind"], one["reason"]) for one in ended] == [
        ("mallory", "video", "refused")
    ]
    for file in record["files"]:
        assert record["started"] - 11 < file["start"] < record["stopped"] + 1, file
    assert "a track is no longer recorded" in daemon.log_text()

    found = recorded.errors(video)
    assert not found, found
    steps = {kind: longest_step(times(video, kind)) for kind in ("v", "a")}
    print(f"longest between pictures {steps['v']:.3f} s, between packets of sound {steps['a']:.3f} s")
    assert steps["v"] < 0.2 and steps["a"] < 0.1, steps
    tiles = {corner: freezes(video, corner) for corner in CORNERS}
    for name, look in HONEST.items():
        [still] = [
            still for hue, still in tiles.values() if hue >= 0 and hue_distance(hue, look["hue"]) < 20
        ]
        print(f"{name} stood still for {still:.2f} s at most")
        assert still < 1, (name, still)


async def test_the_process_that_decodes_is_shut_in(sfud, room, peers, nginx):
    await room.join("alice", await peers("aiortc"), **ALICE)
    await room.call("streaming.start", url=nginx.url("key"), width=320)
    child = Path(f"/proc/{streamer()}")
    status = dict(
        line.split(":\t", 1) for line in (child / "status").read_text().splitlines()
    )
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    tasks = [path.read_text() for path in child.glob("task/*/status")]
    assert len(tasks) > 3 and all("Seccomp:\t2" in one for one in tasks)
    assert (child / "oom_score_adj").read_text() == "1000\n"
    limits = (child / "limits").read_text()
    assert re.search(r"Max address space +4294967296 +4294967296", limits), limits
    assert "sandbox" not in sfud.log_text()
    print({key: status[key] for key in ("VmPeak", "VmHWM")})

    async def sent():
        return (await room.call("room.get"))["streaming"]

    assert await until(sent, "the stream goes on")
