"""Plain RTP to other tools: their decoding, and the effect of a mute."""

import asyncio
import os
import time

import pytest

from harness import recorded
from harness.ipc import Refused
from harness.looks import ALICE
from harness.media import hue_distance
from harness.plain import FFmpeg, GStreamer, Receiver, av1_pictures
from harness.process import until
from harness.sfud import free_ports

#: Whether to test all codecs.
FULL = os.environ.get("SFUD_RECORDING") == "full"


async def tap(room, stream: str, audio: int | None, video: int | None) -> dict:
    lines = {"audio": audio, "video": video}
    return await room.call(
        "tap.start", stream=stream,
        **{kind: {"address": f"127.0.0.1:{port}"} for kind, port in lines.items() if port},
    )  # fmt: skip


def are_alices(frames, least: int) -> None:
    counters = [frame.counter for frame in frames]
    assert len(frames) >= least, counters
    assert counters == sorted(counters), counters
    assert all(hue_distance(frame.hue, ALICE["hue"]) < 20 for frame in frames)


async def test_e3_ffmpeg_reads_the_description_and_decodes(room, peers, tmp_path):
    alice = await room.join(
        "alice", await peers("Chromium"), codec="VP8", **ALICE, width=640, height=360
    )
    port = free_ports(4)
    answer = await tap(room, alice.stream, port, port + 2)
    begin = time.time()
    ffmpeg = await FFmpeg(answer["sdp"], tmp_path).start()

    async def receives():
        return ffmpeg.video.exists()

    # It has detected the streams by then; it buffers a lot before it writes.
    await until(receives, "ffmpeg has video", 8)
    print(f"\nffmpeg writes after {time.time() - begin:.2f} s")
    await asyncio.sleep(2.5)
    await room.call("tap.stop", tap=answer["tap"])
    # It receives an RTCP BYE.
    assert await ffmpeg.ended() == 0, ffmpeg.log.read_text()
    video, audio = recorded.probe(ffmpeg.video), recorded.probe(ffmpeg.audio)
    assert (video.codec, audio.codec) == ("vp8", "opus")
    are_alices(recorded.frames(video), 20)
    heard = recorded.sounds(audio)[3:-3]
    assert len(heard) >= 10
    assert all(abs(one.tone - ALICE["tone"]) < 20 and one.level > 0.1 for one in heard), heard


@pytest.mark.parametrize("codec", ["H264", "VP9", "AV1"] if FULL else ["H264"])
async def test_e3_others_are_decoded(room, peers, tmp_path, codec):
    stack = "Chromium" if FULL else "aiortc"
    alice = await room.join("alice", await peers(stack), codec=codec, **ALICE)
    port = free_ports(2)
    if codec != "AV1":
        answer = await tap(room, alice.stream, None, port)
        # It begins to listen long after the first keyframe.
        await asyncio.sleep(0.5)
        async with GStreamer(port, codec, tmp_path) as gst:

            async def decodes():
                return len(gst.pictures()) >= 25

            await until(decodes, "GStreamer decodes", 10, every=0.3)
            are_alices(gst.pictures(), 25)
    else:
        with Receiver(port) as receiver:
            answer = await tap(room, alice.stream, None, port)
            await asyncio.sleep(4)
            are_alices(av1_pictures(receiver.packets(), tmp_path), 30)
    await room.call("tap.stop", tap=answer["tap"])


async def test_e3_a_mute_holds_and_leaves_no_gap(room, peers):
    alice = await room.join("alice", await peers("aiortc"), **ALICE, width=320, height=180)
    port = free_ports(4)
    with Receiver(port) as sound, Receiver(port + 2) as video, Receiver(port + 3) as control:
        answer = await tap(room, alice.stream, port, port + 2)
        await room.ipc.wait_for("tap.started", lambda data: data["tap"] == answer["tap"], 5)
        await asyncio.sleep(1.2)
        await room.call("participant.hardMute", participant="alice", media=["video"])
        before = video.packets()
        assert len(before) > 8 and len(sound.packets()) > 20
        await asyncio.sleep(0.6)
        assert video.packets() == [], "not one after the reply"
        assert len(sound.packets()) > 8
        await room.call("participant.hardUnmute", participant="alice", media=["video"])
        await asyncio.sleep(1)
        after = video.packets()
        assert len(after) > 5
        assert {packet.ssrc for packet in before + after} == {before[0].ssrc}
        assert {packet.type for packet in before + after} == {96}
        for one, other in zip(before + after, (before + after)[1:]):
            assert (other.number - one.number) & 0xFFFF == 1
        # Time continued in the pause: 0.6 s of 90 kHz, at least.
        assert (after[0].timestamp - before[-1].timestamp) & 0xFFFFFFFF > 50_000
        [listed] = (await room.call("tap.list"))["taps"]
        assert listed["video"]["address"] == f"127.0.0.1:{port + 2}"
        assert listed["packets"] > 30 and listed["refused"] == listed["dropped"] == 0

        await room.call("participant.leave", participant="alice")
        stopped = (await room.ipc.wait_for("tap.stopped", lambda data: True, 5)).data
        assert stopped["reason"] == "stream-ended" and stopped["tap"] == answer["tap"]
        reports = control.datagrams()
        # Sender reports, and at the end an empty report followed by a BYE.
        assert {data[1] for data in reports[:-1]} == {200} and len(reports) >= 3
        assert reports[-1][1] == 201 and reports[-1][-7] == 203
    with pytest.raises(Refused) as refused:
        await room.call("tap.stop", tap=answer["tap"])
    assert refused.value.code == 4012
