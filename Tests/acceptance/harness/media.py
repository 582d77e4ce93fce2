"""The test picture and the test tone: drawn by every publisher, read back by every viewer.

A picture identifies its publisher (by hue) and its frame (by a counter in sixteen black or white
cells along its lower edge), so a viewer can tell from pixels alone that a video moves, whose it is,
and how long it stood still. A publisher's sound is a sine of its own frequency.

Plain Python on bytes, for the interpreters of both the tests and the GStreamer helper.
"""

import array
import colorsys
import math
from dataclasses import dataclass

COUNTER_BITS = 16
#: Share of the picture's height that the counter takes up, at the bottom.
COUNTER_SHARE = 0.25


@dataclass(frozen=True)
class Frame:
    """One decoded picture."""

    time: float
    """Unix time at which the viewer had it, in seconds."""
    width: int
    height: int
    hue: float
    """In degrees, of the mean colour; -1 for a picture without colour."""
    counter: int


@dataclass(frozen=True)
class Sound:
    """A tenth of a second of decoded sound."""

    time: float
    """Unix time of its end, in seconds."""
    level: float
    """Root mean square, 0 to 1."""
    tone: float
    """Its frequency, in hertz."""


def hue_of(red: float, green: float, blue: float) -> float:
    """Returns the hue in degrees of a color with components of 0 to 255; -1 where it is grey."""
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    return hue * 360 if saturation > 0.2 and value > 0.1 else -1


def hue_distance(one: float, other: float) -> float:
    return abs((one - other + 180) % 360 - 180)


class Picture:
    """Draws frames of one hue as I420 (BT.601, limited range)."""

    def __init__(self, hue: float, width: int, height: int):
        self.width, self.height = width, height
        red, green, blue = (part * 255 for part in colorsys.hls_to_rgb(hue / 360, 0.5, 1))
        self._luma = round(16 + 0.257 * red + 0.504 * green + 0.098 * blue)
        blue_chroma = round(128 - 0.148 * red - 0.291 * green + 0.439 * blue)
        red_chroma = round(128 + 0.439 * red - 0.368 * green - 0.071 * blue)
        self._upper = int(height * (1 - COUNTER_SHARE)) // 2 * 2
        chroma_above = width // 2 * self._upper // 2
        grey = bytes([128]) * (width // 2 * height // 2 - chroma_above)
        self._chroma = (
            bytes([blue_chroma]) * chroma_above + grey,
            bytes([red_chroma]) * chroma_above + grey,
        )

    def planes(self, counter: int) -> tuple[bytes, bytes, bytes]:
        """Returns Y, U and V of frame number `counter`, without padding."""
        bar = self.width // 16
        left = counter * 8 % (self.width - bar)
        row = bytearray([self._luma]) * self.width
        row[left : left + bar] = bytes([235]) * bar
        cell = self.width // COUNTER_BITS
        cells = b"".join(
            bytes([235 if counter >> bit & 1 else 16]) * cell
            for bit in reversed(range(COUNTER_BITS))
        ).ljust(self.width, b"\x10")
        luma = bytes(row) * self._upper + cells * (self.height - self._upper)
        return luma, *self._chroma


def read_picture(
    time: float, width: int, height: int, luma: bytes, strides: tuple[int, int], u: bytes, v: bytes
) -> Frame:
    """Decodes an I420 picture's hue and counter; `strides` are those of luma and of chroma."""
    y_stride, c_stride = strides
    counter = 0
    cell = width / COUNTER_BITS
    row = int(height * (1 - COUNTER_SHARE / 2)) * y_stride
    for index in range(COUNTER_BITS):
        middle = row + int((index + 0.5) * cell)
        counter = counter << 1 | (luma[middle] > 125)
    # One chroma row in five, of the part above the counter, is enough for a mean.
    chroma_rows = range(0, int(height * (1 - COUNTER_SHARE)) // 2, 5)
    half = width // 2
    count = len(chroma_rows) * half or 1
    mean_u = sum(sum(u[at * c_stride : at * c_stride + half]) for at in chroma_rows) / count - 128
    mean_v = sum(sum(v[at * c_stride : at * c_stride + half]) for at in chroma_rows) / count - 128
    # The bar that moves hides one of these places at most.
    line = height // 4 * y_stride
    places = sorted(luma[line + int(part * width)] for part in (0.02, 0.35, 0.65))
    mean_y = 1.164 * (places[1] - 16)
    red = mean_y + 1.596 * mean_v
    green = mean_y - 0.392 * mean_u - 0.813 * mean_v
    blue = mean_y + 2.017 * mean_u
    red, green, blue = (min(max(part, 0), 255) for part in (red, green, blue))
    return Frame(time, width, height, hue_of(red, green, blue), counter)


class ToneMeter:
    """Converts signed 16-bit mono samples into a `Sound` for each tenth of a second."""

    def __init__(self, rate: int):
        self._rate = rate
        self._samples = array.array("h")

    def feed(self, time: float, samples: array.array) -> list[Sound]:
        self._samples.extend(samples)
        window = self._rate // 10
        sounds = []
        while len(self._samples) >= window:
            sounds.append(self._measure(time, self._samples[:window]))
            self._samples = self._samples[window:]
        return sounds

    def _measure(self, time: float, samples: array.array) -> Sound:
        level = math.sqrt(sum(sample * sample for sample in samples) / len(samples)) / 32768
        # From the first to the last upward zero crossing: whole periods, hence exact for a sine.
        rises = [at for at in range(1, len(samples)) if samples[at - 1] < 0 <= samples[at]]
        tone = 0.0
        if len(rises) > 1:
            tone = (len(rises) - 1) * self._rate / (rises[-1] - rises[0])
        return Sound(time, level, tone)
