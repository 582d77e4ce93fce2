"""Live streams: real publishers, a real nginx, and its viewers."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest

from harness.demo import Tab
from harness.ipc import Refused
from harness.looks import ALICE, BOB
from harness.media import hue_distance
from harness.process import until
from harness.room import Room
from harness.rtmp import Nginx, Viewer, probe, sounds

pytestmark = pytest.mark.alone

KEY = "s3cr3t-k3y"


def shows(look):
    return lambda frame: frame.hue >= 0 and hue_distance(frame.hue, look["hue"]) < 20


def near(hue: float, *looks: dict) -> int | None:
    """Returns the publisher whose look has this hue."""
    found = (index for index, look in enumerate(looks) if hue_distance(hue, look["hue"]) < 20)
    return next(found, None) if hue >= 0 else None


async def told(ipc, event: str, seconds: float = 10) -> dict:
    return (await ipc.wait_for(event, lambda data: True, seconds)).data


def streamers() -> list[int]:
    """Returns the processes that encode."""
    return [int(path.split("/")[2]) for path in processes("--streamer") if path.endswith("line")]


def processes(part: str) -> list[str]:
    """Returns the command-line and environment files of all processes that contain `part`."""
    found = []
    for name in ("cmdline", "environ"):
        for path in Path("/proc").glob(f"[0-9]*/{name}"):
            try:
                text = path.read_bytes()
            except OSError:
                continue
            # Viewers have to name the stream that they watch.
            if part.encode() in text and not text.startswith((b"ffmpeg", b"ffprobe")):
                found.append(str(path))
    return found


@pytest.fixture
def nginx(loop, tmp_path):
    server = loop.run_until_complete(Nginx(tmp_path).start())
    yield server
    loop.run_until_complete(server.stop())


@pytest.mark.slow
@pytest.mark.seconds(90)
async def test_e29_a_room_is_streamed_and_survives_a_restart(sfud, room, peers, nginx):
    alice = await room.join(
        "alice", await peers("Chromium"), **ALICE, speech=True, width=640, height=360
    )
    bob = await room.join("bob", await peers("aiortc"), **BOB, speech=True, fps=20)
    await alice.peer.speak()
    url = nginx.url(KEY)
    begin = time.monotonic()
    answer = await room.call("streaming.start", url=url, width=640, height=360)
    print(f"started after {time.monotonic() - begin:.2f} s")
    news = await told(room.ipc, "streaming.started")
    assert news == {
        "streaming": answer["streaming"], "layout": "stage", "width": 640, "height": 360,
    }
    shown = await room.call("room.get")
    assert shown["streaming"] == answer["streaming"]
    assert shown["streamings"] == [answer["streaming"]]
    with pytest.raises(Refused) as refused:
        await room.call("streaming.start", url=url)
    assert refused.value.code == 5122

    streams = await probe(url)
    assert streams["video"]["codec_name"] == "h264" and streams["audio"]["codec_name"] == "aac"
    assert (streams["video"]["width"], streams["video"]["height"]) == (640, 360)
    assert streams["audio"]["sample_rate"] == "48000" and streams["audio"]["channels"] == 2

    async with Viewer(url) as viewer:
        await viewer.sees(shows(ALICE), "alice, who speaks", 10)
        await alice.peer.speak(False)
        await bob.peer.speak()
        begin = time.monotonic()
        await viewer.sees(shows(BOB), "bob, who speaks now", 10)
        change = time.monotonic() - begin
        await asyncio.sleep(1)
        delays = [
            frame.time - bob.peer.drawn(frame.counter) for frame in viewer.frames[-10:]
        ]
        print(f"talker seen after {change:.2f} s, delay {max(delays):.2f} s")
        assert change <= 2
        assert 0 < max(delays) <= 3

        # A mute is visible at once: only alice has a picture then.
        await room.call("participant.hardMute", participant="bob", media=["video"])
        await viewer.sees(shows(ALICE), "alice, as bob is muted", 5)
        await room.call("participant.hardUnmute", participant="bob", media=["video"])
        await viewer.sees(shows(BOB), "bob again", 5)

    await nginx.stop()
    assert (await told(room.ipc, "streaming.interrupted"))["cause"] == "connection-lost"
    await asyncio.sleep(float(os.environ.get("SFUD_RESTART_SECONDS", 4)))
    await nginx.start()
    begin = time.monotonic()
    await told(room.ipc, "streaming.resumed")
    print(f"resumed after {time.monotonic() - begin:.2f} s")
    async with Viewer(url) as viewer:
        await viewer.sees(shows(BOB), "bob, after the restart", 10)

    assert processes(KEY) == []
    assert len(streamers()) == 1, "the process is there, and names no key"
    await room.call("streaming.stop")
    stopped = await told(room.ipc, "streaming.stopped")
    assert stopped == {"streaming": answer["streaming"], "reason": "requested"}
    assert streamers() == []
    assert (await room.call("room.get")).get("streaming") is None
    assert KEY not in sfud.log_text()
    assert KEY not in str(room.ipc.events)


async def test_e29_grid_and_servers_that_do_not_take_it(room, peers, nginx):
    for url, cause in [
        (nginx.url(KEY, "closed"), "refused"),
        ("rtmp://127.0.0.1:1/live/" + KEY, "unreachable"),
    ]:
        with pytest.raises(Refused) as refused:
            await room.call("streaming.start", url=url)
        assert refused.value.code == 4508 and refused.value.message.endswith(cause)
    assert (await room.call("room.get")).get("streaming") is None

    await room.join("alice", await peers("Chromium"), codec="VP9", **ALICE, width=640, height=360)
    await room.join("bob", await peers("Chromium"), codec="H264", **BOB, width=640, height=360)
    urls = [nginx.url("one"), nginx.url("two")]
    for url in urls:
        await room.call(
            "streaming.start", url=url, layout="grid", width=320, height=180, bitrate=400_000
        )
    for url in urls:
        async with Viewer(url) as viewer:
            await viewer.sees(
                lambda frame: {near(frame.left, ALICE, BOB), near(frame.right, ALICE, BOB)}
                == {0, 1},
                "both in one picture", 10,
            )
    await room.call("room.close")
    reasons = {(await told(room.ipc, "streaming.stopped"))["reason"] for _ in urls}
    assert reasons == {"room-closed"}


async def test_e29_a_process_that_fails_is_started_anew(sfud, room, peers, nginx):
    await room.join("alice", await peers("aiortc"), **ALICE)
    url = nginx.url(KEY)
    await room.call("streaming.start", url=url, width=320)
    [process] = streamers()
    os.kill(process, signal.SIGKILL)
    assert (await told(room.ipc, "streaming.interrupted"))["cause"] == "streamer-failed"
    await told(room.ipc, "streaming.resumed")
    async with Viewer(url) as viewer:
        await viewer.sees(shows(ALICE), "alice, from another process", 10)
    heard = await sounds(url, 2)
    assert len(heard) >= 15
    assert all(abs(one.tone - ALICE["tone"]) < 20 and one.level > 0.1 for one in heard), heard
    [another] = streamers()
    assert another != process

    begin = time.monotonic()
    await sfud.stop()
    assert (await told(room.ipc, "streaming.stopped"))["reason"] == "shutdown"

    async def over():
        return not streamers()

    await until(over, "no process stays behind", 1)
    print(f"all is over after {time.monotonic() - begin:.2f} s")


async def test_e29_rtmps_goes_to_who_proves_its_name_alone(start_sfud, peers, tmp_path):
    nginx = await Nginx(tmp_path, encrypted=True).start()
    authority = str(tmp_path / "ca.pem")
    url = f"rtmps://localhost:{nginx.tls_port}/live/{KEY}"
    try:
        for flags, wrong in [
            ([], url),  # Signed by nobody whom the system trusts.
            (["--streaming-ca", authority], url.replace("localhost", "127.0.0.1")),
        ]:
            daemon = await start_sfud(*flags)
            async with daemon.client() as ipc:
                room = await Room(ipc).open()
                with pytest.raises(Refused) as refused:
                    await room.call("streaming.start", url=wrong)
                assert refused.value.code == 4508
                assert refused.value.message.endswith("refused")
                assert "PUBLISH" not in (tmp_path / "access.log").read_text()
                if not flags:
                    continue
                await room.join("alice", await peers("aiortc"), **ALICE)
                await room.call("streaming.start", url=url, width=320)
                async with Viewer(nginx.url(KEY)) as viewer:
                    await viewer.sees(shows(ALICE), "alice, who came encrypted", 10)
                await room.call("streaming.stop")
                assert KEY not in daemon.log_text()
    finally:
        await nginx.stop()


@pytest.mark.demo("--allow-streaming", "--streaming-hosts", "127.0.0.1")
async def test_e29_a_moderator_streams_from_the_page(enter, nginx, sfud):
    mia: Tab = await enter("Mia", moderates=True, people=1)
    await mia.joined()
    ben = await enter("Ben")
    await ben.joined()
    await mia.click("Stream live")
    await mia.page.evaluate(
        f"document.querySelector('#question input').value = '{nginx.url(KEY)}'"
    )
    await mia.click("Stream")
    for tab in (mia, ben):
        await tab.reads("streamed live")
    await mia.click("Stop streaming")

    async def over():
        return not await ben.demo("roomState.streaming")

    await until(over, "the stream has stopped")
    assert KEY not in sfud.log_text()
