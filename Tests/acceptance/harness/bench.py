"""sfu-bench beside the daemon: its load, its report, and a room that must stay unharmed."""

import asyncio
import contextlib
import os
import re
from pathlib import Path

from harness import process
from harness.ipc import IPC
from harness.sfud import Sfud, binary


def tool(name: str) -> Path:
    variable = name.replace("-", "_").upper() + "_BINARY"
    path = Path(os.environ.get(variable, binary().with_name(name)))
    assert path.exists(), f"{path} is missing: swift build -c release, or set {variable}"
    return path


async def start(name: str, *arguments, **options) -> asyncio.subprocess.Process:
    return await start_in((), name, *arguments, **options)


async def start_in(
    inside: tuple[str, ...], name: str, *arguments, **options
) -> asyncio.subprocess.Process:
    """Starts a tool; `inside` is a command prefix that execs it."""
    return await asyncio.create_subprocess_exec(
        *inside,
        str(tool(name)),
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        **options,
    )


async def finish(process: asyncio.subprocess.Process) -> tuple[int, str, str]:
    try:
        output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode, output.decode(), errors.decode()


def figures(report: str) -> dict[str, str]:
    """Parses the report's rows: the label before the wide gap, and the value after it."""
    rows = (re.split(" {2,}", line, maxsplit=1) for line in report.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


@contextlib.asynccontextmanager
async def unharmed(daemon: Sfud, seconds: float = 2):
    """Runs the body while a room of five plays, which plays for so long after, and then checks the
    room.

    `--check` fails if a packet is lost, duplicated, late in number, or altered.
    """
    load = await start(
        *("sfu-bench", "load", "--ipc", daemon.ipc),
        *("--viewers", 4, "--settle", 0, "--until-input-ends", "--check"),
        stdin=asyncio.subprocess.PIPE,
    )
    try:
        async with IPC(daemon.ipc) as ipc:

            async def plays():
                return (await ipc.call("server.stats"))["rtpOut"] > 500

            await process.until(plays, "a room that plays", seconds=20)
        yield load
        await asyncio.sleep(seconds)
        assert load.returncode is None, "the room ended before the fault did"
    finally:
        load.stdin.close()
        status, output, errors = await finish(load)
    assert status == 0, f"{errors}\n{output}"
    report = figures(output)
    assert int(report["copies received"]) == int(report["copies expected"]) > 1000
    print(
        f"beside it {report['copies received']} copies, none lost,"
        f" read after {report['latency p50 p99 p99.9 max']}"
        f" (at their sockets {report['until at own sockets']})"
    )
