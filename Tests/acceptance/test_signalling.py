"""The reference signalling server at its addresses, and where sfud is away, or does not answer.

Most of these tests need no daemon, as those of test_invitations.py.
"""

import asyncio
import json
import os
import shutil
import signal

import aiohttp
import pytest

from harness import demo, process
from harness.process import until
from harness.sfud import REPOSITORY, binary, free_ports
from test_invitations import ROOM, Socket, Tab, change_role, moderated, open_hub
from test_invitations import ended_hubs  # noqa: F401

import hub as hub_module
from browser import Browser
from hub import AWAY, Hub
from sfud_ipc import Refused


# ---- Addresses


@pytest.fixture
def serve(loop, tmp_path):
    """Returns `await serve(*flags)`, which starts the signalling server, without an sfud."""
    started = []

    async def start(*flags: str) -> demo.Site:
        started.append(await demo.serve(str(tmp_path / "sfud.sock"), tmp_path, *flags))
        return started[-1]

    yield start
    for site in started:
        loop.run_until_complete(process.kill(site.process))


@pytest.mark.parametrize("host, status", [("127.0.0.1", 403), ("0.0.0.0", 101)])
async def test_only_an_open_server_on_loopback_refuses_other_names(serve, host, status):
    site = await serve("--no-invited-only", "--host", host)
    async with aiohttp.ClientSession() as http:
        try:
            headers = {"Host": "sfu.example:8080"}
            async with http.ws_connect(site.socket, headers=headers) as socket:
                assert (await socket.receive_json())["type"] == "status"
                found = 101
        except aiohttp.WSServerHandshakeError as refused:
            found = refused.status
    assert found == status


async def test_an_ipv6_address_is_printed_in_brackets(serve):
    site = await serve("--host", "::1")
    assert site.url.startswith("http://[::1]:") and site.moderator.startswith(f"{site.url}#")
    async with aiohttp.ClientSession() as http, http.get(site.url) as page:
        assert page.status == 200


@pytest.mark.parametrize("host, address", [("::1", "http://[::1]:"), ("0.0.0.0", "https://")])
async def test_make_run_prints_where_the_page_is(tmp_path, host, address):
    # A copy, as it runs the build of its own repository.
    for folder in ("Scripts", ".build/release"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(REPOSITORY / "Scripts/run", tmp_path / "Scripts/run")
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / ".build/release/sfud").symlink_to(binary())
    output = tmp_path / "output"
    child = await process.start(
        tmp_path / "Scripts/run", "--udp", f"127.0.0.1:{free_ports()}", "--workers", "1",
        output=output, env=os.environ | {"HOST": host, "PORT": "0"},
    )  # fmt: skip
    try:

        async def printed():
            return "Ctrl-C stops it." in output.read_text()

        await until(printed, "the addresses")
        links = [it for it in output.read_text().split() if it.startswith(("http:", "https:"))]
        assert all(it.startswith(address) for it in links), links
        port = int(links[0].partition("#")[0].rpartition(":")[2].rstrip("/"))
        here = address if host == "::1" else "https://127.0.0.1:"
        async with (
            aiohttp.ClientSession() as http, http.get(f"{here}{port}/", ssl=False) as page,
        ):  # fmt: skip
            assert page.status == 200
    finally:
        child.send_signal(signal.SIGTERM)  # ends the two, which are in groups of their own
        await asyncio.wait_for(child.wait(), 10)


# ---- Joins and leaves without an answer


def lose(hub: Hub, method: str, reason: str):
    """Loses the answers to a method that takes effect; returns what ends that."""
    call = hub.ipc.call

    async def lossy(called: str, /, **params):
        result = await call(called, **params)
        if called == method:
            raise Refused(reason, "the answer is lost")
        return result

    hub.ipc.call = lossy
    return lambda: setattr(hub.ipc, "call", call)


def hold(hub: Hub, method: str) -> asyncio.Event:
    """Holds the answers to a method back, which takes effect, until the event is set."""
    call, go = hub.ipc.call, asyncio.Event()

    async def held(called: str, /, **params):
        result = await call(called, **params)
        if called == method:
            await go.wait()
        return result

    hub.ipc.call = held
    return go


async def becomes(condition, what: str) -> None:
    async def there():
        return condition()

    await until(there, what, every=0.01)


def is_in(hub: Hub, tab: Tab) -> bool:
    return tab.id in hub.ipc.people[ROOM]


def leaves(hub: Hub) -> int:
    """Returns how often somebody was to leave."""
    return [method for method, _ in hub.ipc.calls].count("participant.leave")


@pytest.mark.parametrize("reason", ["timeout", "outcome-unknown", "sfud-not-running"])
async def test_who_may_have_joined_leaves_again(monkeypatch, reason):
    monkeypatch.setattr(hub_module, "RELOAD_SECONDS", 0.05)
    hub, mia, ben = await moderated()
    answer = lose(hub, "participant.join", reason)
    assert (await Tab(hub, "Cy").join())["error"]["reason"] == reason
    answer()
    assert len(hub.ipc.people[ROOM]) == 3
    await becomes(lambda: set(hub.ipc.people[ROOM]) == {mia.id, ben.id}, "Cy leaves")
    await becomes(lambda: not hub.leaving, "nobody is to leave")


@pytest.mark.parametrize("reason", ["already-exists", "room-locked", "sfud-not-running"])
async def test_who_has_certainly_not_joined_does_not_leave(reason):
    hub, _, _ = await moderated()
    hub.ipc.refusals["participant.join"] = Refused(reason, "no")
    if reason == "sfud-not-running":
        hub.ipc.connected.clear()
    assert (await Tab(hub, "Cy").join())["error"]["reason"] == reason
    assert not hub.leaving


@pytest.mark.parametrize("reason", sorted(AWAY))
async def test_a_leave_is_tried_again_until_sfud_decides(monkeypatch, reason):
    monkeypatch.setattr(hub_module, "AGAIN_SECONDS", 0.02)
    hub, _, ben = await moderated()
    hub.ipc.refusals["participant.leave"] = Refused(reason, "not now")
    await ben.ask("leave")
    await becomes(lambda: leaves(hub) > 2, "it is tried again")
    assert is_in(hub, ben)
    del hub.ipc.refusals["participant.leave"]
    await becomes(lambda: not is_in(hub, ben), "Ben leaves")
    await becomes(lambda: not hub.leaving, "nobody is to leave")


async def test_a_leave_waits_until_sfud_can_be_reached(monkeypatch):
    monkeypatch.setattr(hub_module, "AGAIN_SECONDS", 0.02)
    monkeypatch.setattr(hub_module, "MOST_LEAVES", 1)
    hub, _, ben = await moderated()
    hub.ipc.connected.clear()
    hub.ipc.refusals["participant.leave"] = Refused("sfud-not-running", "not now")
    await ben.ask("leave")
    await asyncio.sleep(0.1)  # longer than all attempts would take
    assert leaves(hub) == 1
    del hub.ipc.refusals["participant.leave"]
    hub.ipc.connected.set()
    await becomes(lambda: not is_in(hub, ben), "Ben leaves")


async def test_a_leave_is_tried_a_limited_number_of_times(monkeypatch):
    monkeypatch.setattr(hub_module, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(hub_module, "MOST_LEAVES", 3)
    hub, _, ben = await moderated()
    hub.ipc.refusals["participant.leave"] = Refused("timeout", "no answer")
    await ben.ask("leave")
    await becomes(lambda: not hub.leaving, "nobody is to leave")
    assert leaves(hub) == 4


async def test_a_refused_leave_is_not_tried_again():
    hub, _, ben = await moderated()
    hub.ipc.refusals["participant.leave"] = Refused("no-such-participant", "there is none")
    await ben.ask("leave")
    assert not hub.leaving and leaves(hub) == 1


async def test_who_comes_back_does_not_leave_by_an_earlier_attempt(monkeypatch):
    monkeypatch.setattr(hub_module, "AGAIN_SECONDS", 0.05)
    hub, _, ben = await moderated()
    before = ben.id
    hub.ipc.refusals["participant.leave"] = Refused("timeout", "no answer")
    await ben.breaks()
    [(_, attempts)] = hub.leaving.values()
    del hub.ipc.refusals["participant.leave"]
    await ben.join()  # sfud has it still
    [*_, join] = [params for method, params in hub.ipc.calls if method == "participant.join"]
    assert (ben.id, join["ifPresent"]) == (before, "takeover")
    await asyncio.wait([attempts], timeout=1)
    assert is_in(hub, ben) and not hub.leaving


def left(hub: Hub, participant: str, seq: int) -> None:
    hub.on_event({
        "event": "participant.left", "room": ROOM, "seq": seq, "audience": "all",
        "data": {"participant": participant, "reason": "left"},
    })  # fmt: skip


async def closes_and_is_being_taken_out(hub: Hub, tab: Tab) -> asyncio.Event:
    """Closes the tab; sfud has taken its participant out, but has not told it yet."""

    def out(room: str, participant: str, reason: str) -> None:
        del hub.ipc.people[room][participant]

    hub.ipc.leaves = out
    answer = hold(hub, "participant.leave")
    await tab.browser.end(1001)
    await becomes(lambda: not is_in(hub, tab), "the participant leaves")
    tab.browser = Browser(hub, Socket())
    return answer


@pytest.mark.parametrize("when", ["before the join is answered", "afterwards"])
async def test_the_end_of_the_former_stay_does_not_end_the_new_one(monkeypatch, when):
    monkeypatch.setattr(hub_module, "RELOAD_SECONDS", 0)
    hub, _, ben = await moderated()
    before = ben.id
    leave = await closes_and_is_being_taken_out(hub, ben)
    hub.ipc.rooms[ROOM]["seq"] = 8  # after the join; that of the leave is 7
    join = hold(hub, "participant.join")
    joining = asyncio.create_task(ben.join())
    await becomes(lambda: is_in(hub, ben), "Ben joins again")
    leave.set()
    if when == "before the join is answered":
        left(hub, ben.id, 7)
    join.set()
    assert "result" in await joining
    if when == "afterwards":
        left(hub, ben.id, 7)
    assert ben.id == before and ben.browser.session is hub.rooms[ROOM][ben.id]
    left(hub, ben.id, 9)
    assert ben.browser.session is None and ben.id not in hub.rooms[ROOM]


async def test_who_may_have_joined_leaves_although_the_former_stay_ends_meanwhile(monkeypatch):
    monkeypatch.setattr(hub_module, "RELOAD_SECONDS", 0)
    hub, mia, ben = await moderated()
    leave = await closes_and_is_being_taken_out(hub, ben)
    monkeypatch.setattr(hub_module, "RELOAD_SECONDS", 0.1)
    lose(hub, "participant.join", "timeout")
    assert (await ben.join())["error"]["reason"] == "timeout"
    left(hub, ben.id, 7)
    leave.set()
    assert is_in(hub, ben)
    await becomes(lambda: not is_in(hub, ben), "Ben leaves")


# ---- Pages that are loaded again


async def test_a_page_is_loaded_again_with_an_expired_invitation():
    hub, _, ben = await moderated(is_open=False)
    before, ben.token = ben.id, hub.invitations.token("participant", ROOM, hours=-1)
    assert "result" in await ben.reload()
    assert (ben.id, ben.role) == (before, "participant")
    await ben.breaks()
    assert (await ben.join())["error"]["reason"] == "invitation-expired"


@pytest.mark.parametrize("reason", ["dropped", "disconnected"])
async def test_who_is_taken_out_while_the_page_is_loaded_needs_an_invitation(reason):
    hub, _, ben = await moderated(is_open=False)
    await ben.browser.end(1001)
    hub.ipc.leaves(ROOM, ben.id, reason)
    assert not hub.leaving
    ben.token = hub.invitations.token("participant", ROOM, hours=-1)
    ben.browser = Browser(hub, Socket())
    assert (await ben.join())["error"]["reason"] == "invitation-expired"


async def test_who_becomes_viewer_while_the_page_is_loaded_stays_one():
    hub, _, ben = await moderated(is_open=False)
    await ben.browser.end(1001)
    change_role(hub, ben.id, "participant", "viewer")
    ben.token = hub.invitations.token("participant", ROOM, hours=-1)
    ben.browser = Browser(hub, Socket())
    await ben.join()
    assert ben.role == "viewer"
    [*_, join] = [params for method, params in hub.ipc.calls if method == "participant.join"]
    assert join["role"] == "viewer"  # which counts, if the participant has left meanwhile


# ---- A crash of sfud


async def crashed(**settings) -> tuple[Hub, Tab, Tab]:
    """Returns Mia, who has made a room for the invited, and Ben: sfud is another one now."""
    hub = open_hub(is_open=False)
    mia = Tab(hub, "Mia", hub.invitations.token("moderator"))
    ben = Tab(hub, "Ben", hub.invitations.token("participant", ROOM))
    await mia.join(settings=settings)
    await ben.join()
    hub.ipc.rooms.clear()
    hub.ipc.people.clear()
    await hub.on_up()
    return hub, mia, ben


def made(hub: Hub) -> dict:
    return hub.ipc.rooms[ROOM]["settings"]


async def test_after_a_crash_who_returns_first_makes_the_room_as_it_was():
    hub, mia, ben = await crashed(mode="lecture", knock=True)
    cy = Tab(hub, "Cy", ben.token)
    assert (await cy.join())["error"]["reason"] == "no-such-room"  # was not in it
    await ben.join()
    assert ben.role == "participant" and made(hub)["mode"] == "lecture" and made(hub)["knock"]
    await mia.join()
    assert mia.role == "moderator" and "result" in await cy.join()


async def test_after_a_crash_a_moderators_own_settings_win():
    hub, mia, ben = await crashed(mode="lecture", knock=True)
    await mia.join(settings={"mode": "group"})
    assert made(hub)["mode"] == "group" and made(hub)["knock"]


async def test_a_key_makes_no_room_that_was_closed():
    hub, _, ben = await moderated(is_open=False)
    await ben.breaks()
    hub.ipc.ends(ROOM, "closed")
    assert not hub.made
    assert (await ben.join())["error"]["reason"] == "no-such-room"


async def test_the_settings_of_a_limited_number_of_rooms_are_remembered(monkeypatch):
    monkeypatch.setattr(hub_module, "MOST_MADE", 2)
    hub = open_hub()
    for room in ("a", "b", "c"):
        await Tab(hub, "Ann").join(room)
    assert list(hub.made) == ["b", "c"]


class Guest:
    """A browser's WebSocket to the server."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self.socket, self.key = socket, None

    async def hears(self, type: str) -> dict:
        """Returns the next message of this type."""
        while True:
            message = json.loads(await self.socket.receive_str(timeout=10))
            if message["type"] == type:
                return message

    async def ask(self, type: str, **fields) -> dict:
        await self.socket.send_json({"type": type, "id": 1} | fields)
        return (await self.hears("reply"))["result"]

    async def join(self, name: str, **fields) -> dict:
        fields |= {"key": self.key} if self.key else {}
        joined = await self.ask("join", room=ROOM, name=name, **fields)
        self.key = joined["key"]
        return joined


async def test_after_a_crash_of_the_daemon_the_room_goes_on_as_it_was(start_sfud):
    daemon = await start_sfud()
    site = await demo.serve(daemon.ipc, daemon.directory, "--invited-only")
    try:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(site.socket) as first, http.ws_connect(site.socket) as second,
        ):  # fmt: skip
            mia, ben = Guest(first), Guest(second)
            await mia.join("Mia", token=site.invitation, settings={"mode": "lecture"})
            token = (await mia.ask("inviteLink"))["token"]
            before = await ben.join("Ben", token=token)
            await process.kill(daemon.process)
            again = await start_sfud()
            daemon.ipc.unlink()
            daemon.ipc.symlink_to(again.ipc)
            assert (await ben.hears("gone"))["reason"] == "sfud-restarted"
            joined = await ben.join("Ben", token=token)
            assert joined["participant"] == before["participant"]
            assert joined["room"]["settings"]["mode"] == "lecture"
    finally:
        await process.kill(site.process)
