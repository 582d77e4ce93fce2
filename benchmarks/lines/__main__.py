"""Compares a viewer's picture through sfud with that of a direct call, over the same lines.

Chromium publishes; a viewer watches it behind a simulated line, through sfud (simulcast) and then
directly (a single encoding). Every call has a free line first. Results go to a directory:
lines.md, lines.jsonl, lines.svg, and a plot of the first run of each line in timelines/. The exit
status is 1 if a call failed. Run it with benchmarks/lines/run, or `make bench-lines`.
"""

import argparse
import asyncio
import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from harness.sfud import REPOSITORY, binary

from lines import bars, calls, figures, plot, table
from lines.lines import LINES, Line, named

#: Seconds that it takes, besides the media, to start and end a call; measured.
AROUND_A_CALL = {"sfud": 5, "direct": 2}


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/lines/run",
        description=__doc__,
        epilog="lines:\n" + "\n".join(f"  {one.name:14} {one.about}" for one in LINES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lines", nargs="*", metavar="LINE", help="which lines (all)")
    parser.add_argument("--runs", type=int, default=3, help="calls of each kind (3)")
    parser.add_argument(
        "--seconds", type=float, default=30, help="of a line; of changing ones twice as many (30)"
    )
    parser.add_argument(
        "--lead", type=float, default=15, help="seconds on a free line before; 0: none (15)"
    )
    parser.add_argument(
        "--jitter-buffer", type=int, default=0, metavar="MS",
        help="milliseconds that viewers ask their jitter buffers to hold; 0: none asked for (0)",
    )  # fmt: skip
    parser.add_argument(
        "--viewers", choices=["chromium", "firefox", "both", "usual"], default="usual",
        help="usual: Chromium on all lines, on some of them Firefox as well",
    )  # fmt: skip
    parser.add_argument(
        "--systems", nargs="+", choices=calls.SYSTEMS, default=list(calls.SYSTEMS),
        help="what to compare (both)",
    )  # fmt: skip
    parser.add_argument(
        "--output", type=Path, default=REPOSITORY / ".build/lines", help="directory (.build/lines)"
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on with what is in the directory already"
    )
    options = parser.parse_args(given)
    try:
        options.lines = named(options.lines)
    except KeyError as error:
        parser.error(f"no line {error.args[0]}; --help lists them")
    if options.runs < 1 or options.seconds <= 0 or options.lead < 0:
        parser.error("--runs and --seconds have to be more than 0, --lead not less")
    if not 0 <= options.jitter_buffer <= 4000:
        parser.error("--jitter-buffer takes 0 to 4000")
    return options


def viewers(line: Line, which: str) -> list[str]:
    """Returns the browsers that watch on this line."""
    match which:
        case "chromium" | "firefox":
            return [which.title()]
        case "both":
            return ["Chromium", "Firefox"]
        case _:
            return ["Chromium", "Firefox"] if line.firefox else ["Chromium"]


def trials(options: argparse.Namespace) -> list[calls.Trial]:
    """Returns the calls in their order: the systems take turns on each line, and a run is over all
    lines, so that a slow quarter of an hour does not hit one line alone."""
    return [
        calls.Trial(
            line, system, viewer, run, options.seconds, options.lead, options.jitter_buffer
        )
        for run in range(1, options.runs + 1)
        for line in options.lines
        for viewer in viewers(line, options.viewers)
        for system in options.systems
    ]


def expected(several: list[calls.Trial]) -> float:
    """Returns about how many seconds the calls take."""
    return sum(one.seconds + one.lead + AROUND_A_CALL[one.system] for one in several)


def output_of(*command: str | Path) -> str:
    """Returns what a command prints; "unknown" if it is not there or fails."""
    try:
        done = subprocess.run(
            list(map(str, command)), capture_output=True, text=True, cwd=REPOSITORY, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def conditions(options: argparse.Namespace) -> dict[str, Any]:
    """Returns what a reader has to know of the figures, in the order to tell it."""
    chromium = shutil.which("chromium") or "google-chrome"
    firefox = shutil.which("firefox-esr") or "firefox"
    return {
        "date": datetime.date.today().isoformat(),
        "commit": output_of("git", "describe", "--always", "--dirty"),
        "version": output_of(binary(), "--version"),
        "browsers": " and ".join(output_of(one, "--version") for one in (chromium, firefox)),
        "cores": os.cpu_count(),
        "load before": round(os.getloadavg()[0], 1),
        "runs": options.runs,
        "seconds": options.seconds,
        "lead": options.lead,
        "jitter buffer": options.jitter_buffer,
    }


def joined(before: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """Returns the conditions of several sittings: of numbers the highest, of texts all."""
    together = before | now
    for name in before.keys() & now.keys():
        if isinstance(now[name], str):
            together[name] = ", ".join(dict.fromkeys([*before[name].split(", "), now[name]]))
        else:
            together[name] = max(before[name], now[name])
    return together


def remaining(several: list[calls.Trial], rows: list[table.Row]) -> list[calls.Trial]:
    """Returns the calls of which there are no figures yet."""
    made = {
        (row["line"], row["system"], row["viewer"], row["run"])
        for row in rows
        if "error" not in row
    }
    return [one for one in several if (one.line.name, one.system, one.viewer, one.run) not in made]


async def attempt(trial: calls.Trial, browsers: calls.Browsers) -> tuple[table.Row, Any]:
    """Returns the figures of a call and its recording, or the error that ended it."""
    row = {
        "line": trial.line.name,
        "system": trial.system,
        "viewer": trial.viewer,
        "run": trial.run,
        "seconds": trial.seconds,
    }
    try:
        # A browser that hangs ends one call, not the bench.
        async with asyncio.timeout(trial.lead + trial.seconds + 90):
            recording = await calls.make(trial, browsers)
    except Exception as error:
        text = str(error).splitlines() or [""]
        return row | {"error": f"{type(error).__name__}: {text[0]}"}, None
    return row | figures.figures(recording), recording


def progress(row: table.Row, number: int, of: int) -> str:
    title = f"[{number}/{of}] run {row['run']}, {row['line']}, {table.system(row)}:"
    if "error" in row:
        return f"{title} FAILED: {row['error']}"
    frozen = "unknown" if row["frozen"] is None else f"{row['frozen']:.2f} s"
    return (
        f"{title} {row['bitrate'] / 1000:,.0f} kbit/s, {table.sizes([row])}, frozen {frozen},"
        f" {row['switches']} switches, load {os.getloadavg()[0]:.1f}"
    )


async def run(options: argparse.Namespace) -> list[table.Row]:
    """Makes all calls; the files are complete after each one."""
    several = trials(options)
    told = conditions(options)
    rows: list[table.Row] = []
    earlier = options.output / "lines.jsonl"
    if options.resume and earlier.exists():
        before, told_before = table.read(earlier)
        rows = [row for row in before if "error" not in row]
        several = remaining(several, rows)
        told = joined(told_before, told)
    minutes = expected(several) / 60
    print(f"{len(several)} calls, about {minutes:.0f} minutes, to {options.output}", flush=True)
    (options.output / "timelines").mkdir(parents=True, exist_ok=True)
    seen: dict[tuple[str, str], dict[str, figures.Recording]] = {}
    browsers = calls.Browsers()
    try:
        for number, trial in enumerate(several, 1):
            row, recording = await attempt(trial, browsers)
            rows.append(row)
            print(progress(row, number, len(several)), flush=True)
            if recording and trial.run == 1:
                beside = seen.setdefault((trial.line.name, trial.viewer), {})
                beside[trial.system] = recording
                draw(options.output, trial, beside)
            write(options.output, rows, told)
    finally:
        await browsers.close()
    return rows


def draw(output: Path, trial: calls.Trial, beside: dict[str, figures.Recording]) -> None:
    suffix = "" if trial.viewer == "Chromium" else f"-{trial.viewer.lower()}"
    title = f"{trial.line.about}; viewer: {trial.viewer}"
    name = f"{trial.line.name}{suffix}.svg"
    (output / "timelines" / name).write_text(plot.timeline(title, beside))


def write(output: Path, rows: list[table.Row], told: dict[str, Any]) -> None:
    about = {line.name: line.about for line in LINES}
    (output / "lines.jsonl").write_text(table.json_lines(rows, told))
    text = table.markdown(rows, told, about) + "\n" + bars.markdown(rows, LINES)
    (output / "lines.md").write_text(text)
    (output / "lines.svg").write_text(plot.overview(rows, about))


def main() -> int:
    options = arguments(sys.argv[1:])
    try:
        rows = asyncio.run(run(options))
    except KeyboardInterrupt:
        # The files have the calls so far.
        return 130
    print((options.output / "lines.md").read_text())
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
