"""GStreamer's `webrtcbin`, in a process of Debian's Python (see gst_helper.py)."""

import asyncio
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

from harness import process
from harness.media import Frame, Sound
from harness.peer import Peer

HELPER = Path(__file__).with_name("gst_helper.py")
PYTHON = "/usr/bin/python3"


class GstPeer(Peer):
    stack = "GStreamer"
    codecs = ("VP8", "H264", "VP9")

    def __init__(self, child: asyncio.subprocess.Process, log: Path):
        self.process, self.log = child, log
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls) -> "GstPeer":
        log = Path(tempfile.mkstemp(prefix="sfud-gst-", suffix=".log")[1])
        pipe = asyncio.subprocess.PIPE
        child = await process.start(
            PYTHON, HELPER, output=log, stdin=pipe, stdout=pipe, limit=1 << 24
        )
        return cls(child, log)

    async def _read(self) -> None:
        while line := await self.process.stdout.readline():
            reply = json.loads(line)
            self._waiting.pop(reply["id"]).set_result(reply)
        for future in self._waiting.values():
            future.set_exception(AssertionError(f"GStreamer ended:\n{self.log.read_text()}"))

    async def _request(self, do: str, **params: Any) -> Any:
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        self.process.stdin.write(json.dumps({"id": number, "do": do, **params}).encode() + b"\n")
        reply = await asyncio.wait_for(self._waiting[number], 20)
        assert "error" not in reply, f"GStreamer, {do}: {reply['error']}\n{self.log.read_text()}"
        return reply["result"]

    async def publish(
        self,
        *,
        hue,
        tone,
        codec=None,
        audio=True,
        video=True,
        speech=False,
        simulcast=False,
        sendrecv=False,
        width=640,
        height=360,
        fps=20,
    ):
        assert not simulcast and not sendrecv and not speech, "not built for GStreamer"
        await self._request(
            "publish",
            hue=hue,
            tone=tone,
            codec=codec,
            audio=audio,
            video=video,
            width=width,
            height=height,
            fps=fps,
        )

    async def receive(self, slots=1):
        await self._request("receive", slots=slots)

    async def offer(self):
        return await self._request("offer")

    async def accept(self, answer):
        await self._request("accept", sdp=answer)

    async def answer(self, offer):
        return await self._request("answer", sdp=offer)

    async def frames(self, mid, since=0):
        return [Frame(**one) for one in await self._request("frames", mid=mid, since=since)]

    async def sounds(self, mid, since=0):
        return [Sound(**one) for one in await self._request("sounds", mid=mid, since=since)]

    async def stats(self):
        return await self._request("stats")

    async def close(self):
        await process.kill(self.process)
        self._reader.cancel()
        self.log.unlink(missing_ok=True)
