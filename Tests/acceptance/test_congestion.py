"""Behavior of sfud when the network takes less than it sends.

Each test has a loopback interface of its own, in a network namespace: slower than the media, or
with a smaller MTU.
"""

import asyncio
import json
import re
import shutil
import subprocess
import sys

import pytest

from harness.bench import figures, finish, start_in
from harness.process import until
from harness.sfud import Sfud, free_ports

NAMESPACE = ("unshare", "--map-root-user", "--net")


def has_namespaces() -> bool:
    if not all(map(shutil.which, ("unshare", "nsenter", "ip", "tc"))):
        return False
    shaping = "ip link set lo up && tc qdisc add dev lo root tbf rate 1mbit burst 32kb limit 1mb"
    return subprocess.run([*NAMESPACE, "sh", "-c", shaping], capture_output=True).returncode == 0


pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(not has_namespaces(), reason="may not shape a network of its own"),
]


async def daemon(link: str, limits: dict, directory, *flags: str) -> Sfud:
    """Starts sfud with one worker on a loopback that `link` has set up."""
    config = directory / "sfud.json5"
    config.write_text(json.dumps({"limits": limits}))
    setup = f'ip link set lo up && {link} && exec "$0" "$@"'
    return await Sfud.start(
        "--config", str(config), *flags, workers=1, under=(*NAMESPACE, "sh", "-c", setup)
    )


def beside(sfud: Sfud) -> tuple[str, ...]:
    return ("nsenter", f"--target={sfud.process.pid}", "--user", "--net")


async def load(sfud: Sfud, *arguments) -> tuple[int, str, str]:
    """Runs `sfu-bench load` beside sfud."""
    command = ("sfu-bench", "load", "--ipc", sfud.ipc)
    return await finish(await start_in(beside(sfud), *command, *arguments))


async def send_queue_drops(sfud: Sfud, http: str) -> dict[tuple[str, str], int]:
    """Returns the datagrams that were not sent, by cause and content."""
    fetch = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
    page = await asyncio.create_subprocess_exec(
        *beside(sfud),
        *(sys.executable, "-c", fetch, f"http://{http}/metrics"),
        stdout=asyncio.subprocess.PIPE,
    )
    text = (await page.communicate())[0].decode()
    rows = r'^sfud_send_queue_drops_total{cause="(\w+)",content="(\w+)"} (\d+)$'
    return {(row[1], row[2]): int(row[3]) for row in re.finditer(rows, text, re.MULTILINE)}


async def counters(sfud: Sfud) -> dict:
    async with sfud.client() as ipc:
        return await ipc.call("server.stats")


@pytest.mark.seconds(60)
async def test_a_slow_network_costs_video_before_audio(tmp_path):
    slow = "tc qdisc add dev lo root tbf rate 20mbit burst 32kb limit 4mb"
    limits = {"sendBufferBytes": 65_536, "sendQueueDatagrams": 256}
    http = f"127.0.0.1:{free_ports()}"
    sfud = await daemon(slow, limits, tmp_path, "--http", http)
    try:
        status, output, errors = await load(sfud, "--viewers", 30, "--seconds", 5)
        print(output, errors)
        assert status == 0, errors
        drops = await send_queue_drops(sfud, http)
        print(drops)
        # Twice the link's capacity was sent: half of the video is lost, and nothing else.
        lost = drops["full", "video"] + drops["stale", "video"]
        assert lost > 1_000
        assert sum(drops.values()) - lost < lost / 100
        stats = await counters(sfud)
        full = sum(count for (cause, _), count in drops.items() if cause == "full")
        assert stats["drops"]["send-queue-full"] == full
        assert int(figures(output)["copies received"]) > 0
    finally:
        await sfud.stop()
        sfud.remove()


@pytest.mark.seconds(60)
async def test_what_waits_does_not_outlive_its_right(tmp_path):
    slow = "tc qdisc add dev lo root tbf rate 20mbit burst 32kb limit 4mb"
    limits = {"sendBufferBytes": 65_536, "sendQueueDatagrams": 256}
    http = f"127.0.0.1:{free_ports()}"
    sfud = await daemon(slow, limits, tmp_path, "--http", http)
    try:
        running = asyncio.create_task(load(sfud, "--viewers", 30, "--seconds", 6, "--room", "r"))
        async with sfud.client() as ipc:

            async def is_congested() -> bool:
                stats = await ipc.call("server.stats")
                return stats["drops"]["send-queue-full"] > 1_000

            await until(is_congested, "drops", seconds=30)
            streams = (await ipc.call("stream.list", room="r"))["streams"]
            gone = {"room": "r", "stream": streams[0]["stream"]}
            assert (await ipc.call("stream.unpublish", **gone))["fence"]["packets"] > 0
        drops = await send_queue_drops(sfud, http)
        assert drops["withdrawn", "video"] > 0
        assert drops["withdrawn", "other"] == 0
        await running
    finally:
        await sfud.stop()
        sfud.remove()


@pytest.mark.seconds(60)
async def test_a_small_mtu_is_served_without_segments(tmp_path):
    sfud = await daemon("ip link set lo mtu 1000", {}, tmp_path)
    try:
        status, output, errors = await load(sfud, "--viewers", 5, "--seconds", 3, "--check")
        print(output)
        assert status == 0, errors
        assert int(figures(output)["lost"]) == 0
        assert sfud.log_text().count("segmented sends refused") >= 1
        assert (await counters(sfud))["forwarding"]["last"]["p50"] > 0
    finally:
        await sfud.stop()
        sfud.remove()
