"""The daemon's operation: flags, configuration, exit statuses, signals, HTTP."""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness import process
from harness.ipc import request
from harness.looks import ALICE
from harness.room import Room
from harness.sfud import binary, free_ports

FLAGS = [
    "--config", "--ipc", "--udp", "--tcp", "--announce", "--workers", "--http", "--log-level",
    "--srtp-engine", "--liveness-seconds", "--timeout-seconds",
    "--keeper", "--check-config", "--version", "--help",
]  # fmt: skip

# Exit statuses of sysexits.h.
EX_CONFIG = 78
EX_OSERR = 71


def run(*arguments, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [binary(), *map(str, arguments)], capture_output=True, text=True, timeout=10, **options
    )


def refused(result: subprocess.CompletedProcess, status: int, name: str) -> None:
    """Checks for one clear line on stderr that names the key, and the exit status."""
    assert result.returncode == status, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and name in lines[0], result.stderr
    assert result.stdout == ""


def test_help_names_every_flag_and_its_default():
    result = run("--help")
    assert result.returncode == 0 and result.stderr == ""
    for flag in FLAGS:
        assert re.search(rf"^\s*{flag}\b", result.stdout, re.MULTILINE), flag
    assert "0.0.0.0:5004" in result.stdout
    assert result.stdout.count("default") >= 8


def test_version_is_one_line():
    result = run("--version")
    assert result.returncode == 0
    assert re.fullmatch(r"sfud \d+\.\d+\.\d+\S*\n", result.stdout), result.stdout


def test_a_good_configuration_passes(tmp_path):
    file = tmp_path / "sfud.json5"
    file.write_text(
        """// JSON5: comments, bare keys, single quotes, trailing commas.
        {
            ipc: '/tmp/some.sock',
            udp: ['127.0.0.1:5004', "[::1]:5004"],
            workers: 2,
            logLevel: 'warning',
            'liveness-seconds': 5,
            timeoutSeconds: 20, /* more than liveness */
        }
        """
    )
    result = run("--config", file, "--check-config")
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    "text, key",
    [
        ("{ nosuch: 1 }", "nosuch"),
        ("{ workers: 'many' }", "workers"),
        ("{ workers: 0 }", "workers"),
        ("{ udp: ['127.0.0.1'] }", "udp"),
        ("{ udp: ['127.0.0.1:70000'] }", "udp"),
        ("{ logLevel: 'loud' }", "log-level"),
        ("{ livenessSeconds: 40, timeoutSeconds: 30 }", "timeout-seconds"),
        ("{ limits: { nosuch: 1 } }", "nosuch"),
        ("{ workers: 2", "config"),
        ("[]", "config"),
    ],
)
def test_a_bad_configuration_is_refused(tmp_path, text, key):
    file = tmp_path / "sfud.json5"
    file.write_text(text)
    result = run("--config", file, "--check-config")
    assert result.returncode == EX_CONFIG, result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    # A key may be named as a flag or as in the file.
    assert key.replace("-", "") in lines[0].replace("-", "").lower(), result.stderr


@pytest.mark.parametrize(
    "arguments, key",
    [
        (["--nosuch"], "--nosuch"),
        (["--workers", "1", "--keeper"], "--keeper"),
        (["--keeper", "--keeper"], "--keeper"),
        (["--workers", "0"], "workers"),
        (["--workers"], "workers"),
        (["--udp", "nowhere"], "udp"),
        (["--srtp-engine", "rot13"], "srtp-engine"),
        (["--config", "/nonexistent/sfud.json5"], "config"),
    ],
)
def test_a_bad_flag_is_refused(arguments, key):
    refused(run(*arguments), EX_CONFIG, key)


def test_a_flag_wins_over_the_file(tmp_path):
    file = tmp_path / "sfud.json5"
    file.write_text("{ workers: 'many' }")
    refused(run("--config", file, "--workers", "1", "--check-config"), EX_CONFIG, "workers")
    file.write_text("{ udp: '127.0.0.1:5004' }")
    refused(run("--config", file, "--udp", "bad", "--check-config"), EX_CONFIG, "udp")


def test_a_port_in_use_is_told(tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        result = run("--ipc", tmp_path / "ipc", "--udp", f"127.0.0.1:{port}")
    assert result.returncode == EX_OSERR, result
    assert str(port) in result.stderr and "udp" in result.stderr
    assert "ready" not in result.stdout


def test_an_http_port_in_use_is_told(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = run(
            "--ipc", tmp_path / "ipc", "--udp", f"127.0.0.1:{free_ports(8)}",
            "--http", f"127.0.0.1:{port}",
        )  # fmt: skip
    assert result.returncode == EX_OSERR, result
    assert str(port) in result.stderr


async def test_the_ready_line(sfud):
    address, port = sfud.udp.rsplit(":", 1)
    match = re.fullmatch(r"ready ipc=(\S+) udp=(\S+)", sfud.ready_line)
    assert match, sfud.ready_line
    assert match[1] == str(sfud.ipc)
    assert match[2] == f"{address}:{port},{address}:{int(port) + 1}"
    mode = sfud.ipc.stat().st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o660
    async with sfud.client() as ipc:
        info = await ipc.call("server.info")
    assert info["contract"] == 2 and info["workers"] == 2 and info["draining"] is False
    assert info["udp"] == match[2].split(",")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_rooms_and_the_daemon(start_sfud, number):
    daemon = await start_sfud()
    async with daemon.client() as ipc:
        await ipc.call("events.subscribe")
        await ipc.call("room.create", room="r1")
        await ipc.call("participant.join", room="r1", participant="alice")
        begin = time.monotonic()
        daemon.process.send_signal(number)
        closed = await ipc.wait_for("room.closed")
        assert closed.data["reason"] == "shutdown"
        assert await asyncio.wait_for(daemon.process.wait(), 2) == 0
        assert time.monotonic() - begin < 2
    assert not daemon.ipc.exists()


async def test_all_hear_the_end_of_a_full_room_before_the_daemon_exits(start_sfud):
    """A room of 1,000 tells more than a socket takes at once, to a client that is slow to read."""
    daemon = await start_sfud()
    calls = [("events.subscribe", {}), ("room.create", {"room": "r1"})]
    calls += [
        ("participant.join", {"room": "r1", "participant": f"p{number}", "snapshot": False})
        for number in range(1_000)
    ]
    reader, writer = await asyncio.open_unix_connection(str(daemon.ipc), limit=1 << 20)
    for number, (method, params) in enumerate(calls):
        writer.write(request(number, method, **params))
        if number % 200 == 0 or number == len(calls) - 1:
            while json.loads(await reader.readline()).get("id") != number:
                pass
    daemon.process.send_signal(signal.SIGTERM)
    await asyncio.sleep(0.3)
    lines = [json.loads(line) for line in (await reader.read(-1)).splitlines()]
    writer.close()
    events = [line["params"] for line in lines if line.get("method") == "event"]
    left = {one["data"]["participant"] for one in events if one["event"] == "participant.left"}
    assert len(left) == 1_000 and events[-1]["event"] == "room.closed"
    assert await asyncio.wait_for(daemon.process.wait(), 2) == 0


async def test_it_ends_in_mid_call(start_sfud, peers):
    daemon = await start_sfud()
    async with daemon.client() as ipc:
        room = await Room(ipc).open()
        alice = await room.join("alice", await peers("aiortc"), slots=1, **ALICE)
        await alice.subscribe(alice.stream)
        await room.ipc.wait_for("subscription.connected")
        assert await daemon.stop() < 2


async def test_a_socket_left_behind_is_taken_over(start_sfud):
    daemon = await start_sfud()
    await process.kill(daemon.process)
    assert daemon.ipc.exists()
    child = await process.start(
        binary(), "--ipc", daemon.ipc, "--udp", daemon.udp, "--workers", "1",
        output=daemon.log, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    line = await asyncio.wait_for(child.stdout.readline(), 5)
    assert line.startswith(b"ready "), daemon.log_text()
    child.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(child.wait(), 2) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_j5_another_user_may_not_connect(start_sfud, tmp_path):
    """Only users who may write to the socket can control the daemon: its own user and group."""
    daemon = await start_sfud()
    nobody = 65534
    # Everybody may reach the socket itself.
    for parent in [daemon.ipc.parent, *daemon.ipc.parent.parents]:
        if not parent.stat().st_mode & stat.S_IXOTH and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | stat.S_IXOTH)
    attempt = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    for user, status in ((nobody, 1), (0, 0)):
        result = subprocess.run(
            ["python3", "-c", attempt, daemon.ipc], capture_output=True, text=True, timeout=10,
            user=user, group=user, extra_groups=[],
        )  # fmt: skip
        assert result.returncode == status, result.stderr
        assert status == 0 or "PermissionError" in result.stderr, result.stderr
    async with daemon.client() as ipc:
        assert await ipc.call("server.info")


def get(port: int, path: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.status, reply.headers["Content-Type"], reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, "", ""


async def test_health_and_metrics(start_sfud):
    port = free_ports()
    daemon = await start_sfud("--http", f"127.0.0.1:{port}")
    async with daemon.client() as ipc:
        await ipc.call("room.create", room="r1")
        status, _, _ = await asyncio.to_thread(get, port, "/healthz")
        assert status == 200
        status, kind, text = await asyncio.to_thread(get, port, "/metrics")
        assert status == 200 and kind.startswith("text/plain")
        samples = [line for line in text.splitlines() if line and not line.startswith("#")]
        assert "sfud_rooms 1" in samples, text
        for line in samples:
            assert re.fullmatch(r'[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? \S+', line), line
        names = {re.split(r"[{ ]", line)[0] for line in samples}
        described = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.MULTILINE))
        for histogram in re.findall(r"^# TYPE (\S+) histogram$", text, re.MULTILINE):
            described |= {f"{histogram}_{part}" for part in ("bucket", "sum", "count")}
        assert names <= described and "sfud_drops_total" in names
        assert (await asyncio.to_thread(get, port, "/nosuch"))[0] == 404
    await daemon.stop()


async def test_it_idles(sfud):
    def cpu_seconds() -> float:
        fields = Path(f"/proc/{sfud.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    # CPU time is measured here, so real time has to pass.
    begin, used = time.monotonic(), cpu_seconds()
    await asyncio.sleep(3)
    share = (cpu_seconds() - used) / (time.monotonic() - begin)
    assert share < 0.01, f"{share:.1%} of a core with nothing to do"


async def test_a_broken_line_leaves_other_connections_alone(sfud):
    async with sfud.client() as ipc:
        reader, writer = await asyncio.open_unix_connection(str(sfud.ipc))
        writer.write(b"{]\n" + b'{"jsonrpc":"2.0","id":7,"method":"server.info","params":{}}\n')
        broken = await asyncio.wait_for(reader.readline(), 5)
        assert b"-32700" in broken
        assert b'"id":7' in await asyncio.wait_for(reader.readline(), 5)
        writer.close()
        assert (await ipc.call("server.info"))["contract"] == 2


async def test_it_ends_cleanly_whenever_it_is_told_to(start_sfud):
    # Worker threads end while the process does, in any order.
    for _ in range(25):
        daemon = await start_sfud()
        async with daemon.client() as ipc:
            await ipc.call("room.create", room="r")
        await daemon.stop()
