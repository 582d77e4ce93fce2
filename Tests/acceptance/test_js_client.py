"""clients/js in real browsers, through the example server and the daemon.

A page holds the calls of several participants, and the tests of a module share it. Firefox runs the
tests marked `both`; with SFUD_JS_CLIENT_ALL=1 in the environment it runs all of them.
"""

import asyncio
import json
import re
import subprocess

import pytest

from harness import demo as demo_page
from harness import process
from harness.lab import ALL_STACKS, Copy, Lab
from harness.sfud import REPOSITORY, Sfud

PACKAGE = REPOSITORY / "clients/js"
RED, GREEN, BLUE = 0, 120, 240
# By module, so that the tests of one browser follow each other, and few workers start each browser.
both = pytest.mark.parametrize("stack", ["Chromium", "Firefox"], scope="module")
one = both if ALL_STACKS else pytest.mark.parametrize("stack", ["Chromium"], scope="module")


@pytest.fixture(scope="module")
def world(loop):
    """A daemon and a signalling server for all tests of this module."""
    copy = Copy()
    daemon = loop.run_until_complete(Sfud.start())
    site = loop.run_until_complete(
        demo_page.serve(daemon.ipc, daemon.directory, server=copy.server)
    )
    client = daemon.client()
    loop.run_until_complete(client.open())
    yield site, client, copy
    loop.run_until_complete(client.close())
    loop.run_until_complete(process.kill(site.process))
    loop.run_until_complete(process.kill(daemon.process))
    daemon.remove()
    copy.remove()


@pytest.fixture(scope="module")
def ipc(world):
    return world[1]


@pytest.fixture(scope="module")
def labs(loop, browsers, world):
    """Returns `await labs(stack)`: the page of that browser, where Ann (red, with a tone) and Ben
    are in a call."""
    opened: dict[str, Lab] = {}

    async def open_(stack: str) -> Lab:
        if stack not in opened:
            browser = await browsers.get(stack)
            lab = opened[stack] = await Lab.open(browser, world[0], stack, f"room-{stack}")
            await lab.enter("Ann", f"{{hue: {RED}, sound: true}}")
            await lab.enter("Ben")
        return opened[stack]

    yield open_
    for lab in opened.values():
        loop.run_until_complete(lab.page.close())


@pytest.fixture
def lab(loop, labs, stack):
    return loop.run_until_complete(labs(stack))


# ---- Publishing and receiving


@both
async def test_one_sees_and_hears_the_other(lab):
    await lab.sees("Ben", "Ann", RED)
    await lab.until("(await lab.hears('Ben', 'Ann')) > 0", "Ben hears Ann")


@both
async def test_mute_is_told_to_the_others(lab):
    for source, kind in (("camera", "video"), ("microphone", "audio")):
        await lab.run(f"await calls.Ann.mute('{source}')")
        await lab.until(f"lab.media('Ben', 'Ann').{kind}.enabled === false")
        assert await lab.run(f"calls.Ann.local.{kind}.enabled") is False
        await lab.run(f"await calls.Ann.unmute('{source}')")
        await lab.until(f"lab.media('Ben', 'Ann').{kind}.enabled !== false")
    await lab.sees("Ben", "Ann", RED)


@both
async def test_another_device_takes_the_place_without_negotiation(lab):
    await lab.sees("Ben", "Ann", RED)
    before = await lab.run("[calls.Ann.peer.pc.localDescription.sdp, lab.idOf('Ben', 'Ann')]")
    stream = await lab.run(f"await calls.Ann.publish('camera', lab.look('Ann2', {GREEN}))")
    await lab.sees("Ben", "Ann", GREEN)
    after = await lab.run("[calls.Ann.peer.pc.localDescription.sdp, lab.idOf('Ben', 'Ann')]")
    assert after == before and stream == before[1]
    await lab.run(f"await calls.Ann.publish('camera', lab.look('Ann3', {RED}))")


@one
async def test_unpublished_media_end_and_may_be_published_again(lab):
    await lab.run("await calls.Ann.unpublish('camera')")
    await lab.until("!lab.media('Ben', 'Ann')?.video", "Ann's picture ends")
    stream = await lab.run(f"await calls.Ann.publish('camera', lab.look('Ann4', {RED}))")
    assert stream
    await lab.sees("Ben", "Ann", RED)


@both
async def test_a_screen_is_shared_beside_the_camera(lab):
    await lab.run(f"await calls.Ann.publish('screen', {{video: lab.look('s', {BLUE}), audio: null}})")
    await lab.sees("Ben", "Ann", BLUE, source="screen")
    await lab.sees("Ben", "Ann", RED)
    await lab.run("(lab.shared = calls.Ann.screen.video, await calls.Ann.unpublish('screen'))")
    assert await lab.run("lab.shared.readyState") == "ended"
    await lab.until("!lab.idOf('Ben', 'Ann', 'screen')", "the screen ends")


# Firefox delivers no event of a script's making to the listeners of a track.
@pytest.mark.parametrize("stack", ["Chromium"], scope="module")
async def test_a_lost_device_is_told_to_the_page_and_to_the_others(lab):
    # A browser ends the track of an unplugged device with this event.
    await lab.run(
        "(() => { const track = calls.Ann.local.video;"
        " Object.defineProperty(track, 'readyState', {value: 'ended', configurable: true});"
        " track.dispatchEvent(new Event('ended')); })()"
    )
    await lab.until("lab.media('Ben', 'Ann').video.enabled === false")
    assert await lab.run("lab.events('Ann', 'trackended')") == [{"source": "camera"}]
    await lab.run(f"await calls.Ann.publish('camera', lab.look('Ann5', {RED}))")
    await lab.until("lab.media('Ben', 'Ann').video.enabled !== false")
    await lab.sees("Ben", "Ann", RED)


@both
async def test_the_call_opens_a_camera_and_stops_it(lab):
    await lab.enter("Dan", room="devices-" + lab.stack)
    devices = await lab.run("await lab.client.listDevices()")
    assert set(devices) == {"microphone", "camera", "speaker"}
    assert await lab.run("await calls.Dan.open('camera', {size: {width: 320, height: 180}})")
    await lab.run("lab.first = calls.Dan.local.video, await calls.Dan.open('camera')")
    assert await lab.run("lab.first.readyState") == "ended"
    assert await lab.run("lab.second = calls.Dan.local.video, lab.second.readyState") == "live"
    await lab.leave("Dan")
    assert await lab.run("lab.second.readyState") == "ended"


@one
async def test_a_device_that_is_not_there_is_refused_by_a_reason(lab):
    reply = await lab.run("await lab.refused(calls.Ben.open('camera', {device: 'nonesuch'}))")
    assert reply["isTyped"] and reply["reason"] == "no-device"
    assert await lab.run("calls.Ben.local.video") is None


@one
async def test_a_viewers_media_wait_for_a_role(lab):
    await lab.enter("Vic", "{role: 'viewer'}")
    assert await lab.run(f"await calls.Vic.publish('camera', lab.look('Vic', {BLUE}))") is None
    assert not await lab.run("lab.media('Ben', 'Vic')")
    await lab.sees("Vic", "Ann", RED)
    await lab.leave("Vic")


# ---- Choosing


@both
async def test_layers_follow_the_size_of_the_element(lab):
    room = "sizes-" + lab.stack
    await lab.enter("Sam", f"{{hue: {GREEN}, width: 960, height: 540}}", room)
    await lab.enter("Sue", room=room)
    await lab.sees("Sue", "Sam", width=960)
    show = (
        "(() => {{ lab.box ??= document.body.appendChild(document.createElement('div'));"
        " lab.box.style.cssText ="
        " 'position: fixed; top: 0; left: {left}px; width: {width}px; height: {height}px';"
        " calls.Sue.watchSize(lab.box, lab.idOf('Sue', 'Sam')); }})()"
    )
    await lab.run(show.format(left=0, width=90, height=50))
    await lab.sees("Sue", "Sam", width=240)
    await lab.run(show.format(left=0, width=640, height=360))
    await lab.sees("Sue", "Sam", width=960)
    await lab.run(show.format(left=-9000, width=640, height=360))  # out of sight
    await lab.sees("Sue", "Sam", width=240)
    await lab.run("lab.box.remove(), delete lab.box")
    await lab.leave("Sam", "Sue")


@one
async def test_the_whole_set_of_streams_may_be_chosen(lab):
    await lab.enter("Cid", f"{{hue: {GREEN}}}")
    await lab.sees("Ben", "Cid", GREEN)
    await lab.run("await calls.Ben.set([lab.idOf('Ben', 'Cid')])")
    assert await lab.run("calls.Ben.arriving(lab.idOf('Ben', 'Ann'))") is None
    await lab.sees("Ben", "Cid", GREEN)
    await lab.run("await calls.Ben.show('all')")
    await lab.sees("Ben", "Ann", RED)
    await lab.leave("Cid")


@one
async def test_one_stream_is_subscribed_to_without_its_picture(lab):
    await lab.run("await calls.Ben.set([])")
    assert await lab.run("calls.Ben.arriving(lab.idOf('Ben', 'Ann'))") is None
    await lab.run("await calls.Ben.subscribe(lab.idOf('Ben', 'Ann'), {video: false})")
    kinds = "Object.values(calls.Ben.tracks(lab.idOf('Ben', 'Ann'))).map((it) => it?.kind ?? null)"
    assert await lab.run(kinds) == ["audio", None]
    await lab.run("await calls.Ben.subscribe(lab.idOf('Ben', 'Ann'))")
    await lab.sees("Ben", "Ann", RED)
    await lab.run("await calls.Ben.subscribe(lab.idOf('Ben', 'Ann'), {video: false})")
    assert await lab.run(kinds) == ["audio", None]
    await lab.run("await calls.Ben.unsubscribe(lab.idOf('Ben', 'Ann'))")
    assert await lab.run("calls.Ben.arriving(lab.idOf('Ben', 'Ann'))") is None
    await lab.run("await calls.Ben.show('all')")


@one
async def test_slots_follow_who_talks(lab):
    await lab.run("await calls.Ben.show('talkers')")
    await lab.until("calls.Ben.roomState.talkers.some((it) => it.talking)", "Ann's tone is heard")
    await lab.sees("Ben", "Ann", RED)
    # The slot is one that sfud switches, not one of the stream's own.
    assert await lab.run("calls.Ben.peer.slots.some((it) => it.follows)")
    assert not await lab.run("calls.Ben.peer.slots.some((it) => it.stream)")
    await lab.run("await calls.Ben.move()")  # they follow on another connection as well
    await lab.sees("Ben", "Ann", RED)
    assert await lab.run("calls.Ben.peer.slots.some((it) => it.follows)")
    await lab.run("await calls.Ben.show('all')")


@one
async def test_an_unknown_stream_is_refused(lab):
    reply = await lab.run("await lab.refused(calls.Ben.subscribe('nonesuch'))")
    assert reply == {"isTyped": True, "reason": "no-such-stream", "code": None}


# ---- Statistics, refusals, messages


@both
async def test_statistics_name_the_stream_and_sfuds_reasons(lab):
    await lab.sees("Ben", "Ann", RED)
    sample = await lab.run("await calls.Ben.statistics({explain: true})")
    video = next(it for it in sample["received"] if it["kind"] == "video" and it["stream"])
    assert video["stream"] == await lab.run("lab.idOf('Ben', 'Ann')")
    assert video["participant"] == await lab.run("calls.Ann.me")
    assert video["framesDecoded"] > 0 and "limit" in video["explanation"]
    sent = await lab.run("await calls.Ann.statistics()")
    assert {it["label"] for it in sent["sent"]} >= {"camera", "microphone"}


@one
async def test_a_refusal_has_sfuds_reason_and_code(lab):
    reply = await lab.run("await lab.refused(calls.Ben.request('room.lock'))")
    assert reply["isTyped"] and reply["reason"] == "not-permitted" and reply["code"] > 0


@one
async def test_who_joined_and_who_left_is_known(lab):
    await lab.enter("Eve")
    await lab.until("[...calls.Ben.participants.values()].some((it) => it.name === 'Eve')")
    await lab.leave("Eve")
    await lab.until("![...calls.Ben.participants.values()].some((it) => it.name === 'Eve')")


@one
async def test_messages_arrive(lab):
    await lab.run("await calls.Ben.request('message.subscribe', {topic: 'CHAT'})")
    await lab.run("await calls.Ann.request('message.publish', {topic: 'CHAT', message: 'hello'})")
    await lab.until("lab.events('Ben', 'message').some((it) => it.message === 'hello')")


# ---- Breaks


@both
async def test_an_ice_restart_is_not_seen(lab):
    ufrag = "/ice-ufrag:(.*)/.exec(calls.Ben.peer.pc.localDescription.sdp)[1]"
    before = await lab.run(ufrag)
    await lab.run("await calls.Ben.restartIce()")
    assert await lab.run(ufrag) != before
    await lab.sees("Ben", "Ann", RED)
    assert await lab.run("calls.Ben.state") == "joined"


@both
async def test_the_signalling_breaks_and_comes_back(lab, ipc):
    me = await lab.run("calls.Ben.me")
    count = "lab.events('Ben', 'joined').filter((it) => it.resumed).length"
    before = await lab.run(count)
    await lab.run("lab.sockets.Ben.at(-1).close(4000)")
    await lab.until("calls.Ben.state === 'reconnecting'")
    await ipc.call("participant.join", room=lab.room, participant="zoe", name="Zoe")
    await lab.until("calls.Ben.state === 'joined'")
    assert await lab.run("calls.Ben.me") == me
    await lab.until(f"{count} === {before + 1}")
    await lab.until("calls.Ben.participants.has('zoe')", "the missed participant is known")
    await lab.sees("Ben", "Ann", RED)
    await ipc.call("participant.drop", room=lab.room, participants=["zoe"])
    await lab.until("!calls.Ben.participants.has('zoe')")


@one
@pytest.mark.parametrize("missed", [3, 600])  # the server keeps 500
async def test_events_missed_in_a_break_come_after_it_or_a_new_copy_of_the_room(lab, ipc, missed):
    topic = f"topic-{missed}"
    await lab.run(f"await calls.Ben.request('message.subscribe', {{topic: '{topic}'}})")
    requests = (
        "(() => { const send = WebSocket.prototype.send; lab.sent = [];"
        " WebSocket.prototype.send = function (text) { lab.sent.push(JSON.parse(text).type);"
        " send.call(this, text); }; })()"
    )
    await lab.run(f"(lab.isOffline = true, {requests}, lab.sockets.Ben.at(-1).close(4000))")
    await lab.until("calls.Ben.state === 'reconnecting'")
    await ipc.call("participant.join", room=lab.room, participant="zoe", name="Zoe")
    for number in range(missed):
        await ipc.call("message.publish", room=lab.room, topic=topic, message=str(number))
    await ipc.call("participant.drop", room=lab.room, participants=["zoe"])
    await ipc.call("participant.join", room=lab.room, participant="yan", name="Yan")
    await lab.run("lab.isOffline = false")
    await lab.until("calls.Ben.state === 'joined' && calls.Ben.participants.has('yan')")
    heard = await lab.run(f"lab.events('Ben', 'message').filter((it) => it.topic === '{topic}')")
    comings = (
        "lab.events('Ben', 'event').filter((it) => it.data.participant === 'zoe')"
        ".map((it) => it.event)"
    )
    if missed < 500:
        assert [it["message"] for it in heard] == ["0", "1", "2"] and heard[0]["time"] > 0
        assert (await lab.run(comings))[-2:] == ["participant.joined", "participant.left"]
        # Nothing was missed, so nothing is assigned anew.
        assert "subscription.set" not in await lab.run("lab.sent")
    else:
        assert heard == []
        await lab.until("lab.sent.includes('subscription.set')", "the slots are assigned anew")
    assert not await lab.run("calls.Ben.participants.has('zoe')")
    await lab.sees("Ben", "Ann", RED)
    await ipc.call("participant.drop", room=lab.room, participants=["yan"])
    await lab.until("!calls.Ben.participants.has('yan')")


#: Watches how long no new frame of Ann is shown to Ben, in milliseconds.
STANDSTILL = """(() => {
  const element = document.getElementById("Ben-Ann-null");
  lab.longest = lab.frames = 0;
  let last = performance.now();
  const shown = (now) => {
    lab.longest = Math.max(lab.longest, now - last);
    lab.frames += 1;
    last = now;
    element.requestVideoFrameCallback(shown);
  };
  element.requestVideoFrameCallback(shown);
  lab.watch = setInterval(() => lab.sees("Ben", "Ann"), 20);
})()"""


@one
async def test_a_call_goes_over_to_another_connection_when_the_server_says_so(lab, ipc):
    await lab.sees("Ben", "Ann", RED)
    await lab.run(STANDSTILL)
    for _ in range(2):  # there and back
        for who in ("Ann", "Ben"):
            before = await lab.run(f"calls.{who}.peer.name")
            name = {"main": "other", "other": "main"}[before]
            me = await lab.run(f"(lab.former = calls.{who}.peer.pc, calls.{who}.me)")
            sent = await lab.run(f"calls.{who}.local.video?.id ?? null")
            await lab.run(f"lab.sockets.{who}.at(-1).onmessage({{data: '{{\"type\": \"move\"}}'}})")
            await lab.until(f"calls.{who}.peer.name === '{name}'")
            await lab.until("lab.former.signalingState === 'closed'")
            assert await lab.run(f"[calls.{who}.me, calls.{who}.local.video?.id ?? null]") == [me, sent]
            found = await ipc.call("transport.list", room=lab.room, participant=me)
            assert [it["transport"] for it in found["transports"]] == [name]
            await lab.sees("Ben", "Ann", RED)
            await lab.until("(await lab.hears('Ben', 'Ann')) > 0", "Ben hears Ann")
    longest, frames = await lab.run("(clearInterval(lab.watch), [lab.longest, lab.frames])")
    print(f"{frames} frames; the picture stood still for {longest:.0f} ms")
    assert frames > 30 and 40 < longest < 1500
    assert await lab.run("calls.Ben.state") == "joined"


@one
async def test_a_muted_camera_stays_muted_over_a_move(lab):
    await lab.run("await calls.Ann.mute('camera')")
    await lab.until("lab.media('Ben', 'Ann').video.enabled === false")
    before = await lab.run("lab.idOf('Ben', 'Ann')")
    await lab.run("await calls.Ann.move()")
    await lab.until(f"lab.idOf('Ben', 'Ann') !== '{before}'")
    assert await lab.run("lab.media('Ben', 'Ann').video.enabled") is False
    # Both connections send, and both are known to be muted, when it is switched on again.
    await lab.run("(lab.moving = calls.Ann.move(), null)")
    await lab.until(
        "(() => { const of = [...calls.Ben.streams.values()]"
        ".filter((it) => it.participant === calls.Ann.me);"
        " return of.length === 2 && of.every((it) => it.video.enabled === false); })()"
    )
    await lab.run("(await calls.Ann.unmute('camera'), await lab.moving)")
    await lab.until("lab.media('Ben', 'Ann').video.enabled !== false")
    await lab.sees("Ben", "Ann", RED)


@one
async def test_a_call_that_is_closed_while_it_moves_leaves_nothing(lab):
    await lab.enter("Mo", f"{{hue: {BLUE}}}")
    await lab.run(
        "(() => { lab.made = []; lab.plain = RTCPeerConnection;"
        " globalThis.RTCPeerConnection = function (it) { const made = new lab.plain(it);"
        " lab.made.push(made); return made; }; })()"
    )
    await lab.run("(lab.moving = lab.refused(calls.Mo.move()), null)")
    await lab.until("lab.made.length === 1")
    await lab.run("(globalThis.RTCPeerConnection = lab.plain, lab.mo = calls.Mo, null)")
    await lab.run("await lab.leave('Mo')")
    assert (await lab.run("await lab.moving"))["isTyped"]
    assert await lab.run("lab.made.every((it) => it.signalingState === 'closed')")
    assert await lab.run("[lab.mo.state, lab.mo.peer]") == ["left", None]


@one
@pytest.mark.slow
async def test_a_connection_that_does_not_come_about_leaves_the_present_one(lab, ipc):
    # A relay that is not there is the only path of the next connection.
    never = "{iceTransportPolicy: 'relay', iceServers: []}"
    await lab.run(
        f"(lab.plain = RTCPeerConnection, globalThis.RTCPeerConnection = function (given) {{"
        f" return new lab.plain({{...given, ...{never}}}); }}, null)"
    )
    try:
        reply = await lab.run("await lab.refused(calls.Ben.move())")
    finally:
        await lab.run("(globalThis.RTCPeerConnection = lab.plain, null)")
    assert reply["isTyped"] and reply["reason"] == "not-connected"
    me = await lab.run("calls.Ben.me")
    found = await ipc.call("transport.list", room=lab.room, participant=me)
    assert [it["transport"] for it in found["transports"]] == [await lab.run("calls.Ben.peer.name")]
    await lab.sees("Ben", "Ann", RED)


@one
@pytest.mark.parametrize("told", ["by an event", "by a picture of the room"])
async def test_a_connection_that_ended_with_its_node_is_made_again(lab, ipc, told):
    await lab.run("(lab.former = calls.Ben.peer.pc, null)")
    me, name = await lab.run("[calls.Ben.me, calls.Ben.peer.name]")
    await ipc.call("transport.close", room=lab.room, participant=me, transport=name)
    if told == "by an event":
        data = {"participant": me, "node": "b", "reason": "node-lost"}
        message = {"type": "event", "event": "participant.moveWanted", "data": data}
    else:
        room = await ipc.call("room.get", room=lab.room)
        for one in room["participants"]:
            if one["participant"] == me:
                one["connection"] = "disconnected"
        message = {"type": "room", "room": room}
    take = f"lab.sockets.Ben.at(-1).onmessage({{data: {json.dumps(json.dumps(message))}}})"
    await lab.run(f"({take}, null)")
    await lab.until(
        "calls.Ben.peer?.pc.connectionState === 'connected' && calls.Ben.peer.pc !== lab.former",
        "Ben has another connection",
    )
    assert await lab.run("calls.Ben.me") == me, "he is the same participant"
    await lab.sees("Ben", "Ann", RED)


@one
async def test_who_is_refused_at_another_node_goes_on_and_may_be_asked_again(lab, ipc):
    # sfud asks nobody here to move, so it refuses the offer of a second connection.
    await lab.run(
        "(() => { lab.made = []; lab.former = calls.Ben.peer.pc; lab.plain = RTCPeerConnection;"
        " globalThis.RTCPeerConnection = function (it) { const made = new lab.plain(it);"
        " lab.made.push(made); return made; }; })()"
    )
    me = await lab.run("calls.Ben.me")
    try:
        for count, node in enumerate(("b", "c", "b"), start=1):
            data = {"participant": me, "node": node, "reason": "drain"}
            message = {"type": "event", "event": "participant.moveWanted", "data": data}
            take = f"lab.sockets.Ben.at(-1).onmessage({{data: {json.dumps(json.dumps(message))}}})"
            await lab.run(f"({take}, null)")
            await lab.until(
                f"lab.made.length === {count}"
                " && lab.made.every((it) => it.signalingState === 'closed')",
                "Ben tries, and is refused",
            )
            await asyncio.sleep(0.2)
            assert await lab.run("calls.Ben.peer.pc === lab.former && lab.made.length") == count
    finally:
        await lab.run("(globalThis.RTCPeerConnection = lab.plain, null)")
    assert await lab.run("[lab.former.connectionState, calls.Ben.state]") == ["connected", "joined"]
    assert await lab.run("calls.Ben.peer.isResting") is False, "a break would be mended"
    assert await lab.run("calls.Ben.me") == me, "he is the same participant"
    await lab.sees("Ben", "Ann", RED)
    found = await ipc.call("transport.list", room=lab.room, participant=me)
    assert len(found["transports"]) == 1, found


#: The answer to Wim's next offer is lost: sfud has taken the offer, and Wim does not know it.
LOSE_ANSWER = """(() => {
  const socket = lab.sockets.Wim.at(-1);
  const [send, take] = [socket.send, socket.onmessage];
  lab.lost = null;
  socket.send = (text) => {
    const { type, id } = JSON.parse(text);
    if (type === "transport.offer") lab.lost ??= id;
    send.call(socket, text);
  };
  socket.onmessage = (it) => {
    const { type, id } = JSON.parse(it.data);
    if (type !== "reply" || id !== lab.lost) return take(it);
    delete socket.send;
    socket.onmessage = take;
    THEN;
  };
})()"""
TIMEOUT = '{type: "reply", id, error: {reason: "timeout", message: "no answer"}}'
UNKNOWN = TIMEOUT.replace("timeout", "outcome-unknown")


@both
@pytest.mark.parametrize("then", [
    "socket.close(4000)", f"take({{data: JSON.stringify({TIMEOUT})}})",
    f"take({{data: JSON.stringify({UNKNOWN})}})",
], ids=["the signalling breaks", "the server says timeout", "sfud does not know"])  # fmt: skip
async def test_who_comes_is_seen_although_an_answer_was_lost(lab, then):
    room = f"lost-answer-{lab.stack}-{len(then)}"
    me = await lab.enter("Wim", room=room)
    for name in ("Abe", "Bob"):  # they take the slots that are free at first
        await lab.enter(name, f"{{hue: {RED}}}", room)
        await lab.sees("Wim", name, RED)
    await lab.run(f"({LOSE_ANSWER.replace('THEN', then)}, null)")
    await lab.enter("Cas", f"{{hue: {GREEN}}}", room)
    await lab.until("lab.lost !== null && !Object.hasOwn(lab.sockets.Wim[0], 'send')")
    await lab.sees("Wim", "Cas", GREEN)
    await lab.enter("Dov", f"{{hue: {BLUE}, sound: true}}", room)
    await lab.sees("Wim", "Dov", BLUE)
    await lab.sees("Wim", "Abe", RED)
    assert await lab.run("calls.Wim.me") == me, "Wim did not join anew"
    # Two at first, and two to spare beside the one for Cas.
    assert await lab.run("calls.Wim.peer.slots.length") == 5
    problems = await lab.run("lab.events('Wim', 'problem').map((it) => it?.reason)")
    assert set(problems) <= {"not-connected", None}, problems
    await lab.leave("Wim", "Abe", "Bob", "Cas", "Dov")


#: The next request of this type is not sent, but ends as the script says.
NEXT_REQUEST = """(() => {
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    const { type, id } = JSON.parse(text);
    if (type !== "TYPE") return send.call(this, text);
    WebSocket.prototype.send = send;
    THEN;
  };
})()"""


@one
async def test_a_resume_that_fails_for_a_while_is_tried_again(lab, ipc):
    me = await lab.run("calls.Ben.me")
    # Late, as the server's first message leads to a `resume` too.
    then = f"setTimeout(() => this.onmessage({{data: JSON.stringify({TIMEOUT})}}), 500)"
    script = NEXT_REQUEST.replace("TYPE", "resume").replace("THEN", then)
    await lab.run(f"({script}, lab.sockets.Ben.at(-1).close(4000))")
    await lab.until("calls.Ben.state === 'reconnecting'")
    await ipc.call("participant.join", room=lab.room, participant="zoe", name="Zoe")
    await lab.until("calls.Ben.state === 'joined' && calls.Ben.participants.has('zoe')")
    assert await lab.run("calls.Ben.me") == me
    await lab.sees("Ben", "Ann", RED)
    await ipc.call("participant.drop", room=lab.room, participants=["zoe"])
    await lab.until("!calls.Ben.participants.has('zoe')")


@one
async def test_a_rejoin_that_breaks_off_is_made_anew_and_nothing_disturbs_it(lab):
    room = "broken-rejoin-" + lab.stack
    await lab.enter("Abe", f"{{hue: {GREEN}}}", room)
    await lab.enter("Wim", room=room)
    await lab.sees("Wim", "Abe", GREEN)
    joins = "lab.events('Wim', 'joined').map((it) => it.resumed)"
    before = len(await lab.run(joins))
    script = NEXT_REQUEST.replace("TYPE", "transport.offer").replace("THEN", "this.close(4000)")
    gone = "lab.sockets.Wim.at(-1).onmessage({data: '{\"type\": \"gone\"}'})"
    await lab.run(f"({script}, {gone}, null)")
    await lab.until("lab.sockets.Wim.length === 2 && calls.Wim.state === 'joined'")
    await lab.sees("Wim", "Abe", GREEN)
    await asyncio.sleep(2.5)  # longer than until another attempt
    assert (await lab.run(joins))[before:] == [False]
    await lab.sees("Wim", "Abe", GREEN)
    names = "[...calls.Abe.participants.values()].map((it) => it.name)"
    await lab.until(f"{names}.filter((it) => it === 'Wim').length === 1", "no other Wim is left")
    await lab.leave("Wim", "Abe")


#: Makes requests of these types that wait for a second only, instead of 15; returns how they end.
REQUESTS = """Promise.all((() => {
  const plain = setTimeout;
  globalThis.setTimeout = (run, time) => plain(run, time === 15000 ? 1000 : time);
  try {
    return [TYPES].map((type) => lab.refused(calls.Ben.request(type, { topic: "t" })));
  } finally {
    globalThis.setTimeout = plain;
  }
})()).then((replies) => replies.map((it) => it.reason ?? "done"))"""


@one
async def test_a_websocket_that_is_dead_without_having_closed_is_replaced(lab, ipc):
    me, count = await lab.run("[calls.Ben.me, lab.sockets.Ben.length]")
    await lab.run(
        "(() => { const socket = lab.silent = lab.sockets.Ben.at(-1);"
        " socket.send = socket.onmessage = () => {}; })()"
    )
    await ipc.call("participant.join", room=lab.room, participant="zoe", name="Zoe")
    types = "'room.lock', 'message.subscribe'"
    replies = await lab.run(f"await {REQUESTS.replace('TYPES', types)}")
    assert replies == ["timeout", "not-connected"]
    await lab.until("calls.Ben.state === 'joined' && calls.Ben.participants.has('zoe')")
    assert await lab.run("[calls.Ben.me, lab.sockets.Ben.length]") == [me, count + 1]
    await lab.until("lab.silent.readyState === 3", "the dead one is closed")
    await lab.sees("Ben", "Ann", RED)
    await ipc.call("participant.drop", room=lab.room, participants=["zoe"])
    await lab.until("!calls.Ben.participants.has('zoe')")


@one
async def test_a_websocket_stays_while_other_requests_are_answered(lab):
    count = await lab.run("lab.sockets.Ben.length")
    script = NEXT_REQUEST.replace("TYPE", "room.lock").replace("THEN", "")
    types = "'room.lock', 'message.subscribe'"
    replies = await lab.run(f"({script}, await {REQUESTS.replace('TYPES', types)})")
    assert replies == ["timeout", "done"]
    assert await lab.run("[calls.Ben.state, lab.sockets.Ben.length]") == ["joined", count]


@one
async def test_who_leaves_while_being_subscribed_to_costs_the_others_nothing(lab, ipc):
    room = "leaves-early-" + lab.stack
    abe = await lab.enter("Abe", f"{{hue: {RED}}}", room)
    await lab.enter("Bob", f"{{hue: {GREEN}}}", room)
    await lab.sees("Abe", "Bob", GREEN)
    await lab.sees("Bob", "Abe", RED)
    hold = "lab.held = () => send.call(this, text)"
    script = NEXT_REQUEST.replace("TYPE", "subscription.set").replace("THEN", hold)
    before = len(await lab.run("lab.events('Wim', 'problem')"))
    await lab.run(f"({script}, lab.entering = lab.enter('Wim', '{room}'), null)")
    await lab.until("Boolean(lab.held)", "Wim is about to subscribe to both")
    await ipc.call("participant.drop", room=room, participants=[abe])
    await lab.until(f"!calls.Wim.participants.has('{abe}') && calls.Wim.streams.size === 1")
    await lab.run("(lab.held(), await lab.entering)")
    await lab.sees("Wim", "Bob", GREEN)
    assert (await lab.run("lab.events('Wim', 'problem')"))[before:] == []
    assert await lab.run("await calls.Wim.explain(lab.idOf('Wim', 'Bob'))")
    await lab.leave("Wim", "Abe", "Bob")


@one
async def test_requests_during_a_break_are_refused(lab):
    script = "(lab.sockets.Ben.at(-1).close(4000), await lab.refused(calls.Ben.request('room.lock')))"
    assert (await lab.run(script))["reason"] == "not-connected"
    await lab.until("calls.Ben.state === 'joined' && lab.sockets.Ben.at(-1).readyState === 1")


@one
async def test_a_transport_need_not_be_a_websocket(lab):
    # A MessagePort, as to a worker: the test's far end hands the messages to a WebSocket.
    adapter = """(() => {
      const {port1, port2} = new MessageChannel();
      const socket = new WebSocket(new URL("ws", location.href.replace(/^http/, "ws")));
      socket.onmessage = ({data}) => port2.postMessage(data);
      port2.onmessage = ({data}) => data === null ? socket.close(1000) : socket.send(data);
      const transport = {send: (it) => port1.postMessage(it), close: () => port1.postMessage(null)};
      port1.onmessage = (it) => transport.onmessage(it);
      return lab.far = {transport, open: new Promise((it) => socket.onopen = it)};
    })()"""
    await lab.run(f"({adapter}).open.then(() => null)")
    await lab.enter("Pat", f"{{hue: {BLUE}, transport: lab.far.transport}}")
    await lab.sees("Ben", "Pat", BLUE)
    await lab.sees("Pat", "Ann", RED)
    await lab.run("lab.far.transport.onclose()")  # there is no other, so it is over
    assert await lab.run("lab.events('Pat', 'ended').map((it) => it.reason)") == ["not-connected"]
    assert await lab.run("calls.Pat.state") == "left"


@one
@pytest.mark.parametrize("options, reason", [
    ("{room: 'no room!'}", "bad-message"),
    ("{token: 'e30.AAAA'}", "bad-invitation"),
])  # fmt: skip
async def test_a_join_that_fails_says_why_and_leaves_nothing(lab, options, reason):
    reply = await lab.run(f"await lab.refused(lab.make('Ned', 'x', {options}).connect())")
    assert reply["isTyped"] and reply["reason"] == reason
    assert await lab.run("calls.Ned.state") == "left"
    await lab.until("lab.sockets.Ned.every((it) => it.readyState === 3)")


@one
async def test_a_call_may_be_closed_before_its_transport_opens(lab):
    options = "{transport: () => { lab.attempts++; throw new Error('no way'); }}"
    await lab.run(f"(lab.attempts = 0, lab.make('Ned', 'x', {options}), null)")
    await lab.run("(lab.result = lab.refused(calls.Ned.connect()), await calls.Ned.close())")
    reply = await lab.run("await lab.result")
    assert reply["isTyped"] and reply["reason"] == "not-connected"
    attempts = await lab.run("lab.attempts")
    await asyncio.sleep(0.4)  # longer than until another attempt
    assert await lab.run("lab.attempts") == attempts


@one
async def test_a_call_connects_once(lab):
    reply = await lab.run("await lab.refused(calls.Ben.connect())")
    assert reply["isTyped"] and reply["reason"] == "wrong-state"
    assert await lab.run("calls.Ben.state") == "joined"


@both
async def test_nothing_is_left_after_close(lab):
    await lab.enter("Lou", f"{{hue: {BLUE}, sound: true}}")
    await lab.sees("Ben", "Lou", BLUE)
    me = await lab.run("calls.Lou.me")
    await lab.run("(lab.lou = calls.Lou, lab.pc = lab.lou.peer.pc, await lab.leave('Lou'))")
    ended = await lab.run("[lab.lou.state, lab.pc.signalingState, lab.lou.peer]")
    assert ended == ["left", "closed", None]
    await lab.until(f"!calls.Ben.participants.has('{me}')", "the others know")
    await lab.until("lab.sockets.Lou.every((it) => it.readyState === 3)")
    changes = "(lab.changes = 0, lab.lou.addEventListener('change', () => lab.changes++), null)"
    await lab.run(changes)
    await asyncio.sleep(0.6)  # longer than until another attempt at a WebSocket
    assert await lab.run("[lab.changes, lab.sockets.Lou.length]") == [0, 1]


@one
async def test_a_shared_signalling_outlives_its_calls_and_keeps_nothing_of_them(lab):
    script = """(() => {
      const url = new URL("ws", location.href.replace(/^http/, "ws"));
      const shared = lab.shared = new lab.client.Signalling(() => new WebSocket(url));
      const add = shared.addEventListener.bind(shared);
      lab.signals = [];
      shared.addEventListener = (type, run, options) => {
        lab.signals.push(options.signal);
        add(type, run, options);
      };
    })()"""
    await lab.run(script)
    await lab.enter("Una", "{signalling: lab.shared}")
    await lab.leave("Una")
    ended = await lab.run("[lab.signals.length, lab.signals.every((it) => it.aborted)]")
    assert ended[0] >= 3 and ended[1]
    assert await lab.run("lab.shared.isOpen")
    await lab.enter("Una", "{signalling: lab.shared}")  # good for another call
    await lab.leave("Una")
    await lab.run("lab.shared.close()")


@one
@pytest.mark.parametrize("how, reason", [
    ("participant.drop", "dropped"), ("room.close", "room-closed"),
])  # fmt: skip
async def test_an_end_from_outside_is_told_with_its_reason(lab, ipc, how, reason):
    room = f"end-{reason}-{lab.stack}"
    me = await lab.enter("Ida", room=room)
    params = {"participants": [me]} if how == "participant.drop" else {}
    await ipc.call(how, room=room, detail="because", **params)
    await lab.until("calls.Ida.state === 'left'")
    ends = await lab.run("lab.events('Ida', 'ended')")
    assert ends[-1]["reason"] == reason and "because" in ends[-1]["message"]
    await lab.until("lab.sockets.Ida.every((it) => it.readyState === 3)")


# ---- End-to-end encryption

SECRET = (
    "encryption: {{key: (id) => (lab.asked ??= []).push(id)"
    " && new Uint8Array(16).fill({fill} + id)}}"
)


@both
async def test_who_has_the_key_sees_and_who_has_not_does_not(lab):
    room = "sealed-" + lab.stack
    await lab.enter("Kim", f"{{hue: {GREEN}, {SECRET.format(fill=7)}}}", room)
    await lab.enter("Lee", f"{{{SECRET.format(fill=7)}}}", room)
    await lab.enter("Max", f"{{{SECRET.format(fill=9)}}}", room)
    await lab.sees("Lee", "Kim", GREEN)
    await lab.until("(await calls.Max.encryptionCounts()).refused > 20")
    counts = await lab.run("[await calls.Lee.encryptionCounts(), await calls.Max.encryptionCounts()]")
    print(counts)
    assert counts[0]["opened"] > 5 and counts[0]["refused"] == 0
    assert counts[1]["opened"] == 0
    assert await lab.run("lab.sees('Max', 'Kim')") is None
    # Another key from now on; the callback is asked for it.
    await lab.run("(lab.asked = [], calls.Kim.useKey(1))")
    await lab.until("lab.asked.filter((it) => it === 1).length >= 2", "both are asked for the key")
    await lab.sees("Lee", "Kim", GREEN)
    # And over another connection.
    await lab.run("(await calls.Kim.move(), await calls.Lee.move())")
    await lab.sees("Lee", "Kim", GREEN)
    assert (await lab.run("await calls.Lee.encryptionCounts()"))["refused"] == 0
    await lab.leave("Kim", "Lee", "Max")


# ---- The package itself


async def test_the_quick_start_of_the_readme_runs(world, browsers):
    site, _, copy = world
    text = (copy.root / "clients/js/README.md").read_text()
    for name in ("hello.html", "hello.js"):
        pattern = rf"^`{re.escape(name)}`:\n\n```\w+\n(.*?)^```"
        found = re.search(pattern, text, re.DOTALL | re.MULTILINE)
        (copy.page / name).write_text(found[1])
    browser = await browsers.get("Chromium")
    pages = [await browser.open(site.url + "hello.html") for _ in range(2)]
    playing = "[...document.querySelectorAll('video')].map((it) => it.currentTime > 0.5)"
    for page in pages:

        async def sees(page=page):
            return await page.evaluate(playing) == [True]

        await process.until(sees, "each tab shows the other's camera", 20)
    await pages[0].close()

    async def alone():
        return await pages[1].evaluate(playing) == []

    await process.until(alone, "the picture of who has left goes", 10)
    await pages[1].close()


def test_the_types_are_those_of_the_package(tmp_path):
    """TypeScript accepts a use of the types, and refuses a wrong one; they name all exports."""
    index = (PACKAGE / "src/index.js").read_text()
    lists = re.findall(r"^export \{ (.*?) \}", index, re.MULTILINE)
    types = (PACKAGE / "src/index.d.ts").read_text()
    declared = set(re.findall(r"^export (?:class|const|function) (\w+)", types, re.MULTILINE))
    assert declared == {name for names in lists for name in names.split(", ")}
    call = types.partition("export class Call ")[2].partition("\n}")[0]
    members = set(re.findall(r"^  (?:readonly )?(\w+)[(:]", call, re.MULTILINE))
    code = (PACKAGE / "src/call.js").read_text()
    public = set(re.findall(r"^  (?:async |get )?(\w+)(?: =|\()", code, re.MULTILINE))
    assigned = {"room", "name", "view", "addEventListener"}
    assert "publish" in members and members <= public | assigned

    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules/sfud-client").symlink_to(PACKAGE)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    use = """
    import { Call, CallError, Signalling } from "sfud-client";
    const call = new Call({ transport: () => new WebSocket("ws://x/ws"), room: "r", name: "n" });
    call.addEventListener("ended", ({ detail }) => console.log(detail.reason.length));
    await call.connect();
    const stream: string | null = await call.open("camera", { size: { width: 1, height: 1 } });
    await call.set([{ stream: "s", video: false }, "t"]).catch((it: CallError) => it.reason);
    const sample = await call.statistics({ explain: true });
    console.log(stream, sample?.received[0].bitrate.toFixed(), call.roomState.isModerator);
    new Signalling({ send() {}, close() {} }).close();
    // @ts-expect-error A screen is not muted.
    await call.mute("screen");
    """
    (tmp_path / "use.ts").write_text(use)
    options = "--noEmit --strict --target es2022 --module nodenext --moduleResolution nodenext"
    command = ["tsc", *options.split(), "--skipDefaultLibCheck", "--lib", "es2022,dom", "use.ts"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_package_has_what_it_names():
    package = json.loads((PACKAGE / "package.json").read_text())
    assert package["type"] == "module" and "dependencies" not in package
    for path in (*package["exports"]["."].values(), package["types"], *package["files"]):
        assert (PACKAGE / path).exists(), path
