"""An overloaded daemon, and a daemon flooded by unknown sources.

The overload is made by letting the process run for 2 ms of each 60: a light load on any machine is
then twice what the worker can handle.
"""

import asyncio
import contextlib
import json
import os
import signal

import pytest

from harness.bench import finish, start
from harness.ipc import IPC, Refused
from harness.sfud import Sfud


async def starve(daemon: Sfud) -> None:
    """Starves the process until cancelled."""
    process = daemon.process
    try:
        while True:
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(0.058)
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.002)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGCONT)


@pytest.mark.seconds(50)
async def test_i8_a_starved_worker_gives_up_video_and_has_it_back():
    daemon = await Sfud.start(workers=1)
    try:
        async with IPC(daemon.ipc) as ipc:
            await ipc.call("events.subscribe")
            await ipc.call("room.create", room="door")
            load = await start(
                *("sfu-bench", "load", "--ipc", daemon.ipc),
                *("--viewers", 120, "--seconds", 20),
            )
            try:
                while (await ipc.call("server.stats"))["rtpOut"] < 50_000:
                    await asyncio.sleep(0.1)
                hunger = asyncio.create_task(starve(daemon))
                try:
                    told = await ipc.wait_for(
                        "server.overload", lambda data: data["current"] == "video", seconds=12
                    )
                    assert told.data["worker"] == 0 and told.data["videoKept"] < 1
                    with pytest.raises(Refused) as refusal:
                        await ipc.call("participant.join", room="door", participant="late")
                finally:
                    hunger.cancel()
                    await asyncio.gather(hunger, return_exceptions=True)
                assert (refusal.value.code, refusal.value.reason) == (4029, "limit-reached")
                # Viewers that lose their video are notified, and nobody loses audio.
                off = await ipc.wait_for("subscription.videoDisabled")
                assert off.data["reason"] == "quality"
                await ipc.wait_for(
                    "server.overload", lambda data: data["current"] == "none", seconds=12
                )
                await ipc.wait_for("subscription.videoEnabled", seconds=5)
                await ipc.call("participant.join", room="door", participant="late")
                stats = await ipc.call("server.stats")
                assert stats["joinsRefused"] >= 1
                assert stats["workers"][0]["pressure"]["videoKept"] == 1
            finally:
                load.send_signal(signal.SIGINT)
                await finish(load)
    finally:
        await daemon.stop()


@pytest.mark.seconds(120)
@pytest.mark.skipif("SFUD_FLOODS" not in os.environ, reason="only with SFUD_FLOODS")
async def test_people_join_through_a_flood():
    status, output, errors = await finish(await start("sfu-bench", "flood", "--json"))
    print(output)
    assert status == 0, errors + output
    outcome = json.loads(output.splitlines()[-1])
    assert outcome["joinsFailed"] == 0
    assert outcome["strangerBytes"] == 0
