"""The checks themselves: what they take for a freeze."""

import pytest

from harness.expect import longest_freeze
from harness.media import Frame

PERIOD = 0.05


def pictures(steps: list[tuple[int, float]]) -> list[Frame]:
    """Returns pictures, each so many numbers and seconds after the one before."""
    frames = [Frame(100.0, 640, 360, 120, 0)]
    for numbers, seconds in steps:
        last = frames[-1]
        frames.append(Frame(last.time + seconds, 640, 360, 120, last.counter + numbers))
    return frames


STEADY = [(1, PERIOD)] * 15


@pytest.mark.parametrize(
    ("meanwhile", "seconds"),
    [
        ([], PERIOD),
        # Pictures were drawn and never shown.
        ([(16, 0.8)], 0.8),
        # All pictures came, but late, and then at once.
        ([(1, 0.8)] + [(1, 0.001)] * 15, 0.8),
        # The publisher drew none.
        ([(1, 0.8)], PERIOD),
        # The publisher drew half as many as it should.
        ([(8, 0.8)], 0.4),
    ],
    ids=["none", "lost", "held", "publisher", "half"],
)
def test_a_pause_of_the_publisher_is_no_freeze(meanwhile, seconds):
    gap, _, _ = longest_freeze(pictures(STEADY + meanwhile + STEADY))
    assert gap == pytest.approx(seconds, abs=0.02)
