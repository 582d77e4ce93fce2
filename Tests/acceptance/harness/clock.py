"""A wall clock for a single process that a test may set."""

import asyncio
import shutil
import struct
from pathlib import Path


class WallClock:
    """A settable clock: `under` is the process's command prefix; `seconds` is the offset."""

    def __init__(self, directory: Path):
        self._library = directory / "clock.so"
        self._offset = directory / "offset"
        self.seconds = 0

    async def make(self) -> "WallClock":
        compiler = shutil.which("clang") or shutil.which("cc")
        assert compiler, "clang is part of the Swift toolchain, and not to be found"
        source = Path(__file__).with_name("clock.c")
        building = await asyncio.create_subprocess_exec(
            *(compiler, "-O1", "-fPIC", "-shared", "-o", self._library, source)
        )
        assert await building.wait() == 0
        return self

    @property
    def under(self) -> tuple[str, ...]:
        return ("env", f"LD_PRELOAD={self._library}", f"WALL_CLOCK_OFFSET={self._offset}")

    @property
    def seconds(self) -> int:
        return self._seconds

    @seconds.setter
    def seconds(self, seconds: int) -> None:
        self._seconds = seconds
        # In place, because the process has the file mapped.
        with open(self._offset, "r+b" if self._offset.exists() else "wb") as file:
            file.write(struct.pack("=q", seconds * 1_000_000_000))
