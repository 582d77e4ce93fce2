"""Child processes that are always ended."""

import asyncio
import contextlib
import os
import signal
from pathlib import Path


async def start(*command: str | Path, output: Path, **options) -> asyncio.subprocess.Process:
    """Starts a process in a group of its own; stdout and stderr go to the file `output` unless
    `options` say otherwise."""
    with output.open("ab") as file:
        return await asyncio.create_subprocess_exec(
            *map(str, command),
            **{"stdin": asyncio.subprocess.DEVNULL, "stdout": file, "stderr": file, **options},
            start_new_session=True,
        )


async def kill(process: asyncio.subprocess.Process) -> None:
    """Sends SIGKILL to the process and its children; returns when it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def until(condition, what: str, seconds: float = 10, every: float = 0.05):
    """Awaits the first true value of an asynchronous function; fails naming `what`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        value = await condition()
        if value:
            return value
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        await asyncio.sleep(every)
