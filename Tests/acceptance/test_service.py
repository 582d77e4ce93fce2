"""The daemon under a service manager: its notifications, and a stalled thread."""

import asyncio
import ctypes
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from harness.sfud import REPOSITORY

UNIT = REPOSITORY / "packaging/sfud.service"


class Manager:
    """A service manager that receives notifications, as systemd does (sd_notify(3))."""

    def __init__(self, address: str):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0"))
        self.socket.setblocking(False)

    async def heard(self) -> str:
        loop = asyncio.get_running_loop()
        return (await asyncio.wait_for(loop.sock_recv(self.socket, 4096), 5)).decode()

    def close(self) -> None:
        self.socket.close()


@pytest.mark.parametrize("kind", ["path", "abstract"])
async def test_k6_a_service_manager_hears_of_start_life_and_end(start_sfud, tmp_path, kind):
    address = str(tmp_path / "notify") if kind == "path" else f"@sfud-test-{os.getpid()}"
    manager = Manager(address)
    try:
        daemon = await start_sfud(
            under=("env", f"NOTIFY_SOCKET={address}", "WATCHDOG_USEC=20000000")
        )
        assert await manager.heard() == "READY=1"
        begin = time.monotonic()
        assert [await manager.heard(), await manager.heard()] == ["WATCHDOG=1"] * 2
        assert time.monotonic() - begin < 4
        await daemon.stop()
        said = await manager.heard()
        while said == "WATCHDOG=1":
            said = await manager.heard()
        assert said == "STOPPING=1"
    finally:
        manager.close()


async def test_k6_nobody_need_listen(start_sfud, tmp_path):
    daemon = await start_sfud(under=("env", f"NOTIFY_SOCKET={tmp_path / 'nobody'}"))
    async with daemon.client() as ipc:
        assert (await ipc.call("server.info"))["contract"] == 2
    await daemon.stop()


class Stopped:
    """A stopped thread, while the others of its process continue."""

    ATTACH, WAIT_ALL = 16, 0x40000000

    def __init__(self, pid: int, name: str):
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "comm").read_text().strip() == name:
                self.thread = int(task.name)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(self.ATTACH, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        os.waitpid(self.thread, self.WAIT_ALL)

    async def gone(self) -> None:
        """Awaits its end, which the process's own end waits for."""
        while os.waitpid(self.thread, self.WAIT_ALL | os.WNOHANG)[0] == 0:
            await asyncio.sleep(0.05)


async def test_k6_a_worker_that_stands_still_ends_the_daemon(start_sfud, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    daemon = await start_sfud(
        under=("env", f"NOTIFY_SOCKET={tmp_path / 'notify'}", "WATCHDOG_USEC=20000000")
    )
    begin = time.monotonic()
    stopped = Stopped(daemon.process.pid, "worker-1")
    async with daemon.client() as ipc:
        # The control thread continues: calls that need no other thread are still answered.
        assert (await ipc.call("server.info"))["workers"] == 2
        await asyncio.wait_for(stopped.gone(), 20)
        assert await asyncio.wait_for(daemon.process.wait(), 5) == 71
    seconds = time.monotonic() - begin
    print(f"a worker that stands still ends the daemon after {seconds:.1f} s")
    assert 8 < seconds < 15
    assert "sfud: workers: worker 1 stands still" in daemon.log_text()
    said = []
    while len(said) < 20:
        try:
            said.append(manager.socket.recv(4096))
        except BlockingIOError:
            break
    # The manager would have noticed, too: it gets no false notification meanwhile.
    assert said[0] == b"READY=1" and said.count(b"WATCHDOG=1") <= 4
    manager.close()


def test_the_unit_gives_away_little():
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=15", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 0, result.stdout
    print(result.stdout.splitlines()[-1])
