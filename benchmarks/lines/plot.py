"""Two plots: the sizes of the picture on every line, and one call over time."""

import statistics

from lines import figures, table
from lines.svg import SVG

#: Colours by the picture's height, from this height on; the tallest that it reaches counts.
HEIGHTS = [
    (720, "#1b7837"), (540, "#5aae61"), (360, "#a6dba0"), (270, "#fdd49e"), (1, "#fc8d59"),
]  # fmt: skip
NO_PICTURE = "#d9d9d9"
FROZEN = "#b2182b"
SYSTEMS = {"sfud": "#2166ac", "direct": "#e08214"}


def color(height: int) -> str:
    return next(color for least, color in HEIGHTS if height >= least)


def overview(rows: list[table.Row], about: dict[str, str]) -> str:
    """Returns a bar for each line and system: the share of the time at each height; beside it how
    long the picture was frozen, and how often its size changed."""
    found = table.groups(rows)
    order = sorted(found, key=lambda one: list(about).index(one[0]))
    names = list(dict.fromkeys(name for name, _ in order))
    left, wide, step, gap = 430, 520, 17, 9
    svg = SVG(left + wide + 180, 84 + step * len(order) + gap * len(names) + 16)
    svg.text("Size of the picture, and how long it was frozen", 20, 28, size=16, bold=True)
    legend(svg, left, 46)
    svg.text("frozen, s/min", left + wide + 60, 62, "middle")
    svg.text("switches", left + wide + 135, 62, "middle")
    y, last = 70.0, None
    for name, which in order:
        several = found[name, which]
        if name != last:
            y += gap
            svg.text(about[name], left - 120, y + 12, "end")
            last = name
        svg.text(which, left - 8, y + 12, "end", color="#555")
        bar(svg, several, left, y, wide, step - 3)
        for key, form, x, accent in [
            ("frozenPerMinute", "{:.2f}", left + wide + 60, FROZEN),
            ("switches", "{:.0f}", left + wide + 135, "#222"),
        ]:
            known = [row[key] for row in several if row[key] is not None]
            value = statistics.median(known) if known else None
            text = table.NOTHING if value is None else form.format(value)
            svg.text(text, x, y + 12, "middle", color=accent if value else "#999")
        y += step
    return svg.file()


def bar(svg: SVG, rows: list[table.Row], x: float, y: float, width: float, height: float) -> None:
    svg.bar(x, y, width, height, NO_PICTURE)
    for tall, share in table.mean_sizes(rows).items():
        svg.bar(x, y, share * width, height, color(int(tall)))
        x += share * width


def legend(svg: SVG, x: float, y: float) -> None:
    names = [(f"{least} lines" if least > 1 else "fewer", color) for least, color in HEIGHTS]
    for name, color_ in [*names, ("no picture", NO_PICTURE)]:
        svg.bar(x, y - 10, 12, 12, color_)
        svg.text(name, x + 17, y)
        x += 88


#: The panels of a call's plot: place of their upper edge, height.
RATES, SIZES, QUEUE = (70, 190), (290, 110), (430, 90)
LEFT, WIDE = 70, 700


def timeline(title: str, calls: dict[str, figures.Recording]) -> str:
    """Returns what happened over time in one call of each system over the same line: rates, the
    picture's height and the queue."""
    seconds = max(call.seconds for call in calls.values())
    svg = SVG(LEFT + WIDE + 30, QUEUE[0] + QUEUE[1] + 40)
    svg.text(title, LEFT, 28, size=16, bold=True)
    most = max(peak(call) for call in calls.values())
    first = next(iter(calls.values()))
    axes(svg, RATES, "kbit/s", most)
    axes(svg, SIZES, "lines", 720)
    axes(svg, QUEUE, "queue, ms", 1000 * longest_wait(calls))
    for number in range(0, int(seconds) + 1, 5):
        svg.text(f"{number} s", LEFT + WIDE * number / seconds, QUEUE[0] + QUEUE[1] + 18, "middle")
    svg.text("grey: the line's rate", LEFT + 230 * len(calls), 50, color="#777")
    draw(svg, RATES, stairs(first.rates, seconds), seconds, most, "#bbb", 3, 0.001)
    for number, (name, call) in enumerate(calls.items()):
        accent = SYSTEMS[name]
        svg.text(f"{name}: thick received, thin estimate", LEFT + 230 * number, 50, color=accent)
        received = per_half_second(call.delivered, seconds)
        draw(svg, RATES, received, seconds, most, accent, 2.5, 0.001)
        draw(svg, RATES, call.estimates, seconds, most, accent, 1, 0.001)
        draw(svg, SIZES, heights(call), seconds, 720, accent, 2)
        waits = longest_waits(call.waits, seconds)
        draw(svg, QUEUE, waits, seconds, 1000 * longest_wait(calls), accent, 1.5, 1000)
    return svg.file()


def axes(svg: SVG, panel: tuple[int, int], name: str, most: float) -> None:
    top, height = panel
    svg.line(LEFT, top + height, LEFT + WIDE, top + height, "#222")
    svg.line(LEFT, top, LEFT + WIDE, top, "#ddd")
    svg.text(f"{most:,.0f}", LEFT - 6, top + 4, "end", 11)
    svg.text("0", LEFT - 6, top + height + 4, "end", 11)
    svg.text(name, LEFT - 6, top + height / 2 + 4, "end", 11)


def draw(
    svg: SVG, panel: tuple[int, int], points: list[tuple[float, float]], seconds: float,
    most: float, color: str, width: float, factor: float = 1,
) -> None:  # fmt: skip
    """Draws values times `factor`, up to `most`, into a panel."""
    top, height = panel
    places = [
        (LEFT + WIDE * at / seconds, top + height * (1 - min(1, value * factor / most)))
        for at, value in points
    ]
    if places:
        svg.path(places, color, width)


def stairs(steps: list[tuple[float, float]], end: float) -> list[tuple[float, float]]:
    """Returns the points of a value that holds until the next."""
    until = [at for at, _ in steps[1:]] + [end]
    return [(at, value) for (since, value), end in zip(steps, until) for at in (since, end)]


def heights(call: figures.Recording) -> list[tuple[float, float]]:
    frames = figures.of_the_line(figures.readable(call.frames))
    spans = figures.sizes_over_time(frames, call.seconds)
    return stairs([(max(0.0, one.begin), one.height) for one in spans], call.seconds)


def per_half_second(sizes: list[tuple[float, int]], seconds: float) -> list[tuple[float, float]]:
    """Returns the mean bits a second of each half a second, at its middle."""
    bits = [0.0] * (int(seconds * 2) + 1)
    for at, size in sizes:
        bits[int(at * 2)] += size * 8
    return [(number / 2 + 0.25, one * 2) for number, one in enumerate(bits[: int(seconds * 2)])]


def longest_waits(waits: list[tuple[float, float]], seconds: float) -> list[tuple[float, float]]:
    """Returns the longest wait of each fifth of a second."""
    longest = [0.0] * (int(seconds * 5) + 1)
    for at, wait in waits:
        longest[int(at * 5)] = max(longest[int(at * 5)], wait)
    return [(number / 5 + 0.1, one) for number, one in enumerate(longest[: int(seconds * 5)])]


def longest_wait(calls: dict[str, figures.Recording]) -> float:
    waits = [wait for call in calls.values() for _, wait in call.waits]
    return max([0.1, *waits])


def peak(call: figures.Recording) -> float:
    """Returns the highest rate worth showing, in kbit/s: estimates beyond it leave the panel."""
    received = [rate for _, rate in per_half_second(call.delivered, call.seconds)]
    bound = [rate for _, rate in call.rates if rate <= 4_000_000]
    return max([100_000.0, *received, *bound]) * 1.1 / 1000
