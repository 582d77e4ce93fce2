"""Interface of the tests' WebRTC clients, for every stack."""

import abc
import json
from typing import Any

from harness.media import Frame, Sound, hue_of


class Peer(abc.ABC):
    """A peer connection that always makes the offer, as sfud requires."""

    #: Name of the stack in messages of tests.
    stack = ""
    #: Codecs of its video encoder and decoder, as SDP spells them.
    codecs: tuple[str, ...] = ("VP8",)

    @abc.abstractmethod
    async def publish(
        self,
        *,
        hue: float,
        tone: float,
        codec: str | None = None,
        audio: bool = True,
        video: bool = True,
        speech: bool = False,
        simulcast: bool = False,
        sendrecv: bool = False,
        width: int = 640,
        height: int = 360,
        fps: int = 20,
        noise: int = 0,
        bitrates: list[int] | None = None,
        beeps: bool = False,
    ) -> None:
        """Adds a microphone with a sine of `tone` hertz and a camera with a picture of `hue`.

        Without `codec` the stack's own order of preference applies; with `sendrecv` the m-lines are
        slots as well; `noise` specks (browsers only) make the picture hard to encode; `bitrates`
        (browsers only) is the most that each layer may take, lowest first, in bits a second. Takes
        effect with the next offer. With `speech` the microphone is silent until `speak`; with
        `beeps` (browsers and aiortc) it is heard for a fifth of each second, in browsers from each
        picture on whose counter `fps` divides.
        """

    @abc.abstractmethod
    async def receive(self, slots: int = 1) -> None:
        """Adds `slots` audio and `slots` video m-lines to receive on, with the next offer."""

    @abc.abstractmethod
    async def offer(self) -> str:
        """Returns a local offer with all its candidates, set as local description."""

    @abc.abstractmethod
    async def accept(self, answer: str) -> None:
        """Sets the remote description."""

    @abc.abstractmethod
    async def answer(self, offer: str) -> str:
        """Answers another client; only for testing clients without sfud."""

    @abc.abstractmethod
    async def frames(self, mid: str, since: float = 0) -> list[Frame]:
        """Returns the pictures shown on a receiving m-line after the Unix time `since`."""

    @abc.abstractmethod
    async def sounds(self, mid: str, since: float = 0) -> list[Sound]:
        """Returns the sound heard on a receiving m-line after the Unix time `since`."""

    @abc.abstractmethod
    async def stats(self) -> dict[str, Any]:
        """Returns {connection, in: [...], out: [...]}: as far as the stack has it, in the terms of
        W3C webrtc-stats, one entry an RTP stream with at least `kind` and `mid`; from browsers also
        `available`, the bits a second that the path is taken for."""

    @abc.abstractmethod
    async def close(self) -> None:
        """Releases the peer's resources; nothing may be called after it."""

    async def restart_ice(self) -> None:
        """Makes the next offer an ICE restart."""
        raise NotImplementedError(f"{self.stack} cannot restart ICE")

    async def stir(self, kept: int) -> None:
        """Makes a random change for the next offer, in the m-lines after the first `kept`: one is
        added, ends, or changes direction; or the offer is an ICE restart."""
        raise NotImplementedError(f"{self.stack} cannot be stirred")

    async def speak(self, on: bool = True, sweep: float = 0) -> None:
        """Begins endless speech, or falls silent.

        With `sweep` (browsers only) its tone rises by so many hertz a second, for four seconds.
        """
        raise NotImplementedError(f"{self.stack} cannot speak")

    async def inbound(self, mid: str) -> dict[str, Any]:
        """Returns the one received RTP stream of an m-line; empty before its first packet."""
        entries = [entry for entry in (await self.stats())["in"] if entry.get("mid") == mid]
        assert len(entries) < 2, f"{self.stack} sees several streams on m-line {mid}: {entries}"
        return entries[0] if entries else {}


class PagePeer(Peer):
    """A peer in a browser's page: `page.js`, called through `call`."""

    @abc.abstractmethod
    async def evaluate(self, expression: str) -> Any:
        """Returns the JSON value of an expression, awaited if it is a promise."""

    async def call(self, method: str, *arguments: Any) -> Any:
        return await self.evaluate(f"peer.{method}(...{json.dumps(arguments)})")

    async def show(self, algorithm: str) -> None:
        """Starts again with a certificate whose key is of this algorithm, a JavaScript object."""
        await self.evaluate(
            f"RTCPeerConnection.generateCertificate({algorithm}).then((shown) => {{"
            "peer.connection.close();"
            "window.peer = new peer.constructor({ certificates: [shown] });"
            "return 0; })"
        )

    async def configure(self, configuration: dict[str, Any]) -> None:
        """Starts again with this `RTCConfiguration`."""
        await self.evaluate(
            "peer.connection.close(),"
            f"window.peer = new peer.constructor({json.dumps(configuration)}), 0"
        )

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
        noise=0,
        bitrates=None,
        beeps=False,
    ):
        options = {name: value for name, value in locals().items() if name != "self"}
        await self.call("publish", options)

    async def receive(self, slots=1):
        await self.call("receive", slots)

    async def offer(self):
        return await self.call("offer")

    async def accept(self, answer):
        await self.call("accept", answer)

    async def answer(self, offer):
        return await self.call("answer", offer)

    async def frames(self, mid, since=0):
        return [
            Frame(time, width, height, hue_of(red, green, blue), counter)
            for time, width, height, red, green, blue, counter in await self.call(
                "frames", mid, since
            )
        ]

    async def sounds(self, mid, since=0):
        return [Sound(*sound) for sound in await self.call("sounds", mid, since)]

    async def stats(self):
        return await self.call("stats")

    async def path(self):
        """Returns {local, remote, port, type, relay}: the protocols of the selected pair, sfud's
        port, the type of the browser's candidate, and how it reaches its relay; or None."""
        return await self.call("path")

    async def restart_ice(self):
        await self.call("restartIce")

    async def stir(self, kept):
        await self.call("stir", kept)

    async def encode(self, rids):
        """Enables the simulcast encodings of these names, and disables the others."""
        await self.call("encode", rids)

    async def speak(self, on=True, sweep=0):
        await self.call("speak", on, sweep)
