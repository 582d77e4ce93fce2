"""The daemon under test."""

import asyncio
import os
import re
import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

from harness import process
from harness.ipc import IPC

REPOSITORY = Path(__file__).resolve().parents[3]


def binary() -> Path:
    """Returns `SFUD_BINARY`, or the release build."""
    path = Path(os.environ.get("SFUD_BINARY", REPOSITORY / ".build/release/sfud"))
    assert path.exists(), f"{path} is missing: swift build -c release, or set SFUD_BINARY"
    return path


def free_ports(count: int = 1) -> int:
    """Returns the first of `count` consecutive UDP and TCP ports on 127.0.0.1 that are free."""
    while True:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            first = probe.getsockname()[1]
        if first + count < 65536 and all(is_free(first + offset) for offset in range(count)):
            return first


def is_free(port: int) -> bool:
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
    return True


class Sfud:
    """A running daemon on loopback, with directories of its own."""

    def __init__(self, directory: Path):
        self.directory = directory
        #: The path of the IPC socket.
        self.ipc = directory / "sfud.sock"
        self.log = directory / "sfud.log"
        self.ready_line = ""

    @classmethod
    async def start(
        cls,
        *flags: str,
        host: str = "127.0.0.1",
        workers: int = 2,
        under: tuple[str, ...] = (),
        keeper: bool = False,
        program: Path | None = None,
    ) -> "Sfud":
        """Starts it and awaits the ready line; `flags` are additional ones, and `under` is a
        command prefix that execs it. With `keeper` the process is the daemon's keeper. `program` is
        another version's."""
        daemon = cls(Path(tempfile.mkdtemp(prefix="sfud-")))
        daemon.udp = f"{host}:{free_ports(workers)}"
        daemon.process = await process.start(
            *under,
            program or binary(),
            *(["--keeper"] if keeper else []),
            "--ipc",
            daemon.ipc,
            "--udp",
            daemon.udp,
            "--workers",
            str(workers),
            "--log-level",
            "debug",
            # Recordings must not go to the test's working directory.
            *(() if "--recordings" in flags else ("--recordings", daemon.directory / "recordings")),
            *flags,
            output=daemon.log,
            stdout=asyncio.subprocess.PIPE,
        )
        try:
            line = await asyncio.wait_for(daemon.process.stdout.readline(), 10)
        except TimeoutError:
            line = b""
        daemon.ready_line = line.decode().rstrip("\n")
        if not daemon.ready_line.startswith("ready "):
            await process.kill(daemon.process)
            raise AssertionError(f"no ready line but {line!r}; its log:\n{daemon.log_text()}")
        return daemon

    def child(self) -> int:
        """Returns the process id of the keeper's daemon; 0 if there is none at the moment."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def client(self) -> IPC:
        """Returns a connection to its IPC, to be entered with `async with`."""
        return IPC(self.ipc)

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def log_tail(self, lines: int = 60) -> str:
        return "\n".join(self.log_text().splitlines()[-lines:])

    def resident_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024

    def processor_seconds(self) -> float:
        """Returns its CPU time in seconds, to a hundredth."""
        stat = Path(f"/proc/{self.process.pid}/stat").read_text()
        fields = stat.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    async def stop(self) -> float:
        """Sends SIGTERM; returns the seconds it took. Fails unless it exits 0 within 2 s."""
        begin = time.monotonic()
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = await asyncio.wait_for(self.process.wait(), 2)
        except TimeoutError:
            await process.kill(self.process)
            raise AssertionError(
                f"still there 2 s after SIGTERM; its log:\n{self.log_tail()}"
            ) from None
        assert status == 0, f"exit status {status}; its log:\n{self.log_tail()}"
        return time.monotonic() - begin

    def remove(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)
