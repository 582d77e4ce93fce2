"""The demo page of examples/signalling: two tabs in a call."""

import asyncio
import json

import pytest

from harness import process
from harness.process import until
from harness.sfud import REPOSITORY

SERVER = REPOSITORY / "examples/signalling/server.py"
# Debian's, as for anybody who runs the demo.
PYTHON = "/usr/bin/python3"


class Tab:
    """One participant's page."""

    def __init__(self, page, name: str):
        self.page, self.name = page, name

    async def demo(self, expression: str):
        return await self.page.evaluate(f"window.sfudDemo.{expression}")

    async def tiles(self) -> list[dict]:
        return await self.demo("tiles()")

    async def joined(self) -> None:
        async def there():
            ready = await self.page.evaluate("typeof window.sfudDemo === 'object'")
            return ready and await self.demo("state") == "joined"

        try:
            await until(there, f"{self.name} joins", 15)
        except AssertionError as error:
            body = await self.page.evaluate("document.body.innerText")
            raise AssertionError(f"{error}; the page says: {body}") from None

    async def tile(self, name: str, seconds: float = 15, **wanted) -> dict:
        """Awaits a tile of that person with these properties."""
        tiles: list[dict] = []

        async def found():
            tiles[:] = await self.tiles()
            return next(
                (
                    tile for tile in tiles
                    if tile["name"].startswith(name)
                    and all(tile[key] == value for key, value in wanted.items())
                ),
                None,
            )  # fmt: skip

        try:
            return await until(found, "", seconds)
        except AssertionError:
            raise AssertionError(
                f"{self.name} has no tile of {name} with {wanted} within {seconds} s: "
                f"{json.dumps(tiles)}"
            ) from None

    async def watches(self, name: str, **wanted) -> dict:
        """Awaits that person's picture, playing for a second."""
        first = None

        async def playing():
            nonlocal first
            tile = await self.tile(name, **wanted)
            first = first or (tile if tile["width"] > 0 else None)
            return tile if first and tile["time"] > first["time"] + 1 else None

        return await until(playing, f"{self.name} sees {name} move ({wanted})", 15)


@pytest.fixture
def demo(loop, sfud):
    """The signalling server's URL."""

    async def start():
        child = await process.start(
            PYTHON, SERVER, "--port", "0", "--ipc", sfud.ipc,
            output=sfud.directory / "signalling.log", stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        line = (await asyncio.wait_for(child.stdout.readline(), 10)).decode()
        assert line.startswith("ready http://"), (
            line + (sfud.directory / "signalling.log").read_text()
        )
        return child, line.split()[1]

    child, url = loop.run_until_complete(start())
    yield url
    loop.run_until_complete(process.kill(child))


@pytest.fixture
def tabs(loop, browsers, demo):
    """`await tabs(name, ...)` opens the demo for each and awaits that all have joined."""
    opened = []

    async def open_(*names: str) -> list[Tab]:
        browser = await browsers.get("Chromium")
        for name in names:
            page = await browser.open(f"{demo}?room=demo&name={name}&auto=1")
            opened.append(Tab(page, name))
        for tab in opened:
            await tab.joined()
        return opened[-len(names) :]

    yield open_
    for tab in opened:
        loop.run_until_complete(tab.page.close())


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
