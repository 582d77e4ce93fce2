"""The demo page of examples/signalling: two tabs in a call."""

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
