"""What the demo page offers besides the call: devices, chat, signal bars, pages, picture in picture,
and how it behaves in the background.

The tests share a daemon, a room and its tabs: Mia, who moderates, and Ben.
"""

import json

import pytest

from harness.process import until
from harness.world import pair, tool, value, world  # noqa: F401


# ---- Devices


async def test_microphone_camera_and_speaker_are_chosen(pair):
    mia, ben = pair
    await mia.demo("act('settings')")
    names = "[...document.querySelectorAll('#settings select')].map((it) => it.options.length)"
    counts = await value(mia, f"(() => {{ const it = {names}; return it.every(Boolean) && it; }})()")
    assert len(counts) == 3 and counts[0] > 1 and counts[2] > 1, counts
    await value(
        mia, "document.getElementById('settings-level').style.getPropertyValue('--level') > 0.2",
        "the level moves with the fake microphone's beeps",
    )  # fmt: skip

    # Another microphone takes the place of the first, and is muted as that was.
    await mia.demo("act('audio')")
    await ben.tile("Mia", audioOn=False)
    choose = (
        "(() => {{ const it = document.getElementById('pick-{kind}'); it.selectedIndex ="
        " (it.selectedIndex + 1) % it.options.length; it.dispatchEvent(new Event('change'));"
        " return it.value; }})()"
    )
    chosen = await mia.page.evaluate(choose.format(kind="audio"))
    await value(mia, f"localStorage.getItem('device:audio') === {json.dumps(chosen)}")
    sender = (
        "sfudDemo.peerConnection.getSenders().find((it) => it.track?.kind === 'audio').track"
    )
    await value(mia, f"{sender}.getSettings().deviceId === {json.dumps(chosen)}")
    assert not await mia.page.evaluate(f"{sender}.enabled")
    await mia.demo("act('audio')")
    await ben.tile("Mia", audioOn=True)

    speaker = await mia.page.evaluate(choose.format(kind="speaker"))
    await value(mia, f"sfudDemo.speakers.length && sfudDemo.speakers.every((it) => it === "
                     f"{json.dumps(speaker)})", "Ben is heard on the chosen speaker")  # fmt: skip
    await mia.page.press("Escape")
    await ben.watches("Mia")


# ---- Chat


async def test_messages_are_written_read_and_kept(world, pair):
    mia, ben = pair
    await ben.demo("act('chat')")
    for key in "Hello, all!":
        await ben.page.press(key)
    await ben.page.press("Enter")
    await ben.reads("Hello, all!")
    await mia.reads("1")  # unread
    await value(mia, "document.getElementById('announcer').textContent.includes("
                     "'Ben writes: Hello, all!')")  # fmt: skip
    await mia.click("Chat (1 unread)")
    await mia.reads("Hello, all!")
    assert await mia.page.evaluate("document.querySelector('#chat-list p').textContent") != "You"

    # What is written while the connection to the server is broken arrives as well.
    socket = "WebSocket.prototype.send = function (text) { window.socket = this; send.call(this, text)}"
    await mia.page.evaluate(f"(() => {{ const send = WebSocket.prototype.send; {socket} }})()")
    await mia.demo("request('role.requests')")
    await mia.page.evaluate(
        "(window.Plain = WebSocket, WebSocket = function () { throw new Error('no network'); },"
        " socket.close(4000), 0)"
    )
    await mia.state("reconnecting")
    await ben.demo("request('message.publish', {topic: 'CHAT', message: 'meanwhile'})")
    await mia.page.evaluate("(WebSocket = Plain, 0)")
    await mia.reads("meanwhile")
    await mia.watches("Ben")

    dan = await world.enter("Dan", video=0, audio=0)
    await dan.click("Chat")
    await dan.reads("Hello, all!")  # kept; the second was not
    assert "meanwhile" not in await dan.text()
    await value(mia, "document.getElementById('announcer').textContent.includes('Dan has joined')")
    await world.leave(dan)
    await value(mia, "document.getElementById('announcer').textContent.includes('Dan has left')")
    for tab in (mia, ben):
        await tab.demo("act('chat')")


# ---- Why is it blurred?

SENT = {"width": 320, "height": 180, "bitrate": 150_000}
OFFERED = [{"width": 1280, "height": 720}]
FREEZE = {"time": 990, "seconds": 2, "hop": "viewer-downlink", "reason": "", "ongoing": False}


@pytest.mark.parametrize("explanation, bars, words", [
    ({"sent": OFFERED[0] | {"bitrate": 1e6}, "limit": "none"}, 4, "the sharpest that Ann sends"),
    ({"sent": SENT, "limit": "preference"}, 4, "Enlarge it"),
    ({"sent": SENT, "limit": "bandwidth", "estimate": 400_000, "needed": 900_000}, 1,
     "about 400 kbit/s for all pictures together; a sharper one of Ann takes about 900 kbit/s."),
    ({"sent": SENT | {"width": 640, "height": 360}, "limit": "bandwidth"}, 2, "too slow"),
    ({"sent": SENT | {"width": 960, "height": 540}, "limit": "overload"}, 3, "very busy"),
    ({"sent": None, "limit": "publisher"}, 0, "Ann sends no picture now"),
    ({"sent": None, "limit": "subscriber"}, 0, "switched it off"),
    ({"sent": SENT, "limit": "preference", "freezes": {"recent": [FREEZE]}}, 2,
     "stood still for 2.0 s a moment ago: your connection lost packets"),
    ({"sent": SENT, "limit": "preference", "freezes": {"recent": [FREEZE | {"time": 900}]}}, 4,
     "Ann sends up to 1280×720"),
])  # fmt: skip
async def test_an_explanation_is_read_in_plain_words(pair, explanation, bars, words):
    given = json.dumps(explanation | {"offered": OFFERED})
    reading = await pair[0].page.evaluate(
        f"import('/why.js').then(({{read}}) => read({given}, 'Ann', 1000))"
    )
    assert reading["bars"] == bars
    assert words in " ".join([reading["text"], *reading["more"]]), reading


async def test_bars_tell_of_the_picture_and_why(pair):
    mia, _ = pair

    async def has_bars():
        return (await mia.tile("Ben"))["bars"]

    assert await until(has_bars, "the bars on Ben's tile", 8) in (1, 2, 3, 4)
    await mia.page.evaluate(f"{tool('why', 'Ben')}.click()")
    assert await mia.page.evaluate("document.getElementById('why').open")
    assert "Ben" in await mia.page.evaluate("document.getElementById('why-title').textContent")
    await mia.reads("You receive ")
    await mia.page.press("Escape")


# ---- Tiles and pages


async def test_a_tile_is_large_for_this_viewer_alone(pair):
    mia, ben = pair
    await mia.page.evaluate(f"{tool('pin', 'Ben')}.click()")
    assert (await mia.tile("Ben", large=True))["place"] == 0
    assert await mia.demo("roomState.pins") == []
    assert not any(tile["large"] for tile in await ben.tiles())
    # The focus goes through the tiles as they are seen.
    names = "[...document.querySelectorAll('.tile-name')].map((it) => it.textContent)"
    assert await mia.page.evaluate(names) == ["Ben", "Mia (you)"]
    await mia.page.evaluate(f"{tool('pin', 'Ben')}.click()")
    await mia.tile("Ben", large=False)


async def test_more_people_than_a_page_has_tiles(world, pair):
    mia, _ = pair
    pia = await world.enter("Pia", page=1)
    await pia.reads("Page 1 of 3")
    assert [tile["name"] for tile in await pia.tiles()] == ["Pia"]
    # Whoever has no tile is heard while on sfud's list, and not received as a picture.
    people = [await tab.demo("participant") for tab in pair]
    await mia.demo(f"request('pin.add', {{participants: {json.dumps(people)}}})")
    received = (
        "sfudDemo.stats().then(({received}) => {"
        " const on = (kind) => received.filter((it) => it.kind === kind && it.stream)"
        ".map((it) => sfudDemo.roomState.nameOf(it.participant)).sort().join();"
        " return on('audio') + ' | ' + on('video'); })"
    )
    await value(pia, f"{received}.then((it) => it === 'Ben,Mia | ')", "both are heard")
    await pia.page.command("Page.bringToFront")
    seen = []
    for page in (2, 3):
        await pia.page.press("PageDown")
        await pia.reads(f"Page {page} of 3")
        [tile] = await pia.tiles()
        await pia.watches(tile["name"])
        await value(pia, f"{received}.then((it) => it === 'Ben,Mia | {tile['name']}')")
        seen.append(tile["name"])
    assert sorted(seen) == ["Ben", "Mia"]
    await pia.page.press("PageUp")
    await pia.reads("Page 2 of 3")
    await mia.demo(f"request('pin.remove', {{participants: {json.dumps(people)}}})")
    await world.leave(pia)


# ---- In the background


@pytest.mark.slow
async def test_a_page_in_the_background_receives_sound_and_the_floating_picture(world, pair):
    mia, ben = pair
    await mia.page.evaluate(f"{tool('float', 'Ben')}.click()")
    await value(mia, "document.pictureInPictureElement !== null", "Ben's picture floats")
    cy = await world.enter("Cy")
    await mia.watches("Cy")
    await mia.page.evaluate("(window.other = window.open('about:blank'), 0)")
    await value(mia, "document.hidden", "the page is in the background")
    counts = (
        "sfudDemo.stats().then(({received}) => Object.fromEntries(received.filter((it) => it.stream)"
        ".map((it) => [it.kind + ' ' + sfudDemo.roomState.nameOf(it.participant),"
        " it.kind === 'video' ? it.framesDecoded : it.packetsReceived])))"
    )
    before: dict[str, int] = {}

    async def rests():
        now = await mia.page.evaluate(counts)
        grown = {key for key in now if now[key] > before.get(key, 0)}
        before.update(now)
        return grown == {"audio Ben", "audio Cy", "video Ben"}

    await until(rests, "Cy's picture is not received any more", 15, every=1)
    await mia.page.evaluate("other.close()")
    await value(mia, "!document.hidden")
    await mia.watches("Cy")
    await mia.page.evaluate("document.exitPictureInPicture().then(() => 0)")
    await world.leave(cy)
