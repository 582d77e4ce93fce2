#!/usr/bin/env python3
"""How fast `sfuctl compose` makes one file of a session of four: recorded seconds a second.

The session is made with ffmpeg: four cameras that move, each with a tone; people come, one
leaves, talkers change. Exit status 1 if it takes longer than the session lasted.
"""

import argparse
import asyncio
import os
import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "Tests" / "acceptance"))

from harness import footage

PEOPLE = ["ana", "ben", "cem", "dia"]
LOOP = 20


def looped(session: footage.Session, path: str, seconds: int) -> None:
    """Makes a file of `LOOP` seconds as long as is asked, without encoding it anew."""
    file = session.directory / path
    short = file.with_name(f"short-{path}")
    file.rename(short)
    rounds = seconds // LOOP - 1
    footage.ffmpeg("-stream_loop", rounds, "-i", short, "-c", "copy", file)
    short.unlink()
    session.content["files"][-1]["duration"] = seconds


def make(directory: Path, seconds: int, size: str) -> footage.Session:
    session = footage.Session(directory, seconds)
    for number, who in enumerate(PEOPLE):
        start = number * LOOP
        # One leaves in the middle; whole loops keep the files simple.
        length = (seconds - start) // (2 if who == "cem" else 1) // LOOP * LOOP
        session.event(start, "joined", participant=who, name=who.title())
        source = f"testsrc2=s={size}:r={footage.RATE}"
        session.picture(who, who.title(), source, start, LOOP)
        looped(session, session.content["files"][-1]["path"], length)
        session.tone(who, who.title(), 300 + 100 * number, start, LOOP)
        looped(session, session.content["files"][-1]["path"], length)
        if who == "cem":
            session.event(start + length, "left", participant=who)
    for turn in range(seconds // 10):
        session.event(turn * 10, "talkers", talkers=[PEOPLE[turn % len(PEOPLE)]])
    return session.write()


def children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


async def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600, help="of the session (600)")
    parser.add_argument("--camera", default="640x360", help="size of each camera (640x360)")
    parser.add_argument("--size", default="1280x720", help="size of the file (1280x720)")
    parser.add_argument("--layouts", default="grid,stage,side-by-side")
    parser.add_argument("--keep", type=Path, help="leave session and files in this directory")
    options = parser.parse_args()
    directory = options.keep or Path(tempfile.mkdtemp(prefix="sfud-compose-"))
    status = 0
    try:
        session = make(directory / "rec-1", options.seconds, options.camera)
        for layout in options.layouts.split(","):
            output = directory / f"{layout}.mp4"
            before, begun = children(), time.monotonic()
            code, _, errors = await footage.compose(
                session.directory, "-o", output, "--layout", layout, "--size", options.size
            )
            took, spent = time.monotonic() - begun, children() - before
            if code:
                print(errors, file=sys.stderr)
                return 1
            # That it is whole is part of the figure.
            footage.ffmpeg("-i", output, "-f", "null", "-")
            print(
                f"{layout} {options.size}: {options.seconds} s of {len(PEOPLE)} in {took:.0f} s, "
                f"{options.seconds / took:.2f} x real time, {spent / options.seconds:.2f} CPU "
                f"seconds a second, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
            status |= took > options.seconds
    finally:
        if not options.keep:
            shutil.rmtree(directory)
    return status


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
