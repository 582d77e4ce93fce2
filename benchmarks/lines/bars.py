"""What a line's picture has to reach, and whether it does, by the means of all runs."""

import statistics

from lines import table
from lines.lines import Line

#: Seconds a minute that a picture may be frozen beyond the direct call's.
MORE_THAN_DIRECT = 0.1
#: Share of the settled time with the highest layer that fits.
AT_BEST = 0.9
#: Seconds of an unchanging line in which the picture may change its size once; the change that
#: begins the line counts.
SECONDS_A_SWITCH = 30
#: Highest loss at which a picture must not freeze at all.
HARMLESS_LOSS = 0.05


def only_loses(line: Line) -> bool:
    """Whether the line loses packets, few enough to be repaired, and does nothing else."""
    settings = set(line.steps[0][1])
    little = line.steps[0][1].get("loss", 0) <= HARMLESS_LOSS
    return len(line.steps) == 1 and not line.trace and settings <= {"loss", "burst"} and little


def is_constant(line: Line) -> bool:
    return len(line.steps) == 1 and not line.trace


def mean(rows: list[table.Row], key: str) -> float | None:
    known = [row[key] for row in rows if row[key] is not None]
    return statistics.mean(known) if known else None


def verdict(line: Line, ours: list[table.Row], direct: list[table.Row]) -> list[str]:
    """Returns the bars that were missed, in words."""
    missed = []
    frozen, others = mean(ours, "frozenPerMinute"), mean(direct, "frozenPerMinute")
    if frozen is not None:
        most = (others or 0) + MORE_THAN_DIRECT
        if only_loses(line):
            most = 0
        # Rounded as the table shows it.
        if round(frozen, 2) > round(most, 2):
            missed.append(f"frozen for more than {most:.2f} s/min")
    best = mean(ours, "atBest")
    if best is not None and best < AT_BEST:
        missed.append(f"at best for less than {AT_BEST:.0%}")
    switches = mean(ours, "switches")
    if is_constant(line) and switches is not None:
        most = statistics.mean(row["seconds"] for row in ours) / SECONDS_A_SWITCH
        if switches > most:
            missed.append(f"more than {most:g} switch{'' if most == 1 else 'es'}")
    return missed


def markdown(rows: list[table.Row], lines: list[Line]) -> str:
    """Returns a table of means beside the bars, and a line that counts them."""
    text = [
        "## Bars", "",
        "Means of the runs. Frozen no longer than the direct call and"
        f" {MORE_THAN_DIRECT} s a minute, on lines that only lose up to {HARMLESS_LOSS:.0%} not at"
        f" all; {AT_BEST:.0%} of the settled time at the highest layer that fits; on unchanging"
        f" lines one switch in {SECONDS_A_SWITCH} s.", "",
        "| line | viewer | runs | frozen, s/min | direct | at best, % | switches | missed |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]  # fmt: skip
    made, good = 0, 0
    for line in lines:
        for viewer in ("Chromium", "Firefox"):
            of = [
                row for row in rows
                if "error" not in row and (row["line"], row["viewer"]) == (line.name, viewer)
            ]  # fmt: skip
            ours = [row for row in of if row["system"] == "sfud"]
            direct = [row for row in of if row["system"] == "direct"]
            if not ours or not direct:
                continue
            missed = verdict(line, ours, direct)
            made, good = made + 1, good + (not missed)
            cells = [
                f"**{line.name}**", viewer, str(len(ours)),
                number(mean(ours, "frozenPerMinute"), "{:.2f}"),
                number(mean(direct, "frozenPerMinute"), "{:.2f}"),
                number(table.scaled(mean(ours, "atBest"), 100), "{:.0f}"),
                number(mean(ours, "switches"), "{:.1f}"),
                "; ".join(missed),
            ]  # fmt: skip
            text.append("| " + " | ".join(cells) + " |")
    return "\n".join([*text, "", f"All bars are reached on {good} of {made}."]) + "\n"


def number(value: float | None, form: str) -> str:
    return table.NOTHING if value is None else form.format(value)
