"""Recordings and other outputs of rooms over nodes: the home has them, each once."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from harness import recorded
from harness.looks import ALICE, BOB
from harness.media import hue_distance
from harness.nats import cluster, linked
from harness.plain import Receiver
from harness.process import until
from harness.room import Room
from harness.rtmp import Viewer
from harness.sfud import free_ports
from test_moves import asked, move, rooms
from test_nodes import nats  # noqa: F401
from test_recording import by_kind, started, stopped
from test_streaming import near, nginx  # noqa: F401
from test_taps import tap


def shows(path: str, look: dict) -> recorded.Track:
    """Checks that a recorded picture is a participant's, frame after frame."""
    track = recorded.decodes(Path(path))
    frames = recorded.frames(track)
    assert len(frames) > 20, len(frames)
    assert all(hue_distance(frame.hue, look["hue"]) < 20 for frame in frames)
    counters = [frame.counter for frame in frames]
    assert counters == sorted(counters), counters
    return track


def sounds(path: str, look: dict) -> None:
    heard = recorded.sounds(recorded.decodes(Path(path)))[5:-5]
    assert len(heard) > 10
    assert all(abs(one.tone - look["tone"]) < 20 and one.level > 0.1 for one in heard), heard


async def is_sharp(room: Room) -> bool:
    """Whether Alice sends her highest encoding."""
    streams = (await room.call("stream.list"))["streams"]
    [layers] = [one["video"]["layers"] for one in streams if one["participant"] == "alice"]
    return any(one["active"] and one["height"] == 540 for one in layers)


@pytest.mark.seconds(120)
async def test_the_home_records_who_is_at_other_nodes(start_sfud, nats, peers, tmp_path):
    daemons = dict(
        zip("abc", await cluster(start_sfud, nats, *"abc", more=("--recordings", str(tmp_path))))
    )
    async with (
        daemons["a"].client() as at_a,
        daemons["b"].client() as at_b,
        daemons["c"].client() as at_c,
    ):
        there = await rooms(daemons, (at_a, at_b, at_c), "abc")
        await there["b"].join(
            "alice", await peers("Chromium"), codec="VP8", simulcast=True, **ALICE,
            width=960, height=540, fps=15,
        )
        bob = await there["c"].join("bob", await peers("aiortc"), **BOB)
        answer = await there["c"].call("recording.start")
        await started(at_a)
        await until(lambda: is_sharp(there["a"]), "alice sends 540 lines", 30)
        await asyncio.sleep(3)

        # A mute by way of a third node holds in the file.
        await there["b"].call("participant.hardMute", participant="alice", media=["video"])
        muted = time.time()
        await asyncio.sleep(1.5)

        # Whoever moves to another node is recorded on.
        await at_c.call("server.drain")
        node = await asked(at_c, "bob")
        await move(bob, await peers("aiortc"), node, **BOB)
        moved = time.time()
        await asyncio.sleep(2.5)
        await there["b"].call("recording.stop")
        ended = time.time()
        news = await stopped(at_a)

        assert news["recording"] == answer["recording"] and "reason" not in news
        alice, bobs = by_kind(news["files"], "alice"), by_kind(news["files"], "bob")
        [video], [audio] = alice["video"], alice["audio"]
        shows(video["path"], ALICE)
        sounds(audio["path"], ALICE)
        assert video["start"] + video["duration"] <= muted + 0.3
        assert not video["gaps"] and not audio["gaps"]
        assert audio["start"] + audio["duration"] >= ended - 1
        session = json.loads((Path(video["path"]).parent / "session.json").read_text())
        sizes = [
            (one["width"], one["height"]) for one in session["events"] if one["type"] == "size"
        ]
        assert (960, 540) in sizes, sizes
        for kind, check in [("video", shows), ("audio", sounds)]:
            before, after = sorted(bobs[kind], key=lambda file: file["start"])
            check(before["path"], BOB)
            check(after["path"], BOB)
            assert after["start"] <= moved + 1, (after, moved)
            assert after["start"] + after["duration"] >= ended - 1
            assert not before["gaps"] and not after["gaps"]


@pytest.mark.seconds(90)
async def test_the_home_forwards_and_streams_who_is_at_another_node(
    start_sfud, nats, peers, nginx
):
    daemons = dict(zip("ab", await cluster(start_sfud, nats, "a", "b")))
    async with daemons["a"].client() as at_a, daemons["b"].client() as at_b:
        there = await rooms(daemons, (at_a, at_b), "ab")
        alice = await there["b"].join("alice", await peers("aiortc"), **ALICE)
        await there["a"].join("bob", await peers("aiortc"), **BOB)
        port = free_ports(4)
        with Receiver(port) as sound, Receiver(port + 2) as video:
            answer = await tap(there["b"], alice.stream, port, port + 2)
            await at_b.wait_for("tap.started", lambda data: data["tap"] == answer["tap"], 5)
            await asyncio.sleep(1.5)
            await there["b"].call("participant.hardMute", participant="alice", media=["video"])
            assert len(video.packets()) > 8 and len(sound.packets()) > 20
            await asyncio.sleep(0.6)
            assert video.packets() == [], "not one after the reply"
            assert len(sound.packets()) > 8
            await there["a"].call("participant.hardUnmute", participant="alice", media=["video"])
            await asyncio.sleep(1)
            assert len(video.packets()) > 5
            await there["b"].call("tap.stop", tap=answer["tap"])

        await there["b"].call(
            "streaming.start", url=nginx.url("key"), layout="grid", width=320, height=180
        )
        async with Viewer(nginx.url("key")) as viewer:
            await viewer.sees(
                lambda frame: {near(frame.left, ALICE, BOB), near(frame.right, ALICE, BOB)}
                == {0, 1},
                "both in one picture", 10,
            )
