"""The table of all calls, in Markdown, and the lines of JSON behind it."""

import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: One call's figures with what names it: line, system, viewer, run.
Row = dict[str, Any]

#: Every column's heading, and how one call's figures become a number; None: there is none.
COLUMNS: list[tuple[str, Callable[[Row], float | None], str]] = [
    ("kbit/s", lambda row: row["bitrate"] / 1000, "{:,.0f}"),
    ("frames/s", lambda row: row["framesPerSecond"], "{:.1f}"),
    ("at best, %", lambda row: scaled(row["atBest"], 100), "{:.0f}"),
    ("switches", lambda row: row["switches"], "{:.0f}"),
    ("freezes", lambda row: row["freezes"], "{:.0f}"),
    ("frozen, s/min", lambda row: row["frozenPerMinute"], "{:.2f}"),
    ("longest gap, s", lambda row: row["longestGap"], "{:.2f}"),
    ("reaction, s", lambda row: slowest(row["reactions"]), "{:.2f}"),
    ("queue mean, ms", lambda row: scaled(row["queueMean"], 1000), "{:.0f}"),
    ("queue p95, ms", lambda row: scaled(row["queueP95"], 1000), "{:.0f}"),
    ("estimate, kbit/s", lambda row: scaled(row["estimateMedian"], 0.001), "{:,.0f}"),
]

NOTHING = "–"


def scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def slowest(reactions: list[float | None]) -> float | None:
    return max((one for one in reactions if one is not None), default=None)


def spread(values: list[float | None], form: str) -> str:
    """Returns the median of the runs, with the least and the most of them if they differ."""
    known = sorted(value for value in values if value is not None)
    if not known:
        return NOTHING
    middle, least, most = (
        form.format(value) for value in (statistics.median(known), known[0], known[-1])
    )
    return middle if least == most else f"{middle} ({least} to {most})"


def mean_sizes(rows: list[Row], key: str = "sizes") -> dict[str, float]:
    """Returns the mean share of the time at each height, tallest first."""
    heights = sorted({height for row in rows for height in row[key]}, key=int, reverse=True)
    return {
        height: statistics.mean(row[key].get(height, 0.0) for row in rows) for height in heights
    }


def sizes(rows: list[Row]) -> str:
    """Returns the shares that are at least half a percent, as text."""
    shares = mean_sizes(rows)
    told = [f"{height}: {share:.0%}" for height, share in shares.items() if share >= 0.005]
    return ", ".join(told) or NOTHING


def system(row: Row) -> str:
    """Returns the name of the system and of a viewer other than Chromium."""
    return row["system"] + ("" if row["viewer"] == "Chromium" else f", {row['viewer']}")


def groups(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """Returns the calls of each line and system, in the order in which they come; calls that
    failed are left out."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if "error" not in row:
            found.setdefault((row["line"], system(row)), []).append(row)
    return found


def markdown(rows: list[Row], conditions: dict[str, Any], about: dict[str, str]) -> str:
    """Returns the whole report; `about` describes each line."""
    text = ["# Lines", "", *described(conditions), ""]
    headings = ["line", "system", "time at each height", *(heading for heading, _, _ in COLUMNS)]
    text.append("| " + " | ".join(headings) + " |")
    text.append("| --- | --- | --- |" + " ---: |" * len(COLUMNS))
    last = None
    found = groups(rows)
    for name, which in sorted(found, key=lambda one: list(about).index(one[0])):
        several = found[name, which]
        cells = [spread([figure(row) for row in several], form) for _, figure, form in COLUMNS]
        title = f"**{name}** {about[name]}" if name != last else ""
        text.append("| " + " | ".join([title, which, sizes(several), *cells]) + " |")
        last = name
    text += ["", *warnings(rows)]
    return "\n".join(text).rstrip() + "\n"


def described(conditions: dict[str, Any]) -> list[str]:
    return [
        "Made by `make bench-lines`; [benchmarks/README.md](../../benchmarks/README.md#lines)"
        " explains the columns.",
        "",
        ", ".join(f"{name} {value}" for name, value in conditions.items()) + ".",
    ]


def warnings(rows: list[Row]) -> list[str]:
    """Returns what makes figures worth less: failed calls, and a machine that was too slow."""
    lines = []
    for row in rows:
        call = f"{row['line']}, {system(row)}, run {row['run']}"
        if "error" in row:
            lines.append(f"- {call} **failed**: {row['error']}")
        elif row["cpuLimited"] > 0.05 * row["seconds"]:
            lines.append(
                f"- {call}: the processor limited the camera's encoder for"
                f" {row['cpuLimited']:.0f} of {row['seconds']:.0f} s, so it says little"
            )
    return lines


def json_lines(rows: list[Row], conditions: dict[str, Any]) -> str:
    return "".join(json.dumps(one) + "\n" for one in [{"conditions": conditions}, *rows])


def read(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """Returns what `json_lines` wrote."""
    first, *rows = map(json.loads, path.read_text().splitlines())
    return rows, first["conditions"]
