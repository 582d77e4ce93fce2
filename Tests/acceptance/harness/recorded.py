"""Recordings on disk: probed, decoded and read back."""

import array
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.media import Frame, Sound, ToneMeter, read_picture


@dataclass
class Track:
    """A file of a recording as ffprobe sees it."""

    path: Path
    codec: str
    duration: float
    """From its first packet's time to its last's, in seconds."""
    width: int
    height: int
    times: list[float]
    """Of its packets, in seconds."""


def run(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, timeout=120)
    assert done.returncode == 0, f"{command}: {done.stderr.decode()}"
    return done.stdout


def probe(path: Path) -> Track:
    text = run(
        "ffprobe", "-v", "error", "-show_streams", "-show_entries", "packet=pts_time",
        "-of", "json", str(path),
    )
    found = json.loads(text)
    [stream] = found["streams"]
    times = [float(packet["pts_time"]) for packet in found["packets"]]
    return Track(
        path, stream["codec_name"], times[-1] - times[0],
        stream.get("width", 0), stream.get("height", 0), times,
    )


#: ffmpeg's null muxer uses a guessed frame rate, unless it is told to use the file's time base, and
#: complains of two pictures close together.
DECODE = ["-enc_time_base", "-1", "-f", "null", "-"]


def errors(path: Path) -> str:
    """Returns ffmpeg's messages when it decodes all of a file: none, if it is sound."""
    done = subprocess.run(
        ["ffmpeg", "-v", "warning", "-xerror", "-i", str(path), *DECODE],
        capture_output=True, timeout=120,
    )
    return done.stderr.decode() + ("" if done.returncode == 0 else f"status {done.returncode}")


def decodes(path: Path) -> Track:
    """Probes and decodes a file that must have no error in it."""
    found = errors(path)
    assert not found, f"{path}: {found}"
    return probe(path)


def frames(track: Track, width: int = 320, height: int = 180) -> list[Frame]:
    """Returns the pictures, each with its presentation time in the file."""
    raw = run(
        "ffmpeg", "-v", "error", "-i", str(track.path), "-vf", f"scale={width}:{height}",
        "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-",
    )
    luma, chroma = width * height, width * height // 4
    size = luma + 2 * chroma
    pictures = []
    for time, at in zip(track.times, range(0, len(raw), size)):
        y, u, v = (
            raw[at : at + luma], raw[at + luma : at + luma + chroma],
            raw[at + luma + chroma : at + size],
        )
        pictures.append(read_picture(time, width, height, y, (width, width // 2), u, v))
    return pictures


#: Samples at the beginning that an Opus decoder omits, and samples of a packet.
LOOK_AHEAD, PACKET = 312, 960


def samples(track: Track) -> array.array:
    """Returns the decoded sound at 48 kHz; `moment` converts a sample's index to its time."""
    raw = run(
        "ffmpeg", "-v", "error", "-i", str(track.path), "-ac", "1", "-ar", "48000",
        "-f", "s16le", "-",
    )
    return array.array("h", raw)


def onsets(samples, rate: int = 48_000) -> list[int]:
    """Returns the starts of sound after a tenth of a second of silence."""
    found, quiet = [], 0
    for at, sample in enumerate(samples):
        if abs(sample) < 1000:
            quiet += 1
            continue
        if quiet > rate // 10:
            found.append(at)
        quiet = 0
    return found


def moment(track: Track, sample: int) -> float:
    """Returns the presentation time of a sample, in the file's time."""
    packet, offset = divmod(sample + LOOK_AHEAD, PACKET)
    return track.times[packet] + offset / 48_000


def sounds(track: Track) -> list[Sound]:
    """Returns the sound in pieces of a tenth of a second."""
    found = ToneMeter(48_000).feed(0, samples(track))
    return [Sound((index + 1) / 10, one.level, one.tone) for index, one in enumerate(found)]


def is_sound(path: Path) -> bool:
    """Whether all of an unclosed file decodes; a missing end may be reported."""
    done = subprocess.run(
        ["ffmpeg", "-v", "error", "-i", str(path), *DECODE],
        capture_output=True, timeout=120,
    )
    said = [
        line for line in done.stderr.decode().splitlines() if "File ended prematurely" not in line
    ]
    assert not said, said
    return done.returncode == 0
