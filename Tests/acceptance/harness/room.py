"""A room as a signalling server runs it: joins, offers and subscriptions over the IPC."""

import itertools
import time
from dataclasses import dataclass, field
from typing import Any

from harness.ipc import IPC
from harness.link import Link
from harness.peer import Peer
from harness.process import until

_numbers = itertools.count(1)


@dataclass
class Subscription:
    id: str
    audio: str | None
    """The mid on which its sound arrives."""
    video: str | None
    since: float
    """Unix time of the call."""


@dataclass
class Member:
    """A participant and its peer."""

    room: "Room"
    id: str
    peer: Peer
    link: Link | None = None
    """What is between the peer and sfud; None: nothing."""
    stream: str | None = None
    """What it publishes."""
    mids: list[dict[str, Any]] = field(default_factory=list)
    offers: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)

    async def negotiate(self, **params: Any) -> None:
        """Makes an offer, and applies sfud's answer."""
        offer = await self.peer.offer()
        result = await self.room.call("transport.offer", participant=self.id, sdp=offer, **params)
        self.mids = result["mids"]
        streams = {mid["stream"] for mid in self.mids if mid.get("stream")}
        # Without `sources` everything sent on one transport is one stream.
        assert len(streams) <= 1 or "sources" in params, self.mids
        self.stream = next(iter(streams), None)
        self.offers.append(offer)
        self.answers.append(result["sdp"])
        answer = result["sdp"]
        await self.peer.accept(await self.link.rewrite(answer) if self.link else answer)

    async def subscribe(self, stream: str, **params: Any) -> Subscription:
        since = time.time()
        result = await self.room.call(
            "subscription.add", participant=self.id, stream=stream, **params
        )
        return Subscription(
            result["subscription"], result.get("audioMid"), result.get("videoMid"), since
        )

    async def leave(self) -> None:
        await self.room.call("participant.leave", participant=self.id)


class Room:
    """A room of its own for one test."""

    def __init__(self, ipc: IPC):
        self.ipc = ipc
        self.id = f"room{next(_numbers)}"

    async def call(self, method: str, /, **params: Any) -> dict[str, Any]:
        return await self.ipc.call(method, room=self.id, **params)

    async def open(self, **settings: Any) -> "Room":
        params = {"settings": settings} if settings else {}
        await self.ipc.call("events.subscribe")
        await self.call("room.create", **params)
        return self

    async def join(
        self, name: str, peer: Peer, slots: int = 0, link: Link | None = None, **publish: Any
    ) -> Member:
        """Joins, publishing as `publish` says (nothing if it is empty), with `slots` slots of each
        kind; returns once the transport is connected."""
        await self.call("participant.join", participant=name)
        if publish:
            await peer.publish(**publish)
        if slots:
            await peer.receive(slots)
        member = Member(self, name, peer, link)
        await member.negotiate()
        await self.connected(name)
        return member

    async def layers(self, count: int, seconds: float = 20) -> None:
        """Waits until the only stream sends `count` layers of video, whose sizes are known."""

        async def sent():
            [stream] = (await self.call("stream.list"))["streams"]
            layers = stream.get("video", {}).get("layers", [])
            return len(layers) == count and all(one["active"] and one["width"] for one in layers)

        await until(sent, f"{count} layers are sent", seconds)

    async def connected(self, name: str) -> None:
        await self.ipc.wait_for(
            "participant.connection",
            lambda data: data["participant"] == name and data["connection"] == "connected",
            10,
        )
