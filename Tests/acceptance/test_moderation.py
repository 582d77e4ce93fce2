"""The seeds' stories in two tabs of the demo page: a moderator's, and a participant's.

A test's name has the rows of docs/seeds.md that it covers.
"""

import asyncio

import aiohttp
import pytest

from harness.demo import Tab
from harness.process import until

#: Seconds without any media, once a gate has closed and the network is empty.
QUIET_SECONDS = 0.7


async def moderator(enter, **parameters) -> Tab:
    """Returns Mia, who has the moderator's link."""
    mia = await enter("Mia", moderates=True, people=1, **parameters)
    await mia.joined()
    assert await mia.demo("roomState.isModerator")
    return mia


async def hears(tab: Tab, kind: str = "audio") -> None:
    """Awaits media of this kind: packets, and for video pictures too."""
    first = await tab.received(kind)

    async def more():
        now = await tab.received(kind)
        frames = now["framesDecoded"] - first["framesDecoded"]
        return now["packetsReceived"] > first["packetsReceived"] + 5 and (
            kind == "audio" or frames > 2
        )

    await until(more, f"{tab.name} receives {kind}", 15)


async def fragment(tab: Tab) -> str:
    """Returns the ICE username fragment of the page's connection."""
    sdp = await tab.demo("peerConnection.localDescription.sdp")
    return next(line for line in sdp.splitlines() if line.startswith("a=ice-ufrag"))


async def silent(tab: Tab, kind: str = "audio") -> None:
    """Awaits the end of media of this kind."""

    async def still():
        before = await tab.received(kind)
        await asyncio.sleep(QUIET_SECONDS)
        return await tab.received(kind) == before

    await until(still, f"{tab.name} receives no more {kind}", 5)


async def test_v12_a_guest_is_invited_on_stage(enter):
    mia = await moderator(enter)
    ben = await enter("Ben", role="guest")
    await ben.joined()
    await ben.reads("You are off stage")
    assert await ben.demo("peerConnection") is None  # V-3: no transport at all
    await mia.reads("off stage")

    await mia.click("More for Ben")
    await mia.click("Invite on stage: Ben")
    await ben.reads("Come on stage?")
    await ben.click("Decline")
    await mia.reads("would rather not come on stage")  # V-15
    assert await mia.demo("streams.length") == 1

    await mia.click("Invite on stage: Ben")
    await ben.click("Come on stage")
    await mia.watches("Ben")
    await ben.watches("Mia")

    await mia.click("Take off stage: Ben")  # V-7
    await ben.reads("You are off stage")
    await silent(mia)
    assert await ben.demo("peerConnection") is None
    assert await ben.demo("state") == "joined"
    assert await ben.demo("error") is None


async def test_r2_a_role_is_changed_with_consent(enter):
    mia = await moderator(enter)
    ben = await enter("Ben")
    await ben.joined()
    await mia.watches("Ben")

    await mia.click("More for Ben")
    await mia.click("Ask to be viewer: Ben")
    await ben.reads("Become viewer?")
    await ben.click("Decline")
    await mia.reads("would rather not be viewer")
    await mia.watches("Ben")

    await mia.click("Ask to be viewer: Ben")
    await ben.click("Accept")
    await ben.reads("You watch and listen.")
    await silent(mia)
    await silent(mia, "video")
    await ben.watches("Mia")

    await mia.click("Ask to be participant: Ben")  # the right returns with a new offer
    await ben.click("Accept")
    await mia.watches("Ben")
    assert await ben.demo("error") is None


async def test_e15_knock_and_be_let_in(enter):
    mia = await moderator(enter, knock=1)
    ben = await enter("Ben")
    await ben.state("awaited")
    await ben.reads("Waiting to be let in")
    assert await ben.demo("streams") == []
    await mia.reads("Waiting to be let in")
    assert not any(tile["name"] == "Ben" for tile in await mia.tiles())

    async def connected():
        return await ben.demo("peerConnection?.connectionState") == "connected"

    await until(connected, "Ben is connected while he waits")  # E-18
    before = await fragment(ben)
    await mia.click("Let in: Ben")  # E-16
    await ben.joined()
    await mia.watches("Ben")
    await ben.watches("Mia")
    assert await fragment(ben) == before  # and is admitted without another handshake

    cy = await enter("Cy")
    await cy.state("awaited")
    await mia.click("Send away: Cy")
    await cy.state("left")
    await cy.reads("did not let you in")


async def test_e17_all_who_wait_are_let_in_at_once(enter):
    mia = await moderator(enter, knock=1)
    ben, cy = [await enter(name) for name in ("Ben", "Cy")]
    for tab in (ben, cy):
        await tab.state("awaited")
    await mia.click("Let all in")
    for tab in (ben, cy):
        await tab.joined()
        await tab.watches("Mia")
    await mia.reads("3 people")
    for name in ("Ben", "Cy"):
        await mia.watches(name)


async def test_a_name_is_changed_in_the_call(enter):
    mia = await moderator(enter)
    ben = await enter("Ben", people=1)
    await ben.joined()
    await mia.watches("Ben")
    before = await fragment(ben)
    await ben.click("Rename: yourself")
    await ben.reads("Your name?")
    await ben.page.evaluate("document.querySelector('#question input').value = 'Benjamin'")
    await ben.click("Rename")
    await mia.watches("Benjamin")
    await ben.reads("Benjamin (you)")
    assert await fragment(ben) == before  # the connection is untouched


async def test_e22_floor_is_requested_granted_and_released(enter):
    mia = await moderator(enter, mode="lecture")
    ben = await enter("Ben")
    await ben.joined()
    await ben.watches("Mia")
    await ben.reads("You listen.")
    await silent(mia)

    await ben.press("h")
    await ben.reads("Your hand is raised")
    await mia.click("Not now: Ben")  # E-21
    await ben.reads("did not give you the floor")

    await ben.press("h")
    version = "peerConnection.localDescription.sdp.match(/o=\\S+ \\S+ (\\d+)/)[1]"
    before = await ben.demo(version)
    await mia.click("Give the floor: Ben")
    await ben.reads("You have the floor")
    await mia.watches("Ben")
    await hears(mia)
    await mia.click("Take the floor back: Ben speaks")  # E-24
    await ben.reads("You listen.")
    await silent(mia)
    await silent(mia, "video")

    await ben.press("h")
    await mia.click("Give the floor: Ben")
    await mia.watches("Ben")
    await ben.press("h")  # E-23: gives it back
    await silent(mia)
    assert await ben.demo(version) == before  # there was nothing to negotiate
    assert await ben.demo("error") is None


async def test_e8_hard_mute_while_speaking(enter):
    mia = await moderator(enter)
    ben = await enter("Ben")
    await ben.joined()
    await mia.watches("Ben")
    await hears(mia)

    await mia.click("Mute Ben’s microphone")
    await ben.reads("A moderator has muted you: your microphone")
    await silent(mia)
    await hears(mia, "video")
    await mia.click("Mute Ben’s camera")
    await ben.reads("your microphone and your camera")
    await silent(mia, "video")
    await mia.tile("Ben", audioOn=False, videoOn=False)
    # Ben cannot get around it with his own switches.
    await ben.demo("act('audio')")
    await ben.demo("act('audio')")
    await silent(mia)

    await mia.click("Unmute Ben’s camera")
    await hears(mia, "video")
    await mia.watches("Ben")
    await mia.click("Unmute Ben’s microphone")
    await hears(mia)

    await mia.click("Mute all")  # E-4
    await ben.reads("A moderator has muted everybody")
    await silent(mia)
    await hears(ben)  # E-7: moderators are spared
    await mia.click("Unmute all")
    await hears(mia)
    assert await ben.demo("error") is None


async def test_l5_live_event_from_created_to_ended(enter):
    mia = await moderator(enter, mode="single_host")
    ben = await enter("Ben")
    await ben.state("left")
    await ben.reads("Not now: the live event is not open yet")  # L-6

    await mia.click("Open the doors")
    await mia.reads("People come in")
    await ben.demo("join()")
    await ben.joined()
    await ben.reads("The event begins soon")
    await silent(ben, "video")  # L-8

    await mia.click("Go on air")
    await ben.watches("Mia")
    await hears(ben)
    assert (await ben.demo("stats()"))["sent"] == []

    await mia.click("End the event")  # L-9
    await ben.reads("The event has ended")
    await mia.reads("The event has ended")
    assert await ben.demo("peerConnection") is None
    assert await ben.demo("state") == "joined"


@pytest.mark.demo("--allow-recording")
async def test_e2_a_recording_is_seen_by_all(enter):
    mia = await moderator(enter)
    ben = await enter("Ben")
    await ben.joined()
    await mia.click("Record")
    for tab in (mia, ben):
        await tab.reads("recording")
    await mia.click("Stop recording")

    async def over():
        return not await ben.demo("roomState.recording")

    await until(over, "the recording has stopped")


async def test_e11_to_e28_lock_drop_pin_transfer_and_close(enter):
    mia = await moderator(enter)
    ben = await enter("Ben")
    await ben.joined()
    await mia.watches("Ben")

    await mia.click("Lock")
    cy = await enter("Cy")
    await cy.state("left")
    await cy.reads("This room is locked")
    await mia.reload()
    await ben.reads("Mia", 5)
    assert await mia.demo("roomState.isModerator")  # E-12: rejoins in spite of the lock
    await mia.click("Unlock")

    async def unlocked():
        return not await mia.demo("roomState.locked")

    await until(unlocked, "the room is unlocked")
    await cy.demo("join()")
    await cy.joined()

    await mia.click("More for Cy")
    await mia.click("Pin: Cy")
    await mia.reads("pinned")
    await mia.click("Drop: Cy")
    await cy.state("left")
    await cy.reads("taken out of the room")

    await mia.click("More for Ben")
    await mia.click("Make moderator: Ben")
    await ben.demo("act('people')")
    await ben.click("Mute Mia’s microphone")
    await mia.reads("A moderator has muted you")
    assert not await mia.demo("roomState.isModerator")

    await ben.click("Close: the room")
    await ben.click("Close it")
    await mia.state("left")
    await mia.reads("The room was closed")


async def test_e8_e10_e12_a_reload_lifts_no_mute_and_locks_nobody_out(enter):
    mia = await moderator(enter)
    ben = await enter("Ben")
    await ben.joined()
    await mia.watches("Ben")
    await mia.click("Mute Ben’s camera")
    await ben.reads("A moderator has muted you")
    await silent(mia, "video")
    await mia.click("Lock")

    async def locked():
        return await mia.demo("roomState.locked")

    await until(locked, "the room is locked")
    before = await ben.demo("participant")
    await ben.reload()
    assert await ben.demo("participant") == before
    await ben.reads("A moderator has muted you")
    await hears(mia)  # the new connection is there
    await silent(mia, "video")
    await mia.click("Unmute Ben’s camera")
    await hears(mia, "video")


async def test_e9_a_participant_cannot_moderate(enter, demo):
    mia = await moderator(enter)
    victim = await mia.demo("participant")
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(demo.socket) as socket,
    ):
        await socket.receive_json()  # the status

        async def ask(**message) -> dict:
            await socket.send_json({"id": 1} | message)
            while (reply := await socket.receive_json(timeout=5))["type"] != "reply":
                pass
            return reply

        await ask(type="join", room="demo", name="Eve")
        mute = {"type": "participant.hardMute", "participant": victim, "media": ["audio"]}
        assert (await ask(**mute))["error"]["code"] == 5009
        assert (await ask(type="room.lock"))["error"]["code"] == 5115
        assert (await ask(type="room.close"))["error"]["code"] == 5116
        # No participant can act for another: the page's messages do not name the caller.
        for key in ("by", "from", "room", "method"):
            assert (await ask(**mute, **{key: victim}))["error"]["reason"] == "bad-message"
        refused = await ask(type="join", room="demo", name="Eve", role="moderator")
        assert refused["error"]["reason"] == "bad-message"
    assert not await mia.demo("roomState.isMuted('audio')")
