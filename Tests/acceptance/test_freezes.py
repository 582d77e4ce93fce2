"""The hop at which a viewer's picture froze: each cause is planted in a call of two Chromium, and
the hop that sfud names is compared with it.

The same with many more calls and causes runs in virtual time (`FreezeHopTests`). Each cause is
planted `SFUD_FREEZES` times here (once, unless that is set)."""

import asyncio
import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

import pytest

from harness import expect
from harness.link import Link
from harness.looks import ALICE
from harness.media import Frame
from test_newcomers import CAMERA

SPOIL = (Path(__file__).parent / "harness/spoil.js").read_text()
#: Times that each cause is planted.
TIMES = int(os.environ.get("SFUD_FREEZES", 1))
#: Seconds without a new picture that count as a freeze, at 30 frames a second as WebRTC does.
FROZEN = 0.184


class Call:
    """A publisher and a viewer, each behind a line of its own, and the ways to disturb them."""

    def __init__(self, sfud, alice, bob, seen):
        self.sfud, self.alice, self.bob, self.seen = sfud, alice, bob, seen

    @contextlib.asynccontextmanager
    async def uplink_dead(self):
        self.alice.link.loss_up = 1.0
        yield
        self.alice.link.loss_up = 0.0

    @contextlib.asynccontextmanager
    async def encoder_stopped(self):
        await self.alice.peer.evaluate("clearInterval(peer.sources[0].timer)")
        yield
        await self.alice.peer.evaluate(
            "(source => source.timer = setInterval(() => source.draw(), 1000 / source.fps))"
            "(peer.sources[0])"
        )

    @contextlib.asynccontextmanager
    async def encodings_paused(self):
        await self.alice.peer.encode([])
        yield
        await self.alice.peer.encode(["q", "h", "f"])

    @contextlib.asynccontextmanager
    async def sfud_stopped(self):
        os.killpg(self.sfud.process.pid, signal.SIGSTOP)
        yield
        os.killpg(self.sfud.process.pid, signal.SIGCONT)

    @contextlib.asynccontextmanager
    async def downlink_dead(self):
        self.bob.link.loss = 1.0
        yield
        self.bob.link.loss = 0.0

    @contextlib.asynccontextmanager
    async def downlink_narrow(self):
        rate = self.bob.link.rate
        self.bob.link.rate = 40_000
        yield
        self.bob.link.rate = rate

    @contextlib.asynccontextmanager
    async def decoder_broken(self):
        await self.bob.peer.evaluate("spoil.on = true")
        yield
        await self.bob.peer.evaluate("spoil.on = false")


#: (cause, hop, seconds for which it lasts)
CAUSES = [
    (Call.uplink_dead, "publisher-uplink", 0.8),
    (Call.encoder_stopped, "publisher-encoder", 1.0),
    (Call.encodings_paused, "publisher-encoder", 1.0),
    (Call.sfud_stopped, "sfu", 0.7),
    (Call.downlink_dead, "viewer-downlink", 0.8),
    (Call.downlink_narrow, "viewer-downlink", 3.0),
    (Call.decoder_broken, "viewer-decoder", 1.5),
]


def gaps(frames: list[Frame]) -> list[tuple[float, float]]:
    """Returns (begin, length) of what a viewer takes for a freeze."""
    changes = frames[:1] + [
        after for before, after in itertools.pairwise(frames) if after.counter != before.counter
    ]
    return [
        (before.time, after.time - before.time)
        for before, after in itertools.pairwise(changes)
        if after.time - before.time > FROZEN
    ]


async def verdict(call: Call, since: float) -> tuple[float, dict | None]:
    """Returns the longest freeze since then in seconds, as the viewer saw it, and as sfud tells
    it."""
    frames = await call.bob.peer.frames(call.seen.video, since - 0.2)
    real = max((length for _, length in gaps(frames)), default=0.0)
    told = await call.bob.room.call("subscription.explain", subscription=call.seen.id)
    found = [one for one in told["freezes"]["recent"] if one["time"] > since - 0.5]
    return real, max(found, key=lambda one: one["seconds"], default=None)


@pytest.fixture
def call(loop, sfud, room, peers):
    async def make() -> Call:
        lines = [await Link.open(rate=10_000_000, delay=0.02) for _ in range(2)]
        alice = await room.join("alice", await peers("Chromium"), link=lines[0], **ALICE, **CAMERA)
        viewer = await peers("Chromium")
        await viewer.evaluate(f"(() => {{ {SPOIL} return 0; }})()")
        bob = await room.join("bob", viewer, slots=1, link=lines[1])
        await room.layers(3)
        seen = await bob.subscribe(alice.stream)
        await expect.first_frame(bob.peer, seen.video, ALICE["hue"], seen.since)
        made.append(Call(sfud, alice, bob, seen))
        return made[0]

    made: list[Call] = []
    yield make
    for one in made:
        for member in (one.alice, one.bob):
            loop.run_until_complete(member.link.close())


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.seconds(30 + TIMES * len(CAUSES) * 10)
async def test_a_freeze_is_attributed_to_the_hop_where_it_was_planted(call, capsys):
    made = await call()
    wrong, count = [], 0
    for _ in range(TIMES):
        for cause, hop, seconds in CAUSES:
            await asyncio.sleep(3)
            since = time.time()
            async with cause(made):
                await asyncio.sleep(seconds)
            await asyncio.sleep(2.5)
            real, told = await verdict(made, since)
            name = told and f"{told['hop']} ({told['reason']}), {told['seconds']:.2f} s"
            with capsys.disabled():
                print(f"\n{cause.__name__}: seen {real:.2f} s, told {name}", end="")
            if real:
                count += 1
                if not told or told["hop"] != hop:
                    wrong.append((cause.__name__, real, name))
    assert count >= TIMES * len(CAUSES) * 3 // 4
    assert len(wrong) * 20 <= count, wrong
