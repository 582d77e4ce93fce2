"""A hostile publisher with valid keys: aiortc's transport, and packets of our own."""

import asyncio
import itertools
import struct
import subprocess
import time

import aiortc

from harness.aio import AioPeer

#: Payload type of AV1, which aiortc does not offer by itself.
AV1 = 45

#: A sequence header of 64 by 64 pixels, as an OBU without its size.
SEQUENCE = bytes.fromhex("08 20000002afff9b5f2404340080")


class Silence(aiortc.MediaStreamTrack):
    """A track that never has a frame."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    async def recv(self):
        await asyncio.Event().wait()


class Hostile(AioPeer):
    """Publishes audio and video, and makes every packet itself."""

    def __init__(self):
        super().__init__()
        self._numbers = {kind: itertools.count(1) for kind in ("audio", "video")}

    async def publish(self, **_):
        for kind in ("audio", "video"):
            self._add(Silence(kind), "sendonly", None)

    async def offer(self):
        lines = []
        for line in (await super().offer()).splitlines():
            if line.startswith("m=video "):
                line += f" {AV1}"
            lines.append(line)
            if line.startswith("a=rtpmap:97 "):
                lines.append(f"a=rtpmap:{AV1} AV1/90000")
        return "".join(f"{line}\r\n" for line in lines)

    def _sender(self, kind: str) -> aiortc.RTCRtpSender:
        senders = (one.sender for one in self._connection.getTransceivers())
        return next(one for one in senders if one.track.kind == kind)

    def type(self, codec: str, fmtp: str = "") -> int:
        """Returns the payload type that was offered."""
        if codec == "AV1":
            return AV1
        sdp = self._connection.localDescription.sdp.splitlines()
        types = [
            int(line.split(":")[1].split()[0])
            for line in sdp
            if line.startswith("a=rtpmap:") and f" {codec}/" in line
        ]
        wanted = (one for one in types if any(f"a=fmtp:{one} " in x and fmtp in x for x in sdp))
        return next(wanted, types[0])

    async def send(self, kind: str, type_: int, payloads: list[bytes], timestamp: int) -> None:
        """Sends one frame."""
        sender = self._sender(kind)
        for at, payload in enumerate(payloads):
            mark = 0x80 if at == len(payloads) - 1 else 0
            number = next(self._numbers[kind]) & 0xFFFF
            header = struct.pack(
                "!BBHII", 0x80, mark | type_, number, timestamp & 0xFFFFFFFF, sender._ssrc
            )
            await sender.transport._send_rtp(header + payload)

    async def report(self, kind: str, timestamp: int, seconds: float) -> None:
        """Sends a sender report whose clock is off by so much."""
        ntp = int((time.time() + 2208988800 + seconds) * 2**32) & (2**64 - 1)
        sender = self._sender(kind)
        report = struct.pack(
            "!BBHIQIII", 0x80, 200, 6, sender._ssrc, ntp, timestamp & 0xFFFFFFFF, 1, 1
        )
        await sender.transport._send_rtp(report)


def encoded(codec: str, size: str, muxer: str, *options: str) -> bytes:
    """Returns a single picture of noise, encoded by ffmpeg."""
    command = [
        "ffmpeg", "-v", "error", "-f", "lavfi", "-i", f"testsrc2=s={size}", "-frames:v", "1",
        "-pix_fmt", "yuv420p", "-c:v", codec, *options, "-f", muxer, "-",
    ]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout


def h264(size: str) -> list[bytes]:
    """Returns the packets of a keyframe with its parameter sets."""
    text = encoded("libx264", size, "h264", "-x264-params", "annexb=1:repeat-headers=1")
    units = [unit.rstrip(b"\0") for unit in text.split(b"\0\0\1")[1:]]
    units = [unit for unit in units if unit[0] & 0x1F in (5, 7, 8)]
    packets = []
    for unit in units:
        if len(unit) <= 1100:
            packets.append(unit)
            continue
        parts = [unit[at : at + 1100] for at in range(1, len(unit), 1100)]
        for at, part in enumerate(parts):
            edge = 0x80 * (at == 0) | 0x40 * (at == len(parts) - 1)
            packets.append(bytes([unit[0] & 0xE0 | 28, edge | unit[0] & 0x1F]) + part)
    return packets


def vp8(size: str) -> list[bytes]:
    """Returns the packets of a keyframe."""
    frame = encoded("libvpx", size, "ivf", "-deadline", "realtime", "-cpu-used", "8")[32 + 12 :]
    parts = [frame[at : at + 1100] for at in range(0, len(frame), 1100)]
    return [bytes([0x10 if at == 0 else 0]) + part for at, part in enumerate(parts)]


def vp8_header(width: int, height: int) -> list[bytes]:
    """Returns a keyframe of any size, with almost no data."""
    tag = (500 << 5 | 1 << 4).to_bytes(3, "little")
    sides = struct.pack("<HH", width, height)
    return [b"\x10" + tag + b"\x9d\x01\x2a" + sides + bytes(900)]


def av1(keyframe: bool, forbidden: bool) -> list[bytes]:
    """Returns a frame in which the OBU's forbidden bit may be set."""
    unit = bytes([0x30 | 0x80 * forbidden, 1, 2, 3])
    if keyframe:
        return [bytes([0x28, len(SEQUENCE)]) + SEQUENCE + unit]
    return [b"\x10" + unit]
