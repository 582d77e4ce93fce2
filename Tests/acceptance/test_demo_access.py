"""The demo page for everybody: under the keyboard, on a phone, and for screen readers.

With SFUD_PICTURES=DIR `test_it_fits` writes what it looks at.
"""

import os
from pathlib import Path

import pytest

from harness.world import pair, tool, value, world  # noqa: F401

WIDTHS = {"phone": (360, 740), "tablet": (900, 700), "desktop": (1600, 900)}


# ---- By the keyboard


async def test_everything_is_reached_by_the_keyboard(pair):
    mia, _ = pair
    await mia.page.command("Page.bringToFront")
    await mia.page.evaluate("(document.body.tabIndex = -1, document.body.focus(), 0)")
    reached = []
    for _ in range(40):
        await mia.page.press("Tab")
        reached.append(await mia.focus())
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        visible = await mia.page.evaluate(f"{outline} !== 'none'")
        assert visible, f"{reached[-1]} has the focus, and nobody sees it"
        if reached[-1] == "Leave the call":
            break
    wanted = [
        "Copy link", "Show large: Mia (you)", "Show large: Ben", "Microphone", "Camera",
        "Share your screen", "People", "Chat", "More", "Leave the call",
    ]  # fmt: skip
    assert [it for it in reached if it in wanted] == wanted, reached

    await mia.page.press("c")
    assert await mia.focus() == "Message to everybody"
    await mia.page.press("p")  # a letter, as this is a field
    assert await mia.page.evaluate("document.getElementById('chat-text').value") == "p"
    await mia.page.press("Escape")
    assert await mia.focus() == "Chat" and not await mia.page.evaluate(
        "document.getElementById('chat').checkVisibility()"
    )
    await mia.page.evaluate("(localStorage.setItem('keys', 'off'), 0)")
    await mia.page.press("c")
    assert await mia.focus() == "Chat"
    await mia.page.evaluate("(localStorage.setItem('keys', ''), 0)")


async def test_who_joins_by_the_keyboard_is_told_where_it_is(world, pair):
    kim = await world.enter("Kim", auto=0, audio=0, video=0)
    await value(kim, "document.activeElement?.textContent === 'Join'")
    await kim.page.command("Page.bringToFront")
    await kim.page.press("Enter")
    await kim.joined()
    assert await kim.focus() == "demo"
    await kim.page.press("L")
    await kim.state("left")
    await value(kim, "document.activeElement.textContent === 'Join again'")
    await world.leave(kim)


# ---- Widths, and screen readers

#: States of the page, each by what leads to it and what leads back.
STATES = {
    "call": ("0", "0"),
    "chat": ("sfudDemo.act('chat')", "sfudDemo.act('chat')"),
    "people": ("sfudDemo.act('people')", "sfudDemo.act('people')"),
    "statistics": ("sfudDemo.act('stats')", "sfudDemo.act('stats')"),
    "large": (f"{tool('pin', 'Ben')}.click()", f"{tool('pin', 'Ben')}.click()"),
    "more": ("document.getElementById('more').showPopover()",
             "document.getElementById('more').hidePopover()"),
    "devices": ("sfudDemo.act('settings')", "document.getElementById('settings').close()"),
    "keys": ("(sfudDemo.act('settings'), document.querySelector('#settings details').open = true)",
             "(document.querySelector('#settings details').open = false,"
             " document.getElementById('settings').close())"),
    "why": (f"{tool('why', 'Ben')}.click()", "document.getElementById('why').close()"),
    "question": ("document.querySelector('[data-act=\"room.close\"]').click()",
                 "document.getElementById('question').close('no')"),
}  # fmt: skip

#: What sticks out, and what is too small for a finger.
MISFITS = """(() => {
  const at = (it) => `${it.id || it.className || it.tagName} ${JSON.stringify(it.getBoundingClientRect())}`;
  const isLive = (it) => it.checkVisibility({visibilityProperty: true})
    && !it.closest(".unseen, .symbols, .tile-stats");
  const buttons = [...document.querySelectorAll("button, input, select")].filter(isLive);
  const small = buttons.filter((it) => { const box = it.getBoundingClientRect();
    return it.type !== "checkbox" && Math.min(box.width, box.height) < 24; });
  const out = buttons.filter((it) => { const box = it.getBoundingClientRect();
    return box.left < 0 || box.right > innerWidth; });
  const wide = document.documentElement.scrollWidth > innerWidth ? ["the page is too wide"] : [];
  return [...wide, ...small.map((it) => `small: ${at(it)}`), ...out.map((it) => `outside: ${at(it)}`)];
})()"""


async def in_state(tab, state: str, look) -> None:
    into, out = STATES[state]
    if state == "question":
        await tab.demo("act('people')")
    await tab.page.evaluate(f"({into}, 0)")
    await look()
    await tab.page.evaluate(f"({out}, 0)")
    if state == "question":
        await tab.demo("act('people')")


@pytest.mark.parametrize("width", list(WIDTHS))
async def test_it_fits(world, pair, width):
    mia, _ = pair
    pictures = os.environ.get("SFUD_PICTURES")
    lobby = await world.enter("", auto=0)
    await value(lobby, "typeof window.sfudDemo === 'object'")
    for tab, state in [(lobby, "lobby"), *((mia, state) for state in STATES)]:
        await tab.page.resize(*WIDTHS[width])

        async def look(tab=tab, state=state):
            if pictures:
                await tab.page.evaluate("new Promise((it) => setTimeout(it, 700))")
                Path(pictures).mkdir(exist_ok=True)
                await tab.page.picture(Path(pictures) / f"{state}-{width}.png")
            assert await tab.page.evaluate(MISFITS) == [], state

        await (look() if state == "lobby" else in_state(tab, state, look))
    await world.leave(lobby)


async def test_axe_finds_no_serious_fault(world, pair):
    mia, _ = pair
    await mia.page.resize(*WIDTHS["tablet"])
    faults: dict[str, list[str]] = {}
    for state in STATES:

        async def look(state=state):
            faults[state] = await mia.faults()

        await in_state(mia, state, look)
    lobby = await world.enter("", auto=0)
    await value(lobby, "typeof window.sfudDemo === 'object'")
    await lobby.page.evaluate("(document.getElementById('options').open = true, 0)")
    faults["lobby"] = await lobby.faults()
    await world.leave(lobby)
    waiting = await world.enter("Mo", moderates=True, room="knocked", mode="lecture", knock=1)
    eve = await world.enter("Eve", room="knocked", auto=0)
    await value(eve, "typeof window.sfudDemo === 'object'")
    await eve.demo("join()")
    await eve.state("awaited")
    faults["waiting"] = await eve.faults()
    await world.leave(eve)
    await world.leave(waiting)
    assert {state: found for state, found in faults.items() if found} == {}
