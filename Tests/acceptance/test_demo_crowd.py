"""The demo page in a room with more people than a connection has slots."""

import pytest

from harness import demo, process
from harness.lab import Copy, Lab
from harness.sfud import Sfud
from harness.world import value

PEOPLE = 50  # a client has at most 45 pairs of slots


@pytest.fixture
def site(loop):
    """The example server with the page of calls beside the demo's."""
    copy = Copy()
    daemon = loop.run_until_complete(Sfud.start())
    site = loop.run_until_complete(demo.serve(daemon.ipc, daemon.directory, server=copy.server))
    yield site
    loop.run_until_complete(process.kill(site.process))
    loop.run_until_complete(process.kill(daemon.process))
    daemon.remove()
    copy.remove()


@pytest.mark.slow
@pytest.mark.seconds(180)
async def test_each_page_of_a_crowd_is_seen(browsers, site):
    browser = await browsers.get("Chromium")
    lab = await Lab.open(browser, site, "Chromium", "crowd")
    for number in range(PEOPLE):
        options = f"{{hue: {number * 7}, width: 64, height: 36, view: 'chosen'}}"
        await lab.enter(f"P{number:02}", options)
    tab = await demo.Tab.open(browser, site.url, "Zoe", room="crowd", audio=0, video=0)
    await tab.joined()
    await tab.page.resize(1600, 900)
    await tab.page.command("Page.bringToFront")
    await tab.reads("Page 1 of 4")
    seen = set()
    for page in range(1, 5):
        await tab.reads(f"Page {page} of 4")
        # All of the page move, and nobody else's picture is received.
        await value(
            tab, "(() => { const all = sfudDemo.tiles().filter((it) => it.key !== 'self');"
            " return all.length && all.every((it) => it.width > 0 && it.time > 0.3); })()",
            f"all pictures of page {page}", 30,
        )  # fmt: skip
        names = {it["name"] for it in await tab.tiles() if it["key"] != "self"}
        await value(
            tab, "sfudDemo.stats().then(({received}) => received.filter((it) =>"
            f" it.kind === 'video' && it.stream).length === {len(names)})",
        )  # fmt: skip
        assert not names & seen
        seen |= names
        await tab.page.press("PageDown")
    assert seen == {f"P{number:02}" for number in range(PEOPLE)}
    assert await tab.demo("error") is None
    await tab.page.close()
    await lab.page.close()
