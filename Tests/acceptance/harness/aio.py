"""A peer with aiortc, in the tests' own process."""

import array
import asyncio
import fractions
import math
import random
import time

import aioice.ice
import aioice.stun
import aiortc
import av
from aiortc.mediastreams import MediaStreamError

from harness.media import Picture, ToneMeter, read_picture
from harness.peer import Peer

AUDIO_RATE = 48000

# aioice omits loopback, and the tests' network namespace has nothing else.
aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1", "::1"]


class Camera(aiortc.MediaStreamTrack):
    kind = "video"

    def __init__(self, hue: float, width: int, height: int, fps: int):
        super().__init__()
        self._picture = Picture(hue, width, height)
        self._fps = fps
        self._counter = 0
        self._start = time.monotonic()

    def drawn(self, counter: int) -> float:
        return self._start + counter / self._fps

    async def recv(self) -> av.VideoFrame:
        await asyncio.sleep(self._start + self._counter / self._fps - time.monotonic())
        frame = av.VideoFrame(self._picture.width, self._picture.height, "yuv420p")
        for plane, data in zip(frame.planes, self._picture.planes(self._counter)):
            width = plane.width
            if plane.line_size != width:
                data = b"".join(
                    data[at : at + width].ljust(plane.line_size, b"\0")
                    for at in range(0, len(data), width)
                )
            plane.update(data)
        frame.pts = self._counter * 90000 // self._fps
        frame.time_base = fractions.Fraction(1, 90000)
        self._counter += 1
        return frame


class Microphone(aiortc.MediaStreamTrack):
    kind = "audio"

    def __init__(self, tone: float, speech: bool, beeps: bool):
        super().__init__()
        self._tone = tone
        #: Whether it speaks (syllables of 200 ms with varying loudness); `None` is a steady tone.
        self.speaks: bool | None = False if speech else None
        self._beeps = beeps
        self._sent = 0
        self._start = time.monotonic()

    async def recv(self) -> av.AudioFrame:
        count = AUDIO_RATE // 50
        await asyncio.sleep(self._start + self._sent / AUDIO_RATE - time.monotonic())
        loudness = self._loudness()
        samples = array.array(
            "h",
            (
                round(loudness * math.sin(2 * math.pi * self._tone * at / AUDIO_RATE))
                for at in range(self._sent, self._sent + count)
            ),
        )
        frame = av.AudioFrame(format="s16", layout="mono", samples=count)
        frame.planes[0].update(samples.tobytes())
        frame.sample_rate = AUDIO_RATE
        frame.pts = self._sent
        frame.time_base = fractions.Fraction(1, AUDIO_RATE)
        self._sent += count
        return frame

    def _loudness(self) -> float:
        if self.speaks is None:
            # The first fifth of each second, if it beeps.
            return 0 if self._beeps and self._sent % AUDIO_RATE >= AUDIO_RATE // 5 else 16000
        syllable, at = divmod(self._sent * 1000 // AUDIO_RATE, 240)
        if not self.speaks:
            return 0
        # A vowel swells and fades.
        swell = math.sin(math.pi * (at + 10) / 180) if at < 160 else 0.03
        return (5000 + 2750 * ((syllable * 7) % 5)) * swell


class AioPeer(Peer):
    stack = "aiortc"
    codecs = ("VP8", "H264")

    def __init__(self):
        # By default aiortc has a transport for each kind, and when the answer bundles them it
        # leaves the second m-line of a kind on the one that it closes.
        self._connection = aiortc.RTCPeerConnection(
            aiortc.RTCConfiguration(iceServers=[], bundlePolicy=aiortc.RTCBundlePolicy.MAX_BUNDLE)
        )
        self._frames: dict[str, list] = {}
        self._sounds: dict[str, list] = {}
        self._tasks: list[asyncio.Task] = []
        self._tracks: list[aiortc.MediaStreamTrack] = []

        @self._connection.on("track")
        def _(track: aiortc.MediaStreamTrack) -> None:
            watch = self._watch if track.kind == "video" else self._listen
            self._tasks.append(asyncio.create_task(watch(track)))

    def show(self, key, certificate) -> None:
        """Presents another certificate than the usual one; aiortc has no setting for that."""
        shown = [aiortc.RTCCertificate(key, certificate)]
        self._connection._RTCPeerConnection__certificates = shown

    def secrets(self) -> tuple[bytes, dict[str, tuple[bytes, bytes]]]:
        """Returns DTLS's master secret and the exported SRTP master keys and salts (RFC 5764 §4.2),
        `up` to sfud and `down`."""
        transport = self._dtls()
        tls = transport._ssl
        name = tls.get_selected_srtp_profile()
        [profile] = [one for one in transport._srtp_profiles if one.openssl_profile == name]
        key, salt = profile.key_length, profile.salt_length
        view = tls.export_keying_material(b"EXTRACTOR-dtls_srtp", 2 * (key + salt))
        keys, salts = view[: 2 * key], view[2 * key :]
        sides = ("up", "down") if transport._role == "client" else ("down", "up")
        masters = {
            side: (keys[at * key : (at + 1) * key], salts[at * salt : (at + 1) * salt])
            for at, side in enumerate(sides)
        }
        return tls.master_key(), masters

    def _dtls(self) -> aiortc.RTCDtlsTransport:
        [transport] = {one.sender.transport for one in self._connection.getTransceivers()}
        return transport

    def forged_check(self) -> bytes:
        """Returns a connectivity check with its credentials, which nominates whatever address it is
        sent from."""
        ice = self._dtls().transport._connection
        check = aioice.stun.Message(
            message_method=aioice.stun.Method.BINDING,
            message_class=aioice.stun.Class.REQUEST,
        )
        check.attributes["USERNAME"] = f"{ice.remote_username}:{ice.local_username}"
        check.attributes["PRIORITY"] = 1_853_824_767
        check.attributes["ICE-CONTROLLING"] = 1
        check.attributes["USE-CANDIDATE"] = None
        check.add_message_integrity(ice.remote_password.encode())
        return bytes(check)

    def forged_feedback(self) -> bytes:
        """Returns a picture loss indication (RFC 4585 §6.3.1) under its own keys."""
        return self._dtls()._tx_srtp.protect_rtcp(bytes.fromhex("81ce0002 00000001 00000002"))

    def server(self) -> tuple[str, int]:
        """The address of sfud that it sends to."""
        remote = self._dtls().transport._connection._nominated[1].remote_candidate
        return remote.host, remote.port

    def _mid(self, track: aiortc.MediaStreamTrack) -> str:
        return next(
            one.mid for one in self._connection.getTransceivers() if one.receiver.track is track
        )

    async def _watch(self, track: aiortc.MediaStreamTrack) -> None:
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            frame = frame if frame.format.name == "yuv420p" else frame.reformat(format="yuv420p")
            y, u, v = frame.planes
            picture = read_picture(
                time.time(),
                frame.width,
                frame.height,
                bytes(y),
                (y.line_size, u.line_size),
                bytes(u),
                bytes(v),
            )
            self._frames.setdefault(self._mid(track), []).append(picture)

    async def _listen(self, track: aiortc.MediaStreamTrack) -> None:
        meter = ToneMeter(AUDIO_RATE)
        while True:
            try:
                frame = await track.recv()
            except MediaStreamError:
                return
            samples = array.array("h", bytes(frame.planes[0])[: frame.samples * 2 * 2])
            if len(frame.layout.channels) == 2:
                samples = samples[::2]
            sounds = meter.feed(time.time(), samples)
            self._sounds.setdefault(self._mid(track), []).extend(sounds)

    def _add(self, track: aiortc.MediaStreamTrack, direction: str, codec: str | None) -> None:
        self._tracks.append(track)
        transceiver = self._connection.addTransceiver(track, direction=direction)
        if codec:
            codecs = aiortc.RTCRtpSender.getCapabilities("video").codecs
            wanted = [one for one in codecs if one.name in (codec, "rtx")]
            transceiver.setCodecPreferences(wanted)

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
        beeps=False,
    ):
        assert not simulcast, "aiortc has no simulcast"
        direction = "sendrecv" if sendrecv else "sendonly"
        if audio:
            self._add(Microphone(tone, speech, beeps), direction, None)
        if video:
            self._add(Camera(hue, width, height, fps), direction, codec)

    def drawn(self, counter: int) -> float:
        """Returns the time at which a picture was drawn, on the clock of the event loop."""
        [camera] = [track for track in self._tracks if isinstance(track, Camera)]
        return camera.drawn(counter)

    async def speak(self, on=True, sweep=0):
        assert not sweep, "only browsers sweep"
        for track in self._tracks:
            if isinstance(track, Microphone):
                track.speaks = on

    async def receive(self, slots=1):
        for kind in ("audio", "video"):
            for _ in range(slots):
                self._connection.addTransceiver(kind, direction="recvonly")

    async def stir(self, kept):
        """Adds m-lines or changes their direction at random.

        Ends none, because aiortc offers an ended one like the others, and never restarts ICE.
        """
        lines = self._connection.getTransceivers()[kept:]
        if len(lines) < 8 and random.random() < 0.5:
            kind = random.choice(("audio", "video"))
            self._connection.addTransceiver(kind, direction="recvonly")
        elif lines:
            line = random.choice(lines)
            line.direction = "inactive" if line.direction == "recvonly" else "recvonly"

    async def offer(self):
        await self._connection.setLocalDescription(await self._connection.createOffer())
        return self._connection.localDescription.sdp

    async def accept(self, answer):
        await self._connection.setRemoteDescription(
            aiortc.RTCSessionDescription(type="answer", sdp=answer)
        )

    async def answer(self, offer):
        await self._connection.setRemoteDescription(
            aiortc.RTCSessionDescription(type="offer", sdp=offer)
        )
        await self._connection.setLocalDescription(await self._connection.createAnswer())
        return self._connection.localDescription.sdp

    async def frames(self, mid, since=0):
        return [frame for frame in self._frames.get(mid, []) if frame.time >= since]

    async def sounds(self, mid, since=0):
        return [sound for sound in self._sounds.get(mid, []) if sound.time >= since]

    async def stats(self):
        flows = {"connection": self._connection.connectionState, "in": [], "out": []}
        for transceiver in self._connection.getTransceivers():
            for part, key, wanted in (
                (transceiver.receiver, "in", "inbound-rtp"),
                (transceiver.sender, "out", "outbound-rtp"),
            ):
                for entry in (await part.getStats()).values():
                    if entry.type == wanted:
                        flow = {name: value for name, value in vars(entry).items()}
                        flows[key].append({**flow, "mid": transceiver.mid})
        return flows

    async def close(self):
        await self._connection.close()
        for track in self._tracks:
            track.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
