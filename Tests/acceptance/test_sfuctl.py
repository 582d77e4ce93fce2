"""The operator's command line against a daemon with a call in it."""

import asyncio
import json
import os

from harness import expect
from harness.looks import ALICE
from harness.sfud import binary


async def sfuctl(*arguments, **environment) -> tuple[int, str, str]:
    child = await asyncio.create_subprocess_exec(
        str(binary().with_name("sfuctl")),
        *map(str, arguments),
        env=os.environ | {name: str(value) for name, value in environment.items()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(child.communicate(), 60)
    return child.returncode, output.decode(), errors.decode()


async def test_rooms_room_and_stats_show_the_call(sfud, room, peers):
    alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
    seen = await alice.subscribe(alice.stream)
    await expect.moving(alice.peer, seen.video, ALICE["hue"], seen.since)

    status, output, errors = await sfuctl("--ipc", sfud.ipc, "rooms")
    assert (status, errors) == (0, "")
    assert room.id in output and "ongoing" in output

    status, output, errors = await sfuctl("--ipc", sfud.ipc, "room", room.id)
    assert (status, errors) == (0, "")
    assert "alice" in output and "connected" in output and alice.stream in output

    status, output, errors = await sfuctl("--ipc", sfud.ipc, "--json", "stats")
    assert (status, errors) == (0, "")
    assert json.loads(output)["rtpForwarded"] > 0

    status, output, _ = await sfuctl("--ipc", sfud.ipc, "stats")
    assert status == 0 and "forwarded" in output


async def test_what_sfud_refuses_is_one_line(sfud):
    status, output, errors = await sfuctl("--ipc", sfud.ipc, "room", "nowhere")
    assert (status, output) == (1, "")
    assert len(errors.splitlines()) == 1 and "nowhere" in errors


async def test_without_a_daemon_it_says_so(tmp_path):
    status, _, errors = await sfuctl("--ipc", tmp_path / "none.sock", "rooms")
    assert status == 69
    assert len(errors.splitlines()) == 1 and "none.sock" in errors


async def test_the_environment_names_the_socket(sfud, tmp_path):
    status, output, errors = await sfuctl("--json", "info", SFUD_IPC=sfud.ipc)
    assert (status, errors) == (0, "")
    assert json.loads(output)["contract"] == 2

    status, _, errors = await sfuctl("--ipc", tmp_path / "none.sock", "info", SFUD_IPC=sfud.ipc)
    assert status == 69 and "none.sock" in errors


async def test_output_that_cannot_be_written_is_no_success(sfud):
    with open("/dev/full", "w") as full:
        child = await asyncio.create_subprocess_exec(
            binary().with_name("sfuctl"), "--ipc", sfud.ipc, "info",
            stdout=full, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, errors = await child.communicate()
    assert child.returncode == 74 and b"cannot write" in errors, errors


async def test_help_names_every_command():
    status, output, _ = await sfuctl("--help")
    assert status == 0
    for command in ("rooms", "room ROOM", "stats", "info", "watch", "close ROOM", "call METHOD"):
        assert command in output
