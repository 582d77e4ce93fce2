"""The daemon under a service manager: its notifications, and a stalled thread."""

import asyncio
import contextlib
import ctypes
import json
import os
import re
import socket
import subprocess
import time
from pathlib import Path

import pytest

from harness import process
from harness.sfud import REPOSITORY, binary

UNIT = REPOSITORY / "packaging/sfud.service"


class Manager:
    """A service manager that receives notifications, as systemd does (sd_notify(3))."""

    def __init__(self, address: str):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address.replace("@", "\0"))
        self.socket.setblocking(False)

    async def heard(self) -> str:
        """Awaits the next notification about the daemon's state."""
        loop = asyncio.get_running_loop()
        while True:
            text = (await asyncio.wait_for(loop.sock_recv(self.socket, 4096), 5)).decode()
            if not text.startswith("FDSTORE"):
                return text

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
        self.thread = self.find(pid, name)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(self.ATTACH, self.thread, None, None) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
        os.waitpid(self.thread, self.WAIT_ALL)

    @staticmethod
    def find(pid: int, name: str) -> int:
        """Returns a thread by its name, which it gives itself when it begins to run."""
        end = time.monotonic() + 5
        while time.monotonic() < end:
            for task in Path(f"/proc/{pid}/task").iterdir():
                if (task / "comm").read_text().strip() == name:
                    return int(task.name)
            time.sleep(0.01)
        raise AssertionError(f"no thread {name} within 5 s")

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
    while len(said) < 40:
        try:
            said.append(manager.socket.recv(4096))
        except BlockingIOError:
            break
    said = [text for text in said if not text.startswith(b"FDSTORE")]
    # The manager would have noticed, too: it gets no false notification meanwhile.
    assert said[0] == b"READY=1" and said.count(b"WATCHDOG=1") <= 4
    manager.close()


def test_the_unit_is_valid(tmp_path):
    unit = tmp_path / "sfud.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/sfud", str(binary())))
    result = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=30
    )
    assert (result.returncode, result.stderr) == (0, "")


# Starts systemd with the unit as its only one, in namespaces and control groups of its own.
SYSTEMD = """
set -eu
for group in /sys/fs/cgroup /sys/fs/cgroup/*; do
    if [ -e "$group/cgroup.procs" ] && mkdir "$group/$2" 2>/dev/null; then
        echo $$ >"$group/$2/cgroup.procs" || true
    fi
done
exec unshare --mount --pid --fork --kill-child --mount-proc --cgroup --uts --ipc --net sh -euc '
    mount --make-rprivate /
    mount -t tmpfs -o mode=755 tmpfs /run
    ip link set lo up
    mkdir /run/bin
    cp -r "$0/units" /run/units
    cp "$1" /run/bin/sfud
    export container=test SYSTEMD_UNIT_PATH=/run/units
    exec /lib/systemd/systemd --system --unit=test.target --log-target=null
' "$1" "$3"
"""


# Prints the answer to `server.info`.
CALL = """
import json, socket, sys
with socket.socket(socket.AF_UNIX) as ipc:
    ipc.settimeout(2)
    ipc.connect("/run/sfud/sfud.sock")
    call = {"jsonrpc": "2.0", "id": 1, "method": sys.argv[1], "params": json.loads(sys.argv[2])}
    ipc.send(json.dumps(call).encode() + b"\\n")
    print(ipc.makefile().readline())
"""


class Systemd:
    """A real systemd that runs the unit with `binary()`."""

    def __init__(self, directory: Path):
        self.group = f"sfud-test-{os.getpid()}"
        units = directory / "units"
        units.mkdir()
        text = UNIT.read_text().replace("/usr/local/bin/sfud", "/run/bin/sfud")
        text = re.sub(r"^(After|Wants)=.*\n", "", text, flags=re.MULTILINE)
        text = text.replace("[Unit]\n", "[Unit]\nDefaultDependencies=no\n")
        (units / "sfud.service").write_text(text)
        (units / "test.target").write_text(
            "[Unit]\nDefaultDependencies=no\nWants=sfud.service\n"
        )
        self.process = subprocess.Popen(
            ["sh", "-c", SYSTEMD, "sh", str(directory), self.group, str(binary())],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def first_process(self) -> int:
        """Returns the process id of systemd itself, 0 as long as there is none."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = children.read_text().split()
        return int(found[0]) if found else 0

    def inside(self, *command: str) -> str:
        enter = ["nsenter", "-t", str(self.first_process()), "-m", "-p", "-n", "-C"]
        result = subprocess.run([*enter, *command], capture_output=True, text=True, timeout=10)
        return result.stdout

    def shown(self) -> dict[str, str]:
        names = "MainPID,NFileDescriptorStore,NRestarts,ActiveState"
        lines = self.inside("systemctl", "show", "sfud", "-p", names).splitlines()
        return dict(line.split("=", 1) for line in lines)

    async def until(self, what: str, **expected: str) -> dict[str, str]:
        async def so():
            shown = self.shown()
            return shown if shown.items() >= expected.items() else None

        return await process.until(so, what, 10, 0.02)

    def sockets(self) -> set[str]:
        """Returns the inode numbers of the daemon's UDP sockets."""
        lines = self.inside("cat", "/proc/1/net/udp").splitlines()[1:]
        return {line.split()[9] for line in lines}

    def call(self, method: str, **params) -> dict:
        """Returns the result of a call, or nothing while the daemon does not answer."""
        line = self.inside("python3", "-c", CALL, method, json.dumps(params))
        return json.loads(line)["result"] if line else {}

    async def close(self) -> None:
        self.process.kill()
        self.process.wait()

        async def gone():
            folders = list(Path("/sys/fs/cgroup").glob(f"**/{self.group}/**/"))
            for folder in sorted(folders, reverse=True):
                with contextlib.suppress(OSError):
                    folder.rmdir()
            return not folders

        await process.until(gone, "its control groups are empty", 5)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a systemd of its own")
async def test_systemd_keeps_the_sockets_and_the_rooms(tmp_path):
    """A real systemd with the unit: a crash and an upgrade leave sockets and rooms as they are."""
    systemd = Systemd(tmp_path)
    try:
        try:
            before = await systemd.until("running", ActiveState="active")
        except AssertionError:
            if systemd.inside("systemctl", "is-system-running"):
                raise
            pytest.skip("systemd does not start in these namespaces")
        sockets = systemd.sockets()
        # Besides, there are the IPC socket, its lock, and the memory of the calls.
        assert int(before["NFileDescriptorStore"]) == 3 + len(sockets) >= 4
        assert systemd.call("room.create", room="r1")["room"] == "r1"
        begin = time.monotonic()
        systemd.inside("kill", "-KILL", before["MainPID"])
        after = await systemd.until("again", ActiveState="active", NRestarts="1")
        print(f"systemd has it running again after {time.monotonic() - begin:.2f} s")
        assert after["MainPID"] != before["MainPID"]
        assert systemd.sockets() == sockets
        info = systemd.call("server.info")
        assert systemd.call("room.get", room="r1")["seq"] == 1
        systemd.inside("systemctl", "reload", "sfud")

        async def replaced():
            return systemd.call("server.info").get("started", 0) > info["started"]

        await process.until(replaced, "the program is replaced", 5)
        assert systemd.call("room.get", room="r1")["seq"] == 1
        again = await systemd.until("running", ActiveState="active", MainPID=after["MainPID"])
        assert again["NRestarts"] == "1" and systemd.sockets() == sockets
    finally:
        await systemd.close()


def test_the_unit_gives_away_little():
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=15", str(UNIT)],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert result.returncode == 0, result.stdout
    print(result.stdout.splitlines()[-1])
