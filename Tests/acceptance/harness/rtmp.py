"""A live stream server: nginx with its RTMP module, and its viewers."""

import array
import asyncio
import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import process
from harness.media import Frame, Sound, ToneMeter, read_picture
from harness.sfud import free_ports

CONFIGURATION = """
daemon off;
worker_processes 1;
pid {directory}/nginx.pid;
error_log {directory}/error.log notice;
load_module /usr/lib/nginx/modules/ngx_rtmp_module.so;
load_module /usr/lib/nginx/modules/ngx_stream_module.so;
events {{ worker_connections 64; }}
rtmp {{
    access_log {directory}/access.log;
    server {{
        listen 127.0.0.1:{port};
        chunk_size 4096;
        application live {{ live on; record off; }}
        application closed {{ live on; deny publish all; }}
    }}
}}
"""

#: A TLS proxy in front of it (RTMPS).
ENCRYPTED = """
stream {{
    server {{
        listen 127.0.0.1:{tls_port} ssl;
        ssl_certificate {directory}/server.pem;
        ssl_certificate_key {directory}/server.key;
        proxy_pass 127.0.0.1:{port};
    }}
}}
"""


def certify(directory: Path, name: str) -> None:
    """Makes `server.pem` and `server.key` for a host's name, signed by the authority `ca.pem`."""

    def openssl(*arguments: str) -> None:
        done = subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(
        "req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
        "-subj", "/CN=test authority",
    )
    openssl("req", *key, "-keyout", "server.key", "-out", "server.csr", "-subj", f"/CN={name}")
    (directory / "names").write_text(f"subjectAltName=DNS:{name}\n")
    openssl(
        "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
        "-CAcreateserial", "-out", "server.pem", "-days", "2", "-extfile", "names",
    )


class Nginx:
    """A running nginx with a configuration and a directory of its own."""

    def __init__(self, directory: Path, encrypted: bool = False):
        self.directory = directory
        self.port = free_ports()
        self.configuration = CONFIGURATION.format(directory=directory, port=self.port)
        if encrypted:
            certify(directory, "localhost")
            self.tls_port = free_ports()
            self.configuration += ENCRYPTED.format(
                directory=directory, port=self.port, tls_port=self.tls_port
            )

    async def start(self) -> "Nginx":
        configuration = self.directory / "nginx.conf"
        configuration.write_text(self.configuration)
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.process = await process.start(
            nginx, "-p", self.directory, "-c", configuration,
            "-e", self.directory / "error.log", output=self.directory / "nginx.log",
        )
        await process.until(self.answers, "nginx takes connections", 5)
        return self

    async def answers(self) -> bool:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        writer.close()
        return True

    async def stop(self) -> None:
        await process.kill(self.process)

    def url(self, key: str, application: str = "live") -> str:
        return f"rtmp://127.0.0.1:{self.port}/{application}/{key}"


async def probe(url: str) -> dict[str, dict]:
    """Returns the streams that a viewer gets, by kind, as ffprobe sees them."""
    child = await asyncio.create_subprocess_exec(
        "ffprobe", "-v", "error", "-show_streams", "-of", "json", "-rw_timeout", "10000000",
        "-analyzeduration", "5000000", url,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(child.communicate(), 20)
    assert child.returncode == 0, err.decode()
    return {stream["codec_type"]: stream for stream in json.loads(out)["streams"]}


async def sounds(url: str, seconds: float) -> list[Sound]:
    """Returns a viewer's sound from the start, in tenths of a second."""
    child = await asyncio.create_subprocess_exec(
        "ffmpeg", "-v", "error", "-i", url, "-t", str(seconds), "-vn", "-ac", "1",
        "-ar", "48000", "-f", "s16le", "-", stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await asyncio.wait_for(child.communicate(), 30)
    found = ToneMeter(48_000).feed(0, array.array("h", out))
    return [Sound((index + 1) / 10, one.level, one.tone) for index, one in enumerate(found)]


@dataclass(frozen=True)
class Shown(Frame):
    """A picture with its time on the event loop, and the hues of its halves' middles."""

    left: float = -1
    right: float = -1


class Viewer:
    """A viewer of a stream that collects pictures as they arrive."""

    WIDTH, HEIGHT = 320, 180

    def __init__(self, url: str):
        self.url = url
        self.frames: list[Shown] = []

    async def __aenter__(self) -> "Viewer":
        self.child = await asyncio.create_subprocess_exec(
            "ffmpeg", "-v", "error", "-fflags", "nobuffer", "-flags", "low_delay",
            "-analyzeduration", "3000000", "-i", self.url,
            "-an", "-vf", f"scale={self.WIDTH}:{self.HEIGHT}", "-pix_fmt", "yuv420p",
            "-fps_mode", "passthrough", "-f", "rawvideo", "-",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            limit=1 << 20, start_new_session=True,
        )
        self.reader = asyncio.create_task(self.read())
        return self

    async def __aexit__(self, *_) -> None:
        self.reader.cancel()
        await process.kill(self.child)

    async def read(self) -> None:
        width, height = self.WIDTH, self.HEIGHT
        luma, chroma = width * height, width * height // 4
        while True:
            try:
                raw = await self.child.stdout.readexactly(luma + 2 * chroma)
            except asyncio.IncompleteReadError:
                return
            y, u, v = raw[:luma], raw[luma : luma + chroma], raw[luma + chroma :]
            now = asyncio.get_running_loop().time()
            whole = read_picture(now, width, height, y, (width, width // 2), u, v)
            halves = [self.hue(y, u, v, left) for left in (0, width // 2)]
            self.frames.append(Shown(now, width, height, whole.hue, whole.counter, *halves))

    def hue(self, y: bytes, u: bytes, v: bytes, left: int) -> float:
        """Returns the hue of a half, in a band across its middle."""
        width, half, rows = self.WIDTH, self.WIDTH // 2, range(80, 92)
        luma = b"".join(y[row * width + left :][:half] for row in rows)
        chroma = [
            b"".join(one[row * half + left // 2 :][: half // 2] for row in range(40, 46))
            for one in (u, v)
        ]
        return read_picture(0, half, len(rows), luma, (half, half // 2), *chroma).hue

    async def sees(self, condition, what: str, seconds: float) -> Frame:
        """Returns the first picture from now on for which `condition` holds."""
        start = len(self.frames)

        async def found():
            return next((frame for frame in self.frames[start:] if condition(frame)), None)

        return await process.until(found, what, seconds, every=0.02)
