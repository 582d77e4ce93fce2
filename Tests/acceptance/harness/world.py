"""A room on the demo page that the tests of a module share."""

import json

import pytest

from harness import demo
from harness import process
from harness.process import until
from harness.sfud import Sfud


class World:
    """A daemon, the signalling server, and the tabs that were opened."""

    def __init__(self, daemon, site, browser):
        self.daemon, self.site, self.browser = daemon, site, browser
        self.tabs: list[demo.Tab] = []

    async def enter(self, name: str, moderates: bool = False, **parameters) -> demo.Tab:
        invitation = {"invitation": self.site.invitation} if moderates else {}
        tab = await demo.Tab.open(
            self.browser, self.site.url, name, **invitation, **parameters
        )
        self.tabs.append(tab)
        if parameters.get("auto", 1):
            await tab.joined()
        return tab

    async def leave(self, tab: demo.Tab) -> None:
        self.tabs.remove(tab)
        await tab.demo("act('leave')")
        await tab.page.close()


@pytest.fixture(scope="module")
def world(loop, browsers):
    async def start():
        daemon = await Sfud.start()
        site = await demo.serve(daemon.ipc, daemon.directory)
        return World(daemon, site, await browsers.get("Chromium"))

    world = loop.run_until_complete(start())
    yield world
    for tab in world.tabs:
        loop.run_until_complete(tab.page.close())
    loop.run_until_complete(process.kill(world.site.process))
    loop.run_until_complete(process.kill(world.daemon.process))
    world.daemon.remove()


@pytest.fixture(scope="module")
def pair(loop, world):
    """Mia, who moderates, and Ben, who see each other."""

    async def enter():
        mia = await world.enter("Mia", moderates=True)
        ben = await world.enter("Ben")
        await mia.watches("Ben")
        return mia, ben

    return loop.run_until_complete(enter())


async def value(tab, expression: str, what: str = "", seconds: float = 10):
    """Awaits that an expression in the page is true, and returns its value."""

    async def there():
        return await tab.page.evaluate(expression)

    return await until(there, what or expression, seconds)


def tool(name: str, whom: str) -> str:
    """The button of a tile."""
    return (
        f"[...document.querySelectorAll('.tile')].find((it) => it.querySelector('.tile-name')"
        f".textContent === {json.dumps(whom)}).querySelector('[data-tool={name}]')"
    )
