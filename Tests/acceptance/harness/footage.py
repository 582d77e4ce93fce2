"""Recorded sessions made with ffmpeg, and analysis of composed files."""

import array
import asyncio
import json
import math
import signal
import subprocess
from pathlib import Path

from harness.sfud import binary

#: Start of the sessions, in Unix seconds.
BEGAN = 1763750000.0
RATE = 30
SAMPLES = 48000


def ffmpeg(*arguments) -> bytes:
    command = ["ffmpeg", "-v", "error", "-nostdin", "-y", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True).stdout


class Session:
    """A directory as a recorder leaves it; times are seconds since it began."""

    def __init__(self, directory: Path, seconds: float):
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.content = {
            "version": 1,
            "recording": "rec-1",
            "room": "r1",
            "started": BEGAN,
            "stopped": BEGAN + seconds,
            "files": [],
            "events": [],
        }

    def event(self, time: float, kind: str, **members) -> None:
        self.content["events"].append({"time": BEGAN + time, "type": kind, **members})

    def file(self, path, participant, name, kind, start, seconds, **members) -> Path:
        gaps = members.pop("gaps", [])
        self.content["files"].append(
            {
                "path": path,
                "participant": participant,
                "name": name,
                "stream": f"str-{participant}",
                "source": "camera" if kind == "video" else "microphone",
                "kind": kind,
                "codec": "VP8" if kind == "video" else "OPUS",
                "start": BEGAN + start,
                "duration": seconds,
                "complete": True,
                "gaps": [
                    {"start": BEGAN + begin, "end": BEGAN + end, "reason": "muted"}
                    for begin, end in gaps
                ],
                **members,
            }
        )
        return self.directory / path

    def picture(self, who, name, colour, start, seconds, gaps=(), codec="libvpx", **members):
        """Adds a camera with one key frame that shows `colour`; or a lavfi source."""
        path = members.pop("path", f"{who}-camera.webm")
        source = colour if "=" in colour else f"color=c={colour}:s=320x180:r={RATE}"
        ffmpeg(
            "-f", "lavfi", "-i", f"{source}:d={seconds}", *_without(gaps, start, "select"),
            *encoder(codec), self.directory / path,
        )  # fmt: skip
        return self.file(path, who, name, "video", start, seconds, gaps=gaps, **members)

    def tone(self, who, name, hertz, start, seconds, gaps=(), **members):
        """Adds a microphone with a sine."""
        path = members.pop("path", f"{who}-microphone.webm")
        ffmpeg(
            "-f", "lavfi", "-i", f"sine=f={hertz}:r={SAMPLES}:d={seconds}",
            *_without(gaps, start, "aselect"), "-c:a", "libopus", "-b:a", "48k",
            self.directory / path,
        )  # fmt: skip
        return self.file(path, who, name, "audio", start, seconds, gaps=gaps, **members)

    def write(self) -> "Session":
        (self.directory / "session.json").write_text(json.dumps(self.content))
        return self

    def working(self) -> list[Path]:
        """Returns the directories of unfinished work."""
        return list(self.directory.glob(".compose-*"))


def encoder(codec: str) -> list[str]:
    # One thread: libvpx's threads wait for one another by spinning.
    fast = ["-threads", "1", "-deadline", "realtime", "-cpu-used", "8"]
    fast = [] if codec == "libx264" else fast
    return ["-fps_mode", "passthrough", "-c:v", codec, "-g", "9999", "-b:v", "300k", *fast]


def _without(gaps, start, chosen) -> list[str]:
    """Returns filters that remove the gaps, and keep the times of the rest."""
    kept = "*".join(f"not(between(t,{begin - start},{end - start}))" for begin, end in gaps)
    if not kept:
        return []
    return ["-af" if chosen == "aselect" else "-vf", f"{chosen}='{kept}'"]


async def start(*arguments) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        str(binary().with_name("sfuctl")),
        "compose",
        *map(str, arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def compose(*arguments) -> tuple[int, str, str]:
    child = await start(*arguments)
    try:
        output, errors = await child.communicate()
    finally:
        if child.returncode is None:
            child.send_signal(signal.SIGTERM)
    return child.returncode, output.decode(), errors.decode()


class Film:
    """A composed file, decoded."""

    def __init__(self, path: Path):
        self.path = path
        self._sound: array.array | None = None

    def streams(self) -> dict:
        """Returns ffprobe's properties of each kind of media."""
        report = subprocess.run(
            ["ffprobe", "-v", "error", "-count_frames", "-show_streams", "-of", "json", self.path],
            check=True,
            capture_output=True,
        ).stdout
        return {stream["codec_type"]: stream for stream in json.loads(report)["streams"]}

    def times(self) -> list[float]:
        """Returns the time of each picture."""
        report = subprocess.run(
            ["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries",
             "packet=pts_time", "-of", "csv=p=0", self.path],
            check=True,
            capture_output=True,
            text=True,
        ).stdout  # fmt: skip
        return sorted(float(line.strip(",")) for line in report.split())

    def colour(self, time: float, rect: dict, share: float = 0.2) -> tuple[int, int, int]:
        """Returns the color in the middle of a rectangle."""
        width, height = (max(2, int(rect[side] * share)) for side in ("width", "height"))
        x = rect["x"] + (rect["width"] - width) // 2
        y = rect["y"] + (rect["height"] - height) // 2
        pixel = ffmpeg(
            "-ss", time, "-i", self.path, "-frames:v", 1,
            "-vf", f"format=rgb24,crop={width}:{height}:{x}:{y},scale=1:1:flags=area",
            "-f", "rawvideo", "-pix_fmt", "rgb24", "-",
        )  # fmt: skip
        return tuple(pixel)

    def brightest(self, time: float, rect: dict) -> int:
        """Returns the brightest pixel in a rectangle, 0 to 255."""
        crop = "{width}:{height}:{x}:{y}".format(**rect)
        return max(
            ffmpeg(
                "-ss", time, "-i", self.path, "-frames:v", 1, "-vf", f"crop={crop}",
                "-f", "rawvideo", "-pix_fmt", "gray", "-",
            )
        )  # fmt: skip

    def brightness(self) -> bytes:
        """Returns the brightness of each picture, 0 to 255."""
        return ffmpeg(
            "-i", self.path, "-fps_mode", "passthrough",
            "-vf", "scale=1:1:flags=area", "-f", "rawvideo", "-pix_fmt", "gray", "-",
        )  # fmt: skip

    def sound(self) -> array.array:
        """Returns all samples, both channels as one."""
        if self._sound is None:
            self._sound = array.array("h")
            self._sound.frombytes(
                ffmpeg("-i", self.path, "-ac", 1, "-ar", SAMPLES, "-f", "s16le", "-")
            )
        return self._sound

    def tone(self, time: float, hertz: float, seconds: float = 0.1) -> float:
        """Returns the amplitude of a tone about `time`, full scale 1."""
        first = int((time - seconds / 2) * SAMPLES)
        samples = self.sound()[first : first + int(seconds * SAMPLES)]
        turn = 2 * math.pi * hertz / SAMPLES
        real = sum(sample * math.cos(turn * n) for n, sample in enumerate(samples))
        imaginary = sum(sample * math.sin(turn * n) for n, sample in enumerate(samples))
        return 2 * math.hypot(real, imaginary) / max(1, len(samples)) / 32768

    def pictures(self) -> str:
        """Returns a digest of every decoded picture."""
        return ffmpeg("-i", self.path, "-map", "0:v", "-f", "md5", "-").decode()
