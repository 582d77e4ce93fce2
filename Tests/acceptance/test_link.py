"""The simulated network itself, in virtual time: its queue, its losses and its downloads."""

import heapq
import itertools
import random
import statistics

import pytest

from harness.bottleneck import Bottleneck, Download, Losses

SIZE = 1250
"""10,000 bits: 10 ms at 1 Mbit/s."""


def bottleneck(rate: float | None, **settings) -> Bottleneck:
    made = Bottleneck()
    made.rate = rate
    for name, value in settings.items():
        setattr(made, name, value)
    return made


def test_datagrams_leave_at_the_rate():
    queue = bottleneck(1_000_000)
    for number in range(3):
        assert queue.push(5.0, number, SIZE)
    assert queue.serve(5.009) == []
    assert queue.due() == pytest.approx(5.010)
    served = queue.serve(6)
    assert [one.item for one in served] == [0, 1, 2]
    assert [one.at for one in served] == pytest.approx([5.010, 5.020, 5.030])
    assert [one.waited for one in served] == pytest.approx([0, 0.010, 0.020])
    assert queue.due() is None and queue.delay() == pytest.approx(0)


def test_an_idle_queue_saves_nothing_up():
    queue = bottleneck(1_000_000)
    queue.push(1.0, "first", SIZE)
    queue.push(7.0, "second", SIZE)
    assert [one.at for one in queue.serve(8)] == pytest.approx([1.010, 7.010])


def test_a_change_of_the_rate_holds_for_those_that_wait():
    queue = bottleneck(1_000_000)
    for number in range(2):
        queue.push(0, number, SIZE)
    assert queue.serve(0.005) == []
    queue.rate = 100_000
    # Half of the first is left, 50 ms at a tenth of the rate.
    assert [one.at for one in queue.serve(1)] == pytest.approx([0.055, 0.155])


@pytest.mark.parametrize("rate, leaves", [(0, []), (None, [2])], ids=["outage", "unlimited"])
def test_a_rate_may_be_nothing_or_everything(rate, leaves):
    queue = bottleneck(1_000_000)
    queue.push(2, "one", SIZE)
    queue.rate = rate
    assert [one.at for one in queue.serve(9)] == leaves
    assert queue.due() is None


@pytest.mark.parametrize(
    "settings, most", [({"limit": 0.05}, 6), ({"limit_bytes": 2 * SIZE}, 3)], ids=["50ms", "bytes"]
)
def test_a_full_queue_drops_the_last(settings, most):
    queue = bottleneck(1_000_000, **settings)
    assert [queue.push(0, number, SIZE) for number in range(8)] == [True] * most + [False] * (
        8 - most
    )


def losses(share: float, burst: float | None, count: int = 200_000) -> list[bool]:
    pattern = Losses(random.Random(7))
    return [pattern.next(share, burst) for _ in range(count)]


@pytest.mark.parametrize("share", [0, 0.02, 0.05, 0.10])
@pytest.mark.parametrize("burst", [None, 2, 5])
def test_losses_have_the_share_and_the_bursts_asked_for(share, burst):
    pattern = losses(share, burst)
    assert sum(pattern) / len(pattern) == pytest.approx(share, rel=0.1)
    bursts = [len(list(run)) for lost, run in itertools.groupby(pattern) if lost]
    if share:
        # Independent losses come in a row now and then, too.
        assert statistics.mean(bursts) == pytest.approx(burst or 1 / (1 - share), rel=0.1)


def test_a_seed_means_the_same_losses():
    assert losses(0.05, 5, 2_000) == losses(0.05, 5, 2_000)


def downloaded(count: int, rate: float, seconds: float, limit: float = 0.1) -> list[float]:
    """Returns the mean bits a second that each of several downloads gets, by round trips of
    40 ms."""
    queue = bottleneck(rate, limit=limit)
    events: list[tuple[float, int, object]] = []
    numbers = itertools.count()
    now = 0.0
    got = [0] * count

    def send(download, number):
        if not queue.push(now, download, Download.SIZE):
            lost = (now + queue.delay() + 0.04, next(numbers), lambda: download.lost(number))
            heapq.heappush(events, lost)

    flows = [Download(send) for _ in range(count)]
    for flow in flows:
        flow.fill()
    while now < seconds:
        now = min([event[0] for event in events[:1]] + [queue.due() or seconds])
        for one in queue.serve(now):
            got[next(at for at, flow in enumerate(flows) if flow is one.item)] += one.size * 8
            heapq.heappush(events, (one.at + 0.04, next(numbers), one.item.arrived))
        while events and events[0][0] <= now:
            heapq.heappop(events)[2]()
    return [bits / seconds for bits in got]


def test_a_download_fills_the_line():
    assert downloaded(1, 2_000_000, 20)[0] > 0.9 * 2_000_000


def test_two_downloads_share_the_line():
    rates = downloaded(2, 2_000_000, 60)
    assert sum(rates) > 0.9 * 2_000_000
    assert max(rates) < 3 * min(rates)


def test_a_download_that_stops_sends_nothing_more():
    sent = []
    download = Download(lambda _, number: sent.append(number))
    download.fill()
    download.stop()
    download.arrived()
    assert sent == list(range(10))
