"""The smallest call: Alice publishes, Bob sees and hears her."""

import contextlib
import itertools
from dataclasses import dataclass

from harness import expect
from harness.ipc import IPC
from harness.link import Link
from harness.looks import ALICE
from harness.media import Frame
from harness.peer import Peer
from harness.room import Member, Room, Subscription
from harness.sfud import Sfud


@dataclass
class Scene:
    room: Room
    alice: Member
    bob: Member
    seen: Subscription

    @property
    def ipc(self) -> IPC:
        return self.room.ipc

    async def moving(self, since: float | None = None, **bounds: float) -> list[Frame]:
        """Awaits that Bob sees Alice move, from `since` on; `bounds` as in `expect.moving`."""
        since = self.seen.since if since is None else since
        peer, mid = self.bob.peer, self.seen.video
        return await expect.moving(peer, mid, ALICE["hue"], since, **bounds)

    async def heard(self, since: float | None = None) -> None:
        since = self.seen.since if since is None else since
        await expect.heard(self.bob.peer, self.seen.audio, ALICE["tone"], since)

    async def frames(self, since: float) -> list[Frame]:
        return await self.bob.peer.frames(self.seen.video, since)

    async def remotes(self) -> list[str]:
        """Returns the remote addresses of the two, as sfud sees them."""
        return [one["remote"] for one in (await self.room.call("stats.get"))["transports"]]


async def watch(
    room: Room, alice: Peer, bob: Peer, up: Link | None = None, down: Link | None = None, **look
) -> Scene:
    """Lets Bob see Alice, the publisher behind the one link, the viewer behind the other."""
    publisher = await room.join("alice", alice, link=up, **ALICE, **look)
    viewer = await room.join("bob", bob, slots=1, link=down)
    scene = Scene(room, publisher, viewer, await viewer.subscribe(publisher.stream))
    await scene.moving()
    return scene


@contextlib.asynccontextmanager
async def watching(
    daemon: Sfud, alice: Peer, bob: Peer, up: Link | None = None, down: Link | None = None
):
    """The same in a room of its own."""
    async with daemon.client() as ipc:
        yield await watch(await Room(ipc).open(), alice, bob, up, down)


def longest_gap(frames: list[Frame]) -> float:
    """Returns the longest gap, in seconds."""
    return max(after.time - before.time for before, after in itertools.pairwise(frames))
