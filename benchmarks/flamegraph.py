#!/usr/bin/env python3
"""Draws a flame graph of what `perf record --call-graph dwarf` has written.

Each box is a function, as wide as its share of the samples; what it calls is above it. The lowest
boxes are threads.

    perf record -a -F 1999 --call-graph dwarf,16384 -- .build/release/sfu-bench p10 --rounds 1
    benchmarks/flamegraph.py perf.data --threads sfud worker-0 --output joins.svg
"""

import argparse
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

WIDTH = 1_200
ROW = 17
#: Pixels of a character.
LETTER = 6.2
#: Frames that say nothing: what every stack begins with, and the containers of `Codable`.
NOISE = re.compile(
    r"^(start_thread|clone3?|_start|main|sfud_main|__libc_start\S*|Thread\.main|NSThreadStart"
    r"|dispatch thunk of .*|_?(Un)?[Kk]eyed(Stream|EncodingContainer).*|Encodable.*"
    r"|(StreamEncoder|ValueWriter|Array<A>|Array)\.encode.*|(entry|do)_[Ss][Yy][Ss]\S*)$"
)
#: Box colours by depth.
COLOURS = ["#f6c177", "#f2b36b", "#eea55f", "#f0bd84"]


class Box:
    """A function in its callers' box, and what it calls."""

    def __init__(self) -> None:
        self.samples = 0
        self.inner: dict[str, Box] = {}

    def add(self, frames: list[str]) -> None:
        box = self
        box.samples += 1
        for frame in frames:
            box = box.inner.setdefault(frame, Box())
            box.samples += 1


def stacks(data: Path, threads: list[str], time: str | None) -> Iterator[list[str]]:
    """Yields the stack of each sample, its thread first."""
    command = ["perf", "script", "-i", str(data), "-F", "comm,ip,sym,dso", "--no-inline"]
    command += ["--comms", ",".join(threads)]
    if time:
        command += ["--time", time]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    plain = subprocess.run(
        ["swift", "demangle", "-simplified"], input=text, capture_output=True, text=True, check=True
    ).stdout
    for sample in filter(str.strip, plain.split("\n\n")):
        head, *lines = sample.strip("\n").split("\n")
        frames = [short(line.split(maxsplit=1)[-1].strip()) for line in reversed(lines)]
        named = [name for name in frames if name and not NOISE.match(name)]
        yield [head.strip()] + [name for name, _ in itertools.groupby(named)]


def short(frame: str) -> str:
    """Shortens a frame to what tells it from others: a library's name if it has no symbols."""
    name, _, library = frame.rpartition(" (")
    if name.startswith(("[unknown]", "0x")):
        return re.sub(r"\.so.*|\)$|^.*/|\[unknown\]", "", library)
    name = re.sub(r"^(specialized |protocol witness for |static |closure #\d+ in )+", "", name)
    return re.sub(r"\(.*", "", name.split(" in conformance ")[0])


def draw(root: Box, least: float) -> str:
    boxes: list[str] = []
    deepest = 0

    def place(box: Box, name: str, left: float, depth: int) -> None:
        nonlocal deepest
        width = WIDTH * box.samples / root.samples
        if width < least:
            return
        deepest = max(deepest, depth)
        share = f"{100 * box.samples / root.samples:.1f} %"
        letters = int((width - 4) / LETTER)
        label = name if len(name) <= letters else name[: letters - 1] + "…" if letters > 3 else ""
        boxes.append(
            f'<g transform="translate({left:.1f} {{{depth}}})">'
            f"<title>{escape(name)}: {share}</title>"
            f'<rect width="{max(0.5, width - 0.5):.1f}" height="{ROW - 1}" '
            f'fill="{COLOURS[depth % len(COLOURS)]}"/>'
            f'<text x="3" y="12">{escape(label)}</text></g>'
        )
        inside = left
        for inner, child in sorted(box.inner.items()):
            place(child, inner, inside, depth + 1)
            inside += WIDTH * child.samples / root.samples

    left = 0.0
    for thread, box in sorted(root.inner.items()):
        place(box, thread, left, 0)
        left += WIDTH * box.samples / root.samples
    height = ROW * (deepest + 1)
    placed = "\n".join(
        re.sub(r"\{(\d+)\}", lambda row: str(height - ROW * (int(row[1]) + 1)), box, count=1)
        for box in boxes
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n{placed}\n</svg>\n'
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="what perf record has written")
    parser.add_argument("--threads", nargs="+", required=True, help="names of threads to show")
    parser.add_argument("--time", help="only from START,END, in perf's seconds")
    parser.add_argument("--least", type=float, default=2.0, help="pixels of the smallest box (2)")
    parser.add_argument("--deepest", type=int, default=24, help="rows at most (24)")
    parser.add_argument("--output", type=Path, required=True, help="the SVG to write")
    options = parser.parse_args()
    root = Box()
    for frames in stacks(options.data, options.threads, options.time):
        root.add(frames[: options.deepest])
    if root.samples == 0:
        print("flamegraph: no samples of these threads", file=sys.stderr)
        return 1
    options.output.write_text(draw(root, options.least))
    return 0


if __name__ == "__main__":
    sys.exit(main())
