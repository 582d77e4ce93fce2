"""One call over one line: Chromium with a camera, and a viewer behind a link, with sfud between
them or directly."""

import asyncio
import contextlib
import dataclasses
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from harness import process
from harness.chromium import Chromium
from harness.firefox import Firefox
from harness.link import Link
from harness.looks import ALICE
from harness.peer import Peer
from harness.process import until
from harness.room import Room
from harness.sfud import Sfud

from lines import figures
from lines.lines import Line

#: Bitrates are the browser's own. With this noise the layers are far enough apart: with the sound
#: the lowest takes about 0.2, the middle one 0.45, the top one 0.85 Mbit/s.
CAMERA = {"codec": "VP8", "width": 1280, "height": 720, "fps": 20, "noise": 8}

#: Kilobits a second that the direct call's encoder is told to start with, as applications do. It
#: begins with a small picture all the same, and has enlarged it to 720 lines some 12 s later; left
#: to itself it takes half as long again or more.
START = 2_000

#: Seconds between two looks at the estimate.
LOOK = 0.5

SYSTEMS = ("sfud", "direct")


@dataclass(frozen=True)
class Trial:
    """A call to be made."""

    line: Line
    system: str
    """One of `SYSTEMS`."""
    viewer: str
    """The viewer's browser, as `Peer.stack` has it."""
    run: int
    """The seed of the link and the trace."""
    usual: float
    """Seconds of a line of length 1."""
    lead: float
    """Seconds on a free line before."""
    jitter_buffer: int = 0
    """Milliseconds that the viewer asks its jitter buffer to hold; 0 if it asks for none."""

    @property
    def seconds(self) -> float:
        return self.line.seconds(self.usual)


@dataclass
class Connected:
    """A call whose media flow."""

    mid: str
    """The viewer's m-line with the picture."""
    estimate: Callable[[], Awaitable[float | None]]
    """Returns the bits a second that the sender takes the line for."""


class Browsers:
    """A browser for the camera, and one for the viewers of each kind, started on first use."""

    KINDS = {"Chromium": Chromium, "Firefox": Firefox}

    def __init__(self):
        self._running: dict[str, Chromium | Firefox] = {}

    async def camera(self) -> Peer:
        return await self._peer("camera", "Chromium")

    async def viewer(self, stack: str) -> Peer:
        return await self._peer(f"viewer {stack}", stack)

    async def _peer(self, use: str, stack: str) -> Peer:
        if use not in self._running:
            self._running[use] = await self.KINDS[stack].start()
        return await self._running[use].peer()

    async def close(self) -> None:
        for browser in self._running.values():
            await browser.close()


async def make(trial: Trial, browsers: Browsers) -> figures.Recording:
    """Makes a call and returns what was recorded of it."""
    steps = trial.line.schedule(trial.run, trial.usual)
    async with contextlib.AsyncExitStack() as stack:
        camera = await browsers.camera()
        stack.push_async_callback(camera.close)
        viewer = await browsers.viewer(trial.viewer)
        stack.push_async_callback(viewer.close)
        link = await Link.open(trial.run, **(trial.line.lead() if trial.lead else steps[0][1]))
        stack.push_async_callback(link.close)
        if trial.system == "sfud":
            connecting = through_sfud(camera, viewer, link)
        else:
            connecting = directly(camera, viewer, link, START if trial.lead else None)
        call = await stack.enter_async_context(connecting)
        if trial.jitter_buffer:
            await viewer.call("buffer", trial.jitter_buffer)
        return await record(trial, steps, camera, viewer, link, call)


@contextlib.asynccontextmanager
async def through_sfud(camera: Peer, viewer: Peer, link: Link) -> AsyncIterator[Connected]:
    """Has the camera publish three layers to a daemon of their own, and the viewer join once all
    three are sent."""
    daemon = await Sfud.start()
    try:
        async with daemon.client() as ipc:
            room = await Room(ipc).open()
            alice = await room.join("alice", camera, **ALICE, **CAMERA, simulcast=True)
            await room.layers(3, seconds=40)
            bob = await room.join("bob", viewer, slots=1, link=link)
            seen = await bob.subscribe(alice.stream)

            async def estimate():
                told = await room.call("subscription.explain", subscription=seen.id)
                return told.get("estimate")

            yield Connected(seen.video, estimate)
        await daemon.stop()
    finally:
        await process.kill(daemon.process)
        daemon.remove()


@contextlib.asynccontextmanager
async def directly(
    camera: Peer, viewer: Peer, link: Link, start: int | None
) -> AsyncIterator[Connected]:
    """Connects the two by themselves, with a single encoding, which starts with so many kilobits a
    second if `start` is given.

    Only the viewer learns an address, the link's; the camera answers whom it hears from, so that no
    other path is found.
    """
    await camera.publish(**ALICE, **CAMERA)
    offer = await camera.offer()
    answer = await viewer.answer(await link.rewrite(offer))
    answer = re.sub(r"^a=candidate:.*\r\n", "", answer, flags=re.MULTILINE)
    if start:
        format_ = r"^a=rtpmap:(\d+) VP8/90000\r\n"
        extra = rf"\g<0>a=fmtp:\1 x-google-start-bitrate={start}\r\n"
        answer = re.sub(format_, extra, answer, flags=re.MULTILINE)
    await camera.accept(answer)

    async def connected():
        return (await viewer.stats())["connection"] == "connected"

    await until(connected, "the viewer is connected", 20)

    async def estimate():
        return (await camera.stats()).get("available")

    yield Connected(video_mid(offer), estimate)


def video_mid(description: str) -> str:
    """Returns the mid of the m-line with the picture."""
    return re.search(r"^m=video.*?^a=mid:(\S+)", description, re.MULTILINE | re.DOTALL)[1]


async def record(
    trial: Trial, steps: list, camera: Peer, viewer: Peer, link: Link, call: Connected
) -> figures.Recording:
    """Lets the line take its course, and returns what was recorded meanwhile."""
    connected = time.time()
    await asyncio.sleep(trial.lead)
    sent, received = (await camera.stats())["out"], await viewer.inbound(call.mid)
    dropped = link.dropped
    begin, clock = time.time(), time.monotonic()
    following = asyncio.create_task(link.follow(steps))
    estimates = await estimated(call, clock, trial.seconds)
    await following
    took = time.monotonic() - clock
    sent_after, received_after = (await camera.stats())["out"], await viewer.inbound(call.mid)

    def until_end(samples: list) -> list:
        relative = [(at - clock, value) for at, value in samples]
        return [(at, value) for at, value in relative if 0 <= at < trial.seconds]

    return figures.Recording(
        seconds=trial.seconds,
        lead=begin - connected,
        frames=[
            dataclasses.replace(frame, time=frame.time - begin)
            for frame in await viewer.frames(call.mid, connected)
            if frame.time - begin < trial.seconds
        ],
        changes=changes(trial),
        capacity=capacity(trial.line, steps),
        rates=[(at, settings["rate"]) for at, settings in steps if "rate" in settings],
        delivered=until_end(link.log),
        waits=until_end(link.waits),
        others=until_end(link.others),
        estimates=estimates,
        counters=figures.growth(received, received_after),
        layers=figures.layer_rates(sent, sent_after, took),
        cpu_limited=figures.cpu_limited(sent, sent_after),
        dropped=link.dropped - dropped,
    )


async def estimated(call: Connected, clock: float, seconds: float) -> list[tuple[float, float]]:
    """Returns (second, estimate), looked at now and then until `seconds` after `clock`."""
    estimates = []
    while (elapsed := time.monotonic() - clock) < seconds:
        if (rate := await call.estimate()) is not None:
            estimates.append((elapsed, rate))
        await asyncio.sleep(max(0.0, min(LOOK, clock + seconds - time.monotonic())))
    return estimates


def changes(trial: Trial) -> list[float]:
    """Returns when the line becomes another: at the start too, if it was free before."""
    if trial.line.trace:
        return []
    return [0.0] * bool(trial.lead) + [share * trial.seconds for share in trial.line.changes]


def capacity(line: Line, steps: list) -> list[tuple[float, float]]:
    """Returns the bits a second that a call may take, and from when on: what losses leave of the
    line, shared evenly with downloads; nothing for a trace."""
    if line.trace:
        return []
    held: dict = {}
    shares = []
    for at, settings in steps:
        held |= settings
        shares.append((at, held["rate"] * (1 - held["loss"]) / (1 + held["downloads"])))
    return shares
