"""Receivers of plain RTP: a socket that reads packets itself, and tools that decode."""

import asyncio
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

from harness import process, recorded
from harness.media import Frame, read_picture

WIDTH, HEIGHT = 320, 180


@dataclass(frozen=True)
class Packet:
    """One RTP packet without extensions."""

    number: int
    timestamp: int
    ssrc: int
    type: int
    marker: bool
    payload: bytes

    @classmethod
    def read(cls, data: bytes) -> "Packet":
        first, second, number, timestamp, ssrc = struct.unpack(">BBHII", data[:12])
        assert first == 0x80, data[:12].hex()
        return cls(number, timestamp, ssrc, second & 0x7F, second >= 0x80, data[12:])


class Receiver:
    """A UDP socket on a port of 127.0.0.1, with everything received since it was opened."""

    def __init__(self, port: int):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("127.0.0.1", port))
        self.socket.setblocking(False)

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(self, *_) -> None:
        self.socket.close()

    def datagrams(self) -> list[bytes]:
        """Returns the datagrams received since the last call."""
        found = []
        while True:
            try:
                found.append(self.socket.recv(2048))
            except BlockingIOError:
                return found

    def packets(self) -> list[Packet]:
        return [Packet.read(data) for data in self.datagrams()]


def pictures(raw: bytes) -> list[Frame]:
    """Returns decoded I420 pictures of 320x180; their times are unknown."""
    luma, chroma = WIDTH * HEIGHT, WIDTH * HEIGHT // 4
    size = luma + 2 * chroma
    strides = (WIDTH, WIDTH // 2)
    return [
        read_picture(
            0, WIDTH, HEIGHT, raw[at : at + luma], strides,
            raw[at + luma : at + luma + chroma], raw[at + luma + chroma : at + size],
        )
        for at in range(0, len(raw) - size + 1, size)
    ]  # fmt: skip


class FFmpeg:
    """An ffmpeg process that reads an SDP and records the media until an RTCP BYE."""

    def __init__(self, sdp: str, directory: Path):
        self.video, self.audio = directory / "video.mkv", directory / "audio.mkv"
        self.log = directory / "ffmpeg.log"
        self.description = directory / "stream.sdp"
        self.description.write_text(sdp)

    async def start(self) -> "FFmpeg":
        self.child = await process.start(
            "ffmpeg", "-v", "warning", "-protocol_whitelist", "file,rtp,udp",
            "-analyzeduration", "1000000", "-i", self.description, "-map", "0:v", "-c", "copy", self.video,
            "-map", "0:a", "-c", "copy", self.audio, output=self.log,
        )  # fmt: skip
        return self

    async def ended(self) -> int:
        try:
            return await asyncio.wait_for(self.child.wait(), 5)
        finally:
            await process.kill(self.child)


#: GStreamer's elements from RTP to pictures, and the payload types.
ELEMENTS = {
    "H264": (102, "rtph264depay ! h264parse ! avdec_h264"),
    "VP9": (98, "rtpvp9depay ! vp9dec"),
}


class GStreamer:
    """A gst-launch process that decodes the media arriving at a port."""

    def __init__(self, port: int, codec: str, directory: Path):
        self.port, self.codec = port, codec
        self.raw, self.log = directory / "pictures.yuv", directory / "gst.log"

    async def __aenter__(self) -> "GStreamer":
        payload, elements = ELEMENTS[self.codec]
        pipeline = (
            f"udpsrc address=127.0.0.1 port={self.port} caps=application/x-rtp,media=video,"
            f"clock-rate=90000,encoding-name={self.codec},payload={payload} ! rtpjitterbuffer ! "
            f"{elements} ! videoconvert ! videoscale ! "
            f"video/x-raw,format=I420,width={WIDTH},height={HEIGHT} ! "
            f"filesink buffer-mode=unbuffered location={self.raw}"
        )
        self.child = await process.start("gst-launch-1.0", "-q", *pipeline.split(), output=self.log)
        return self

    async def __aexit__(self, *_) -> None:
        await process.kill(self.child)

    def pictures(self) -> list[Frame]:
        return pictures(self.raw.read_bytes()) if self.raw.exists() else []


def leb128(number: int) -> bytes:
    found = bytearray()
    while True:
        found.append(number & 0x7F | (0x80 if number > 0x7F else 0))
        number >>= 7
        if not number:
            return bytes(found)


def read_leb128(data: bytes) -> tuple[int, bytes]:
    value = 0
    for index, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, data[index + 1 :]
    raise AssertionError("a number without an end")


def av1_pictures(packets: list[Packet], directory: Path) -> list[Frame]:
    """Returns the pictures of AV1 packets in order (AV1 RTP specification §4), decoded by ffmpeg,
    whose build here has no depacketizer for it."""
    stream, timestamp, pending = bytearray(), None, b""
    for packet in packets:
        if packet.timestamp != timestamp:
            timestamp = packet.timestamp
            stream += b"\x12\x00"
        header, data = packet.payload[0], packet.payload[1:]
        count = header >> 4 & 3
        elements = []
        while data:
            if count and len(elements) == count - 1:
                elements.append(data)
                break
            length, data = read_leb128(data)
            elements.append(data[:length])
            data = data[length:]
        if header & 0x80:
            elements[0] = pending + elements[0]
        pending = elements.pop() if header & 0x40 else b""
        for obu in elements:
            # Each OBU gets its size, which RTP omits.
            extended = bool(obu[0] & 4)
            head = bytes([obu[0] | 2]) + obu[1 : 1 + extended]
            body = obu[1 + extended :]
            stream += head + leb128(len(body)) + body
    path = directory / "video.obu"
    path.write_bytes(stream)
    raw = recorded.run(
        "ffmpeg", "-v", "error", "-f", "obu", "-i", str(path), "-vf", f"scale={WIDTH}:{HEIGHT}",
        "-fps_mode", "passthrough", "-pix_fmt", "yuv420p", "-f", "rawvideo", "-",
    )  # fmt: skip
    return pictures(raw)
