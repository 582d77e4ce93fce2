"""Fault injection into the daemon's system calls."""

import asyncio
import re
import shutil
from pathlib import Path

import pytest

from harness.sfud import Sfud


async def strace(daemon: Sfud, *inject: str):
    """Makes system calls of the daemon fail; skips the test where ptrace is not permitted."""
    if not shutil.which("strace"):
        pytest.skip("strace is not there")
    tracer = await asyncio.create_subprocess_exec(
        "strace", "-f", "-qq", "-o", "/dev/null", "-p", str(daemon.process.pid),
        *(part for one in inject for part in ("-e", f"inject={one}")),
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    status = Path(f"/proc/{daemon.process.pid}/status")
    for _ in range(50):
        if tracer.returncode is not None:
            pytest.skip(f"strace: {(await tracer.stderr.read()).decode()}")
        if not re.search(r"TracerPid:\s+0\n", status.read_text()):
            return tracer
        await asyncio.sleep(0.1)
    raise AssertionError("strace does not begin")
