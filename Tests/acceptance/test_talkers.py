"""Active talkers: who is heard and seen by all, in real clients.

Publishers speak when told to (`Peer.speak`), viewers have slots that follow the list
(`talkers.subscribe`).
"""

import asyncio
import time

import pytest

from harness.looks import ALICE, BOB, CAROL
from harness.media import hue_distance
from harness.process import until
from harness.room import Room

pytestmark = pytest.mark.alone

#: Rise of a tone's frequency, which measures how much of a word was missed.
HERTZ_A_SECOND = 1000
#: Level below which there is no sound: an encoder's output for digital silence.
SILENCE = 0.005


async def follow(member, slots: int = 1) -> tuple[list[str], list[str]]:
    """Makes the member's last slots of each kind follow the talkers; returns their mids."""
    free = [mid for mid in member.mids if mid["direction"] == "sendonly"]
    mids = {
        kind: [mid["mid"] for mid in free if mid["kind"] == kind][:slots]
        for kind in ("audio", "video")
    }
    await member.room.call(
        "talkers.subscribe",
        participant=member.id,
        audioMids=mids["audio"],
        videoMids=mids["video"],
    )
    return mids["audio"], mids["video"]


async def listed(room, *names: str, seconds: float = 5) -> list[dict]:
    """Awaits these names in this order in the list without a receiver."""

    async def there():
        talkers = (await room.call("room.get"))["talkers"]
        found = [talker["participant"] for talker in talkers]
        return (talkers,) if found == list(names) else None

    return (await until(there, f"the talkers are {names}", seconds))[0]


async def loud(peer, mid: str, since: float, seconds: float = 5):
    """Awaits the first sound after `since`; returns it."""

    async def heard():
        return next((it for it in await peer.sounds(mid, since) if it.level > SILENCE), None)

    return await until(heard, f"sound on {mid}", seconds, 0.05)


async def moving(peer, mid: str, since: float, seconds: float = 10) -> None:
    async def seen():
        return len(await peer.frames(mid, since)) > 5

    await until(seen, f"pictures on {mid}", seconds)


async def test_a_pinned_person_is_seen_by_all_and_stays(room, peers):
    ann = await room.join("ann", await peers("Chromium"), **ALICE, speech=True)
    ben = await room.join("ben", await peers("Chromium"), **BOB, speech=True)
    viewers = [await room.join(name, await peers("Chromium"), slots=2) for name in ("v", "w")]
    slots = [await follow(viewer, 2) for viewer in viewers]
    await room.call("pin.add", participants=["ann"])
    (talker,) = await listed(room, "ann")
    assert talker == {
        "participant": "ann", "stream": ann.stream, "talking": False, "pinned": True,
    }  # fmt: skip
    start = time.time()
    for viewer, (_, video) in zip(viewers, slots):
        await moving(viewer.peer, video[0], start)
    await ben.peer.speak()
    await listed(room, "ben", "ann")
    for viewer, (audio, video) in zip(viewers, slots):
        await loud(viewer.peer, audio[1], start)
        await moving(viewer.peer, video[1], start)
    await ben.peer.speak(False)
    start = time.time()
    for viewer, (_, video) in zip(viewers, slots):
        await moving(viewer.peer, video[0], start)


async def test_who_is_muted_in_mid_sentence_is_silent_from_the_reply_on(room, peers):
    ann = await room.join("ann", await peers("Chromium"), **ALICE, speech=True)
    viewers = [await room.join(name, await peers("Chromium"), slots=1) for name in ("v", "w")]
    mids = [(await follow(viewer))[0][0] for viewer in viewers]
    await ann.peer.speak()
    await listed(room, "ann")
    for viewer, mid in zip(viewers, mids):
        await loud(viewer.peer, mid, time.time())

    before = [await viewer.peer.inbound(mid) for viewer, mid in zip(viewers, mids)]
    assert all(it["packetsReceived"] > 0 for it in before)
    await room.call("participant.hardMute", participant="ann", media=["audio"])
    await listed(room, seconds=0.2)
    # Media that had arrived may still be played; nothing follows it.
    await asyncio.sleep(0.1)
    counts = [(await v.peer.inbound(mid))["packetsReceived"] for v, mid in zip(viewers, mids)]
    await asyncio.sleep(0.7)
    start = time.time()
    await asyncio.sleep(1)
    for viewer, mid, count in zip(viewers, mids, counts):
        assert (await viewer.peer.inbound(mid))["packetsReceived"] == count
        assert all(it.level <= SILENCE for it in await viewer.peer.sounds(mid, start))

    # Continuous speech is heard again, and after a pause the next word from its beginning.
    await room.call("participant.hardUnmute", participant="ann", media=["audio"])
    await listed(room, "ann", seconds=3)
    for viewer, mid in zip(viewers, mids):
        await loud(viewer.peer, mid, time.time())
    await ann.peer.speak(False)
    await room.call("participant.hardMute", participant="ann", media=["audio"])
    await listed(room, seconds=0.2)
    await asyncio.sleep(0.5)
    await room.call("participant.hardUnmute", participant="ann", media=["audio"])
    await asyncio.sleep(1)
    word = time.time()
    await ann.peer.speak(sweep=HERTZ_A_SECOND)
    for viewer, mid in zip(viewers, mids):
        sound = await loud(viewer.peer, mid, word)
        missed = (sound.tone - ALICE["tone"]) / HERTZ_A_SECOND
        print(f"heard {sound.time - word:.2f} s after the word began, from {missed:.2f} s of it on")
        assert missed < 0.2
        assert sound.time - word < 1


@pytest.mark.seconds(120)
async def test_the_demo_marks_the_pinned(enter):
    mia = await enter("Mia", moderates=True, people=1)
    await mia.joined()
    ann, ben = [await enter(name) for name in ("Ann", "Ben")]
    for tab in (ann, ben):
        await tab.joined()
    await mia.click("More for Ben")
    await mia.click("Pin: Ben")
    for tab in (mia, ann):
        await tab.tile("Ben", pinned=True, talking=False)
    assert not any(tile["pinned"] for tile in await ben.tiles())
    await mia.click("Unpin: Ben")
    await ann.tile("Ben", pinned=False)


@pytest.mark.slow
@pytest.mark.seconds(120)
async def test_the_stage_of_the_demo_follows_who_speaks(enter, ipc, peers):
    mia = await enter("Mia", moderates=True, layout="stage", people=1, audio=0)
    await mia.joined()
    await mia.reads("Nobody else has spoken yet")
    await ipc.call("events.subscribe")
    room = Room(ipc)
    room.id = "demo"
    ann, ben, cleo = [
        await room.join(name, await peers("Chromium"), **look, speech=True)
        for name, look in (("ann", ALICE), ("ben", BOB), ("cleo", CAROL))
    ]
    await mia.reads("4 people")
    await mia.on_stage("Mia")

    await ann.peer.speak()
    await mia.on_stage("ann", "Mia")
    await mia.watches("ann", talking=True)
    await ben.peer.speak()
    await mia.on_stage("ben", "ann", "Mia")
    await mia.watches("ben", talking=True, large=True)
    await mia.watches("ann", talking=True, large=False)
    # A tile's picture belongs to the name on it.
    for name, look in (("ann", ALICE), ("ben", BOB)):
        assert hue_distance(await mia.hue(name), look["hue"]) < 30
    assert (await mia.received("audio"))["audioEnergy"] > 0

    # Silence removes the ring, not the place; a pin moves the silent to the end of the list.
    await ben.peer.speak(False)
    await mia.tile("ben", talking=False)
    await mia.click("More for cleo")
    await mia.click("Pin: cleo")
    await mia.on_stage("ben", "ann", "cleo", "Mia")
    await mia.watches("cleo", talking=False, pinned=True)
    assert hue_distance(await mia.hue("cleo"), CAROL["hue"]) < 30
    # Places follow speech; pictures continue to play.
    await cleo.peer.speak()
    await mia.on_stage("cleo", "ben", "ann", "Mia")
    await mia.watches("cleo", talking=True, pinned=True, large=True)

    await mia.click("Unpin: cleo")
    await ann.leave()
    await mia.on_stage("cleo", "ben", "Mia")
    await mia.click("More")
    await mia.click("Show who speaks")
    for name, look in (("ben", BOB), ("cleo", CAROL)):
        await mia.watches(name, large=False)
        assert hue_distance(await mia.hue(name), look["hue"]) < 30
    await mia.click("More")
    await mia.click("Show who speaks")
    await mia.on_stage("cleo", "ben", "Mia")
    await mia.watches("cleo", talking=True, large=True)
    assert await mia.demo("error") is None


@pytest.mark.parametrize("levels", [False, True])
@pytest.mark.parametrize("stack", ["aiortc", "Chromium"])
async def test_who_speaks_is_ranked_with_or_without_level_extension(room, peers, stack, levels):
    peer = await peers(stack)
    offer = peer.offer

    async def silent_about_levels():
        lines = (await offer()).splitlines(keepends=True)
        return "".join(line for line in lines if "ssrc-audio-level" not in line)

    if not levels:
        peer.offer = silent_about_levels
    ann = await room.join("ann", peer, **ALICE, speech=True, video=False)
    assert ("ssrc-audio-level" in ann.answers[0]) == levels
    ben = await room.join("ben", await peers("Chromium"), **BOB, speech=True, video=False)
    await asyncio.sleep(1)
    await listed(room)
    await ann.peer.speak()
    await listed(room, "ann")
    await ben.peer.speak()
    await listed(room, "ben", "ann")
    await ann.peer.speak(False)

    async def quiet():
        talkers = (await room.call("room.get"))["talkers"]
        return {it["participant"]: it["talking"] for it in talkers} == {"ann": False, "ben": True}

    await until(quiet, "ann falls silent", 8)
