"""The lines bench (benchmarks/lines): its lines, its figures, and one short run of it."""

import asyncio
import json
import os
import statistics
import sys
import xml.etree.ElementTree as XML
from pathlib import Path

import pytest

from harness.media import Frame
from harness.sfud import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "benchmarks"))

from lines import bars, calls, figures, plot, table, traces
from lines.__main__ import arguments, expected, joined, remaining, trials
from lines.figures import Recording, Span
from lines.lines import BASE, LINES, named

PERIOD = 0.05
ABOUT = {line.name: line.about for line in LINES}


def shown(*parts: tuple[float, float, int], counter: int = 0) -> list[Frame]:
    """Returns 20 pictures a second of each (begin, end, height); between parts the publisher went
    on."""
    frames = []
    for begin, end, height in parts:
        for number in range(round(begin / PERIOD), round(end / PERIOD)):
            frames.append(Frame(number * PERIOD, height, height, 120, counter + number))
    return frames


@pytest.mark.parametrize(
    "trace, rate", [(traces.wifi, 3_300_000), (traces.lte, 2_440_000)], ids=["wifi", "lte"]
)
def test_a_trace_has_its_mean_rate_and_its_stalls(trace, rate):
    several = [one for seed in range(100) for _, one in trace(seed, 60)]
    assert statistics.mean(several) == pytest.approx(rate, rel=0.05)
    assert 0.01 < several.count(traces.STALL) / len(several) < 0.05
    assert min(several) == traces.STALL


@pytest.mark.parametrize("trace", [traces.wifi, traces.lte])
def test_a_seed_means_the_same_trace(trace):
    assert trace(3, 20) == trace(3, 20) != trace(4, 20)
    assert [at for at, _ in trace(3, 1)] == pytest.approx([0.1 * tick for tick in range(10)])
    # A longer one goes on from there.
    assert trace(3, 40)[:200] == trace(3, 20)


def test_the_free_line_before_is_as_long_as_the_line():
    [far] = named(["delay-200"])
    assert far.lead() == BASE | {"delay": 0.2}
    [narrow] = named(["150k"])
    assert narrow.lead() == BASE


def test_lines_have_names_and_complete_beginnings():
    assert len(ABOUT) == len(LINES) and sum(line.firefox for line in LINES) == 5
    for line in LINES:
        steps = line.schedule(1, 10)
        assert steps[0][0] == 0 and set(steps[0][1]) == set(BASE)
        assert [at for at, _ in steps] == sorted(at for at, _ in steps)
        assert steps[-1][0] < line.seconds(10)
        assert all(set(settings) <= set(BASE) for _, settings in steps)


def test_a_change_comes_after_its_share_of_the_time():
    [line] = named(["step-3000-600"])
    assert [(at, one["rate"]) for at, one in line.schedule(1, 30)] == [
        (0, 3_000_000), (20, 600_000), (40, 3_000_000)
    ]  # fmt: skip


def test_what_a_call_may_take_is_shared_with_downloads():
    [line] = named(["download"])
    assert calls.capacity(line, line.schedule(1, 30)) == [
        (0, 2_000_000), (20, 1_000_000), (40, 2_000_000)
    ]  # fmt: skip
    [line] = named(["loss-5"])
    assert calls.capacity(line, line.schedule(1, 30)) == [(0, 9_500_000)]
    [line] = named(["lte"])
    assert calls.capacity(line, line.schedule(1, 30)) == []


def test_the_picture_keeps_its_size_until_the_next():
    frames = shown((1, 4, 720), (5, 10, 360))
    assert figures.sizes_over_time(frames, 10) == [Span(1, 5, 720), Span(5, 10, 360)]
    spans = figures.sizes_over_time(frames, 10)
    assert figures.shares(spans, [(0, 10)]) == pytest.approx({"720": 0.4, "360": 0.5})
    assert figures.shares(spans, [(4, 6), (8, 10)]) == pytest.approx({"720": 0.25, "360": 0.75})
    assert figures.shares([], [(0, 10)]) == {} == figures.shares(spans, [])


def test_five_seconds_after_each_change_are_not_settled():
    assert figures.settled([10, 12], 30) == [(5, 10), (17, 30)]
    assert figures.settled([], 4) == []


def test_a_misread_or_repeated_picture_does_not_count():
    frames = shown((0, 1, 360))
    odd = [Frame(one.time + 0.01, 360, 360, 120, 60_000 + 300 * at) for at, one in
           enumerate(frames)]  # fmt: skip
    mixed = sorted([*frames, *odd[5:6], *odd[9:10], *frames[12:13]], key=lambda one: one.time)
    assert figures.readable(mixed) == frames


@pytest.mark.parametrize(
    "frames, gap",
    [
        (shown((0, 10, 720)), PERIOD),
        (shown((0, 4, 720), (4.7, 10, 360)), 0.75),
        (shown((0, 8, 720)), 2.05),
        (shown((3, 10, 720)), PERIOD),
        ([], None),
    ],
    ids=["none", "in the middle", "at the end", "late start", "no picture"],
)
def test_the_longest_gap_is_that_of_the_counters(frames, gap):
    assert figures.longest_gap(frames, 10) == (gap and pytest.approx(gap, abs=0.01))


def test_a_reaction_is_the_first_other_size_after_a_change():
    spans = figures.sizes_over_time(shown((-1, 2, 720), (2, 13, 360), (13, 30, 720)), 30)
    assert figures.reactions(spans, [0, 10, 20], 30) == [2, pytest.approx(3), None]


def test_the_line_begins_with_the_picture_that_is_shown():
    frames = figures.of_the_line(shown((-3, -1, 180), (-1, 2, 720)))
    assert (frames[0].time, frames[0].height) == (-PERIOD, 720)
    assert figures.of_the_line(shown((1, 2, 720)))[0].time == 1


def test_at_best_is_the_highest_layer_that_fits():
    layers = {180: 200_000.0, 360: 500_000.0, 720: 1_500_000.0}
    frames = shown((0, 8, 720), (8, 20, 360), (20, 32.5, 360), (32.5, 40, 720))
    call = Recording(40, frames, layers=layers, capacity=[(0, 600_000), (20, 3_000_000)])
    spans = figures.sizes_over_time(frames, 40)
    # At 600 kbit/s all is well; later the top layer is shown for 7.5 of the 15 settled seconds.
    assert figures.at_best(spans, call) == pytest.approx((15 + 7.5) / 30)
    call.capacity = [(0, 150_000)]
    assert figures.at_best(spans, call) is None
    call.capacity, call.layers = [(0, 600_000)], {720: 500_000}
    assert figures.at_best(spans, call) is None


def test_percentiles():
    values = [float(number) for number in range(1, 101)]
    assert figures.percentile(values, 95) == 95 and figures.percentile(values, 50) == 50
    assert figures.percentile([7.0], 95) == 7 and figures.percentile([], 95) is None


def test_a_layer_takes_its_packets_headers_and_the_sound():
    def sent(seconds: int) -> list[dict]:
        return [
            {"ssrc": ssrc, "kind": kind, "frameHeight": height, "bytesSent": 1000 * seconds,
             "headerBytesSent": 120 * seconds, "packetsSent": 10 * seconds}
            for ssrc, kind, height in [(1, "audio", None), (2, "video", 360), (3, "video", 720)]
        ]  # fmt: skip

    each = 8 * (1000 + 120 + 10 * figures.AROUND)
    assert figures.layer_rates(sent(3), sent(13), 10) == {360: 2 * each, 720: 2 * each}


def test_figures_of_a_call():
    call = Recording(
        20, shown((-2, 10, 720), (10.5, 20, 360)), lead=2, changes=[0, 8], capacity=[],
        delivered=[(at / 10, 1250) for at in range(200)], waits=[(1, 0.1), (2, 0.3)],
        estimates=[(0, 1e6), (1, 2e6), (2, 3e6)],
        counters=figures.growth({"freezeCount": 1}, {"freezeCount": 2, "pliCount": 4}),
    )  # fmt: skip
    made = figures.figures(call)
    assert json.loads(json.dumps(made)) == made
    assert made["bitrate"] == 100_000 and made["framesPerSecond"] == 19.5
    assert made["sizes"] == pytest.approx({"720": 0.525, "360": 0.475})
    assert made["firstFrame"] == 0 and made["switches"] == 1
    assert made["reactions"] == [None, 2.5]
    assert made["freezes"] == 1 and made["counters"]["pliCount"] == 4
    assert made["frozen"] is None is made["frozenPerMinute"]
    assert made["longestGap"] == pytest.approx(0.55)
    assert (made["queueMean"], made["queueP95"]) == (pytest.approx(0.2), 0.3)
    assert made["estimateMedian"] == 2e6


def row(line: str, run: int, **changes) -> table.Row:
    call = Recording(30, shown((0, 30, 720)), counters={"totalFreezesDuration": 0.5})
    name = {"line": line, "system": "sfud", "viewer": "Chromium", "run": run, "seconds": 30}
    return name | figures.figures(call) | changes


def test_the_table_has_medians_and_says_what_failed(tmp_path):
    rows = [row("600k", run, switches=run) for run in (1, 2, 5)]
    rows.append(row("loss-5", 1, viewer="Firefox", frozenPerMinute=None, cpuLimited=20))
    rows.append({"line": "lte", "system": "direct", "viewer": "Chromium", "run": 1, "error": "x"})
    text = table.markdown(rows, {"cores": 2}, ABOUT)
    [steady] = [line for line in text.splitlines() if line.startswith("| **600k**")]
    assert "| 2 (1 to 5) |" in steady and "| 1.00 |" in steady and "720: 100%" in steady
    assert "| sfud, Firefox |" in text and "cores 2." in text
    assert "lte, direct, run 1 **failed**: x" in text
    assert "processor limited the camera's encoder for 20 of 30 s" in text
    file = tmp_path / "lines.jsonl"
    file.write_text(table.json_lines(rows, {"cores": 2}))
    assert table.read(file) == (rows, {"cores": 2})
    XML.fromstring(plot.overview(rows, ABOUT))


BARS = [
    # name, line, sfud's changes, frozen seconds a minute of the direct call, what is missed
    ("as long as the direct call and a little", "600k", {"frozenPerMinute": 0.6}, 0.5, ""),
    ("longer", "600k", {"frozenPerMinute": 0.62}, 0.5, "frozen for more than 0.60 s/min"),
    ("a line that only loses", "burst-5", {"frozenPerMinute": 0.1}, 0.5,
     "frozen for more than 0.00 s/min"),
    ("one that loses very much", "loss-10", {"frozenPerMinute": 0.1}, 0.5, ""),
    ("not the best layer", "600k", {"atBest": 0.89}, 9, "at best for less than 90%"),
    ("two switches", "600k", {"switches": 2}, 9, "more than 1 switch"),
    ("two switches of a changing line", "lte", {"switches": 9}, 9, ""),
    ("nothing known of freezes", "600k", {"frozenPerMinute": None}, 0.5, ""),
]  # fmt: skip


@pytest.mark.parametrize("line, changes, direct, missed", [one[1:] for one in BARS],
                         ids=[one[0] for one in BARS])  # fmt: skip
def test_the_bars_are_those_of_means(line, changes, direct, missed):
    usual = {"frozenPerMinute": 0.0, "atBest": 1.0, "switches": 1}
    rows = [row(line, run, **usual | changes) for run in (1, 2)]
    rows += [row(line, run, **usual, system="direct") | {"frozenPerMinute": at}
             for run, at in ((1, 0), (2, 2 * direct))]  # fmt: skip
    text = bars.markdown(rows, LINES)
    [told] = [one for one in text.splitlines() if one.startswith(f"| **{line}** | Chromium | 2 |")]
    assert told.endswith(f"| {missed} |"), told
    assert f"All bars are reached on {0 if missed else 1} of 1." in text
    assert "0 of 0" in bars.markdown(rows[:2], LINES)


def test_a_call_without_a_picture_has_a_plot_too():
    seen = Recording(9.9, shown((0, 9, 360)), rates=[(0, 1e6)], delivered=[(9.8, 100)],
                     waits=[(9.85, 0.2)], estimates=[(1, 1e6)])  # fmt: skip
    XML.fromstring(plot.timeline("<a line>", {"sfud": seen, "direct": Recording(9.9, [])}))


def test_options_choose_the_calls():
    usual = trials(arguments([]))
    assert len(usual) == 3 * 2 * (len(LINES) + 5)
    several = trials(arguments(["600k", "loss-0", "--runs", "1", "--seconds", "10"]))
    assert [(one.line.name, one.viewer, one.system) for one in several] == [
        ("600k", "Chromium", "sfud"), ("600k", "Chromium", "direct"),
        ("600k", "Firefox", "sfud"), ("600k", "Firefox", "direct"),
        ("loss-0", "Chromium", "sfud"), ("loss-0", "Chromium", "direct"),
    ]  # fmt: skip
    assert 120 < expected(several) < 180
    with pytest.raises(SystemExit):
        arguments(["no-such-line"])


def test_an_interrupted_bench_goes_on():
    several = trials(arguments(["600k", "loss-2", "--runs", "2", "--viewers", "chromium"]))
    made = [
        {"line": one.line.name, "system": one.system, "viewer": one.viewer, "run": one.run}
        for one in several[:5]
    ]
    assert remaining(several, made) == several[5:]
    assert remaining(several, [made[0] | {"error": "TimeoutError"}]) == several
    before = {"date": "2026-11-25", "load before": 0.3, "runs": 2}
    now = {"date": "2026-11-26", "load before": 0.1, "runs": 3}
    together = {"date": "2026-11-25, 2026-11-26", "load before": 0.3, "runs": 3}
    assert joined(before, now) == together and joined(together, now) == together


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.seconds(90)
async def test_one_line_of_five_seconds(tmp_path: Path):
    """The command itself, on a line that every picture survives."""
    child = await asyncio.create_subprocess_exec(
        REPOSITORY / "benchmarks/lines/run", "loss-2", "--runs", "1", "--seconds", "5",
        "--lead", "2", "--jitter-buffer", "300", "--output", tmp_path, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "ACCEPTANCE_PYTHON": sys.executable},
    )  # fmt: skip
    try:
        output = (await child.communicate())[0].decode()
    finally:
        if child.returncode is None:
            # The namespace of its processes goes with it.
            child.kill()
    assert child.returncode == 0, output
    assert output.startswith("2 calls, about 0 minutes")
    rows, conditions = table.read(tmp_path / "lines.jsonl")
    assert [one["system"] for one in rows] == ["sfud", "direct"] and conditions["runs"] == 1
    for one in rows:
        assert one["framesPerSecond"] > 5 and sum(one["sizes"].values()) > 0.9, one
        assert one["dropped"] > 0 and one["deliveredBits"] > 100_000, one
        assert one["counters"]["framesDecoded"] > 20, one
        held = one["counters"]["jitterBufferDelay"] / one["counters"]["jitterBufferEmittedCount"]
        assert held > 0.15, one
    assert set(rows[0]["layers"]) == {"180", "360", "720"} and len(rows[1]["layers"]) == 1
    assert "| **loss-2** 2 % random loss | sfud |" in (tmp_path / "lines.md").read_text()
    for drawing in ["lines.svg", "timelines/loss-2.svg"]:
        XML.parse(tmp_path / drawing)
