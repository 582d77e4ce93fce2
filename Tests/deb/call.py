"""A call through the gateway: a publisher by WHIP, and a viewer by WHEP who decodes its video.

    call.py TOKEN

It prints "sees" when the viewer has decoded a second of video. For each line on standard input it
expects another second of it, and prints "sees" again.
"""

import asyncio
import sys

import aiohttp
import aioice.ice
from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import VideoStreamTrack

GATEWAY = "http://127.0.0.1:8080"
FRAMES, SECONDS = 30, 30

# aioice omits loopback, and the test's network namespace has nothing else.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]


class Viewer:
    def __init__(self, track):
        self.frames = 0
        self.task = asyncio.create_task(self._watch(track))

    async def _watch(self, track) -> None:
        while await track.recv():
            self.frames += 1

    async def sees(self) -> None:
        """Awaits frames that are decoded from now on."""
        end = self.frames + FRAMES
        async with asyncio.timeout(SECONDS):
            while self.frames < end:
                await asyncio.sleep(0.05)
        print("sees", flush=True)


async def post(http: aiohttp.ClientSession, path: str, peer: RTCPeerConnection, token: str) -> None:
    """Offers, and applies the answer."""
    await peer.setLocalDescription(await peer.createOffer())
    async with http.post(
        GATEWAY + path,
        data=peer.localDescription.sdp,
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/sdp"},
    ) as reply:
        answer = await reply.text()
        assert reply.status == 201, f"{path}: {reply.status} {answer}"
    await peer.setRemoteDescription(RTCSessionDescription(answer, "answer"))


async def main() -> None:
    token = sys.argv[1]
    publisher, peer = (RTCPeerConnection(RTCConfiguration(iceServers=[])) for _ in range(2))
    async with aiohttp.ClientSession() as http:
        publisher.addTransceiver(VideoStreamTrack(), direction="sendonly")
        await post(http, "/whip", publisher, token)
        peer.addTransceiver("video", direction="recvonly")
        await post(http, "/whep", peer, token)
        viewer = Viewer(peer.getReceivers()[0].track)
        await viewer.sees()
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            await viewer.sees()
        viewer.task.cancel()
        await asyncio.gather(publisher.close(), peer.close())


asyncio.run(main())
