"""The demo page of examples/signalling: two tabs in a call, and the roles of those who join.

test_invitations.py tests the rules one by one, without a daemon.
"""

import json

import pytest

from harness.process import until


async def test_two_tabs_see_each_other(tabs):
    ann, ben = await tabs("Ann", "Ben")
    await ann.watches("Ben", screen=False)
    await ben.watches("Ann", screen=False)
    for tab in (ann, ben):
        assert await tab.demo("error") is None


async def test_mute_is_seen_by_the_other(tabs):
    ann, ben = await tabs("Ann", "Ben")
    await ben.watches("Ann")
    for action, key in (("audio", "audioOn"), ("video", "videoOn")):
        await ann.demo(f"act('{action}')")
        await ben.tile("Ann", **{key: False})
        await ann.demo(f"act('{action}')")
        await ben.tile("Ann", **{key: True})
    await ben.watches("Ann")


async def test_a_screen_is_shared(tabs):
    ann, ben = await tabs("Ann", "Ben")
    await ben.watches("Ann", screen=False)
    await ann.demo("act('screen')")
    await ben.watches("Ann", screen=True)
    await ben.watches("Ann", screen=False)
    await ann.demo("act('screen')")

    async def gone():
        return not any(tile["screen"] for tile in await ben.tiles())

    await until(gone, "the screen's tile goes")
    await ben.watches("Ann", screen=False)


async def test_one_leaves_and_rejoins(tabs):
    ann, ben = await tabs("Ann", "Ben")
    await ben.watches("Ann")
    await ann.demo("act('leave')")

    async def alone():
        return not any(tile["name"].startswith("Ann") for tile in await ben.tiles())

    await until(alone, "Ann's tile goes")
    await ann.demo("join()")
    await ann.joined()
    await ben.watches("Ann")
    await ann.watches("Ben")


async def test_ice_restarts_unseen(tabs):
    ann, ben = await tabs("Ann", "Ben")
    await ben.watches("Ann")
    await ann.demo("restartICE()")
    await ben.watches("Ann", connection=(await ben.tile("Ann"))["connection"])
    assert await ann.demo("error") is None


async def test_nobody_moderates_or_records_without_being_given_it(enter, ipc, demo):
    ann = await enter("Ann")
    await ann.joined()
    assert not await ann.demo("roomState.isModerator")  # although she came first
    mia = await enter("Mia", moderates=True, people=1)
    await mia.joined()
    assert await mia.demo("roomState.isModerator")
    await mia.reads("Mute all")
    words = await mia.text()
    assert "Record" not in words and "Stream live" not in words
    # Copying the address bar passes no right on.
    assert demo.invitation not in await mia.page.evaluate("location.href")

    for role in (await ipc.call("room.get", room="demo"))["settings"]["roles"]:
        assert not {"record", "stream"} & set(role["permissions"])
    for method in ("recording.start", "streaming.start"):
        fields = json.dumps({"url": "rtmp://1.1.1.1/a/b"} if method == "streaming.start" else {})
        request = f"request('{method}', {fields}).catch((error) => error.reason)"
        assert await mia.demo(request) == "not-permitted"


@pytest.mark.demo("--invited-only")
async def test_only_the_invited_come_in(enter, demo):
    eve = await enter("Eve", invitation="e30.AAAA")
    await eve.state("left")
    await eve.reads("Your invitation is no longer good")
    await eve.demo("join()")
    await eve.reads("You need an invitation")

    mia = await enter("Mia", moderates=True)
    await mia.joined()
    link = await mia.demo("inviteLink()")
    assert demo.invitation not in link
    ben = await enter("Ben", invitation=link.partition("#")[2])
    await ben.joined()
    await ben.watches("Mia")
    assert not await ben.demo("roomState.isModerator")
    await mia.reads("Copy link")
    assert "Copy link" not in await ben.text()


async def test_a_dropped_moderator_comes_back_as_participant(enter):
    mia = await enter("Mia", moderates=True, people=1)
    await mia.joined()
    ben = await enter("Ben", people=1)
    await ben.joined()
    await mia.click("More for Ben")
    await mia.click("Make moderator: Ben")
    await ben.click("More for Mia")
    await ben.click("Drop: Mia")
    await mia.state("left")
    await mia.demo("join()")
    await mia.joined()
    assert not await mia.demo("roomState.isModerator")
    await ben.reload()  # Ben keeps his role
    assert await ben.demo("roomState.isModerator")
