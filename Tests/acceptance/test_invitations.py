"""Admission and roles in the reference signalling server, and its messages to browsers.

These tests need no daemon: a stand-in answers the server's calls. A role comes from the key of a
session whose connection broke, or from an invitation; nothing else gives it.
"""

import argparse
import asyncio
import base64
import json
import sys

import pytest

from harness.demo import SERVER
from harness.process import until

sys.path.insert(0, str(SERVER.parent))

import destinations
import hub as hub_module
from browser import Browser
from hub import MOST_KEPT, Hub, Session
from invitations import Invitations
from policy import for_browsers, roles
from server import names_this_machine, other_server
from sfud_ipc import IPC, Refused

SECRET = b"a secret of more than sixteen bytes"
ROOM = "standup"


class StandIn:
    """A stand-in for sfud, as far as the hub calls it: rooms with participants, and events of their
    leaving."""

    def __init__(self, hub: Hub):
        self.hub = hub
        self.connected = asyncio.Event()
        self.connected.set()
        self.rooms: dict[str, dict] = {}
        self.people: dict[str, dict[str, dict]] = {}  # room → id → participantInfo
        self.page = 2  # participants of a page
        self.calls: list[tuple[str, dict]] = []
        self.refusals: dict[str, Refused] = {}  # method → instead of a result

    async def call(self, method: str, **params):
        self.calls.append((method, params))
        if method in self.refusals:
            raise self.refusals[method]
        name = params["room"]
        if method == "room.create":
            if name in self.rooms:
                raise Refused("already-exists", "there is one")
            self.rooms[name] = {
                "room": name, "seq": 0, "floor": {"requested": [], "granted": []},
                "settings": params["settings"],
            }  # fmt: skip
            self.people[name] = {}
        if name not in self.rooms:
            raise Refused("no-such-room", "there is none")
        people, who = self.people[name], params.get("participant")
        match method:
            case "room.get":
                return dict(self.rooms[name])
            case "stream.list":
                return {"streams": []}
            case "participant.list":
                listed = list(people.values())
                start = int(params.get("after", 0))
                page = {"participants": listed[start : start + self.page]}
                more = start + self.page < len(listed)
                return page | ({"next": str(start + self.page)} if more else {})
            case "participant.join":
                if who in people and params.get("ifPresent") == "refuse":
                    raise Refused("already-exists", "there is one of this id")
                keys = ("participant", "name", "role", "mode")
                given = {key: params[key] for key in keys if key in params}
                people[who] = people.get(who, {}) | given | {"state": "joined"}
                assert params["snapshot"] is False
                return {"state": "joined", "roomInfo": {"seq": self.rooms[name]["seq"]}}
            case "participant.get":
                if who not in people:
                    raise Refused("no-such-participant", "there is none")
                return people[who]
            case "participant.update":
                people[who]["name"] = params["name"]
                data = {"participant": who, "participantInfo": people[who], "by": who}
                self.event("participant.changed", name, data)
            case "participant.leave":
                self.leaves(name, who, "left")
            case "recording.start":
                return {"recording": "rec-1", "directory": "/var/lib/sfud/standup/rec-1"}
        return {}

    async def pages(self, method: str, key: str, **params):
        async for item in IPC.pages(self, method, key, **params):
            yield item

    def leaves(self, room: str, participant: str, reason: str, **more) -> None:
        self.people[room].pop(participant, None)
        data = {"participant": participant, "reason": reason} | more
        self.event("participant.left", room, data)

    def ends(self, room: str, reason: str = "empty") -> None:
        del self.rooms[room], self.people[room]
        self.event("room.closed", room, {"reason": reason})

    def event(self, name: str, room: str, data: dict, audience="all") -> None:
        self.hub.on_event({"event": name, "room": room, "audience": audience, "data": data})


class Socket:
    """A browser's WebSocket that records what it is sent."""

    def __init__(self):
        self.sent: list[dict] = []

    async def close(self, **_) -> None: ...


hubs: list[Hub] = []  # of the present test


def open_hub(is_open: bool = True) -> Hub:
    hub = Hub("/none", {"roles": roles([])}, Invitations(SECRET), is_open)
    hub.ipc = StandIn(hub)
    hubs.append(hub)
    return hub


@pytest.fixture(autouse=True)
def ended_hubs(loop):
    """Ends what waits in the test's hubs."""
    yield
    for hub in hubs:
        for room, participant in list(hub.leaving):
            hub.stay_here(room, participant)
    hubs.clear()
    loop.run_until_complete(asyncio.sleep(0))


class Tab:
    """A browser tab, which remembers its key and its invitation as the page does."""

    def __init__(self, hub: Hub, name: str, token: str | None = None):
        self.hub, self.name, self.token, self.key = hub, name, token, ""
        self.browser = Browser(hub, Socket())
        self.role = self.id = None

    async def ask(self, type: str, **fields) -> dict:
        await self.browser.answer(json.dumps({"type": type, "id": 1} | fields))
        await asyncio.sleep(0)  # events follow the reply
        while (message := json.loads(self.browser.queue.get_nowait()))["type"] != "reply":
            pass
        return message

    async def join(self, room: str = ROOM, **fields) -> dict:
        given = {"key": self.key, "token": self.token}
        fields = {key: value for key, value in given.items() if value} | fields
        reply = await self.ask("join", room=room, name=self.name, **fields)
        if "result" in reply:
            self.key, self.id = reply["result"]["key"], reply["result"]["participant"]
            self.role = reply["result"]["role"]
        return reply

    async def reload(self) -> dict:
        await self.browser.end(1001)  # as browsers do
        self.browser = Browser(self.hub, Socket())
        return await self.join()

    async def breaks(self) -> None:
        """Breaks the connection, and lets the time to resume pass."""
        session = self.browser.session
        await self.browser.end()
        await self.hub.remove(session, comes_back=True)
        self.browser = Browser(self.hub, Socket())


async def moderated(is_open: bool = True) -> tuple[Hub, Tab, Tab]:
    """Makes a room with Mia, who moderates by invitation, and Ben."""
    hub = open_hub(is_open)
    mia = Tab(hub, "Mia", hub.invitations.token("moderator"))
    ben = Tab(hub, "Ben", None if is_open else hub.invitations.token("participant", ROOM))
    for tab in (mia, ben):
        assert "result" in await tab.join()
    assert (mia.role, ben.role) == ("moderator", "participant")
    return hub, mia, ben


def change_role(hub: Hub, participant: str, old: str, new: str) -> None:
    if participant in hub.ipc.people[ROOM]:
        hub.ipc.people[ROOM][participant]["role"] = new
    hub.ipc.event(
        "participant.roleChanged", ROOM,
        {"participant": participant, "role": new, "previous": old, "current": new},
    )  # fmt: skip


def promote(hub: Hub, tab: Tab) -> None:
    change_role(hub, tab.id, "participant", "moderator")


async def second_join(hub: Hub, tab: Tab) -> str:
    """Leaves and joins again without the key, which is kept and returned."""
    key, tab.key = tab.key, ""
    await tab.reload()
    return key


async def role_by(hub: Hub, key: str, token: str | None = None) -> str:
    """Returns the role in which another browser joins with this key."""
    eve = Tab(hub, "Eve", token)
    eve.key = key
    await eve.join()
    return eve.role


# Roles.


async def test_who_comes_first_does_not_moderate():
    hub = open_hub()
    eve = Tab(hub, "Eve")
    await eve.join(settings={"mode": "lecture", "knock": True})
    assert eve.role == "participant"
    made = hub.ipc.rooms[ROOM]["settings"]
    assert "mode" not in made and "knock" not in made


async def test_after_a_restart_of_the_server_an_unknown_key_moderates_nothing():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    again = open_hub()
    ben.hub, ben.browser = again, Browser(again, Socket())
    await ben.join()
    assert ben.role == "participant"
    mia.hub, mia.browser = again, Browser(again, Socket())
    await mia.join()
    assert mia.role == "moderator"  # the invitation's signature is still good


@pytest.mark.parametrize("how", ["breaks", "reload"])
async def test_a_moderator_whose_connection_broke_moderates_again(how):
    hub, mia, ben = await moderated()
    promote(hub, ben)
    await getattr(ben, how)()
    if how == "breaks":
        await ben.join()
    assert ben.role == "moderator"


async def test_who_has_the_key_returns_under_the_same_id():
    # By it sfud knows who is muted, and the moderators whom it lets into a locked room.
    hub, mia, ben = await moderated()
    before = mia.id
    await mia.reload()
    assert mia.id == before
    await mia.breaks()
    await mia.join()
    assert mia.id == before
    await mia.join()  # the page joins again, because its media connection was lost
    assert mia.id == before and mia.role == "moderator"
    before = ben.id
    await ben.reload()
    assert ben.id == before
    await ben.breaks()
    await ben.join()
    assert ben.id == before and ben.role == "participant"
    await second_join(hub, ben)
    assert ben.id != before
    await mia.ask("leave")
    before = mia.id
    await mia.join()
    assert mia.id != before


async def test_e8_e12_a_page_that_is_loaded_again_takes_its_participant_over():
    # Leaving would lock it out of a locked room.
    hub, mia, ben = await moderated()
    for tab in (mia, ben):
        hub.ipc.calls.clear()
        await tab.reload()
        joins = [params for method, params in hub.ipc.calls if method == "participant.join"]
        assert [it["ifPresent"] for it in joins] == ["takeover"]
        await tab.join()  # its media connection was lost
        assert "participant.leave" not in dict(hub.ipc.calls)
    assert set(hub.ipc.people[ROOM]) == {mia.id, ben.id} and not hub.leaving


async def test_a_closed_tab_leaves_a_little_later(monkeypatch):
    monkeypatch.setattr(hub_module, "RELOAD_SECONDS", 0.2)
    hub, mia, ben = await moderated()
    await ben.browser.end(1001)
    assert ben.id in hub.ipc.people[ROOM]

    async def gone():
        return ben.id not in hub.ipc.people[ROOM]

    await until(gone, "Ben has left")
    assert not hub.leaving
    before = ben.id
    ben.browser = Browser(hub, Socket())
    await ben.join()
    assert ben.id == before
    await ben.browser.end(1000)
    assert ben.id not in hub.ipc.people[ROOM]


async def test_a_page_is_loaded_again_with_an_invitation_to_moderate():
    hub, mia, ben = await moderated()
    before, ben.token = ben.id, hub.invitations.token("moderator", ROOM)
    await ben.reload()
    assert (ben.id, ben.role) == (before, "moderator")
    change = {"room": ROOM, "participant": ben.id, "role": "moderator", "force": True}
    assert ("role.change", change) in hub.ipc.calls  # a takeover alone keeps the role


async def test_a_page_that_is_loaded_again_in_vain_leaves_a_little_later():
    hub, mia, ben = await moderated()
    hub.ipc.refusals["participant.join"] = Refused("sfud-not-running", "not now")
    await ben.reload()
    assert [id for _, id in hub.leaving] == [ben.id]
    [(session, _)] = hub.leaving.values()
    await hub.leave(session)
    assert set(hub.ipc.people[ROOM]) == {mia.id} and not hub.leaving


async def test_a_key_is_good_once():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    key = ben.key
    await ben.breaks()
    await ben.join()
    eve = Tab(hub, "Eve")
    eve.key = key
    await eve.join()
    assert eve.role == "participant"


async def test_a_dropped_moderator_comes_back_as_participant():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    hub.ipc.leaves(ROOM, ben.id, "dropped")
    await ben.join()
    assert ben.role == "participant"


@pytest.mark.parametrize("role", ["moderator", "participant"])  # of Mia when she is dropped
async def test_a_drop_takes_an_invitation_to_moderate_its_right_in_that_room(role):
    hub, mia, ben = await moderated()
    promote(hub, ben)
    change_role(hub, mia.id, "moderator", role)
    hub.ipc.leaves(ROOM, mia.id, "dropped")
    await mia.join()
    assert mia.role == "participant"
    await mia.join("another")
    assert mia.role == "moderator"


async def test_a_dropped_key_is_no_good_after_a_broken_connection_either():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    await ben.browser.end()  # may still resume
    hub.ipc.leaves(ROOM, ben.id, "dropped")
    ben.browser = Browser(hub, Socket())
    await ben.join()
    assert ben.role == "participant"


@pytest.mark.parametrize("how", ["dropped", "denied", "demoted"])
@pytest.mark.parametrize("role", ["moderator", "participant"])  # that the invitation offers
async def test_whose_moderation_is_taken_keeps_no_earlier_key(how, role):
    hub, mia, ben = await moderated()
    cy = Tab(hub, "Cy", hub.invitations.token(role, name="Cy"))
    await cy.join()
    promote(hub, cy)
    key = await second_join(hub, cy)
    promote(hub, cy)
    match how:
        case "dropped":
            hub.ipc.leaves(ROOM, cy.id, "dropped")
        case "denied":
            hub.ipc.event("participant.denied", ROOM, {"participant": cy.id})
        case "demoted":
            change_role(hub, cy.id, "moderator", "participant")
    assert await role_by(hub, key) == "participant"
    assert await role_by(hub, key, cy.token) == "participant"


async def test_a_join_by_invitation_uses_up_its_earlier_keys():
    hub, mia, ben = await moderated()
    await Tab(hub, "Cy").join()  # the room goes on
    promote(hub, ben)
    await ben.breaks()
    key = await second_join(hub, mia)
    assert mia.role == "moderator"
    assert await role_by(hub, key) == "participant"
    await ben.join()
    assert ben.role == "moderator"  # another's key is still valid


async def test_guests_who_share_an_invitation_use_up_no_promoted_guests_key():
    hub, mia, _ = await moderated()
    token = hub.invitations.token("participant", ROOM)
    ann, cy = Tab(hub, "Ann", token), Tab(hub, "Cy", token)
    await ann.join()
    promote(hub, ann)
    await ann.breaks()
    await cy.join()
    await ann.join()
    assert (ann.role, cy.role) == ("moderator", "participant")


async def test_a_drop_takes_the_invitation_of_who_came_back_by_the_key_alone():
    hub, mia, ben = await moderated()
    token, mia.token = mia.token, None
    await mia.reload()
    assert mia.role == "moderator"
    hub.ipc.leaves(ROOM, mia.id, "dropped")
    assert await role_by(hub, "", token) == "participant"


@pytest.mark.parametrize("how", ["dropped", "demoted"])
async def test_who_goes_while_being_dropped_or_demoted_keeps_no_key(how):
    hub, mia, ben = await moderated()
    hub.forget(hub.rooms[ROOM][mia.id], comes_back=True)  # sfud does not know it
    if how == "dropped":
        hub.ipc.leaves(ROOM, mia.id, "dropped")
    else:
        change_role(hub, mia.id, "moderator", "participant")
    assert await role_by(hub, mia.key, mia.token) == "participant"


@pytest.mark.parametrize("how", ["reload", "leave"])
async def test_who_is_demoted_moderates_no_more_by_the_invitation(how):
    hub, mia, ben = await moderated()
    promote(hub, ben)
    change_role(hub, mia.id, "moderator", "participant")
    if how == "reload":
        await mia.reload()
    else:
        await mia.ask("leave")
        await mia.join()
    assert mia.role == "participant"
    promote(hub, mia)
    await mia.reload()
    assert mia.role == "moderator"  # a newly given role counts
    await mia.join("another")
    assert mia.role == "moderator"


async def test_a_demotion_of_which_only_the_room_anew_tells_counts_too():
    hub, mia, ben = await moderated()
    hub.ipc.people[ROOM][mia.id]["role"] = "participant"
    await hub.refresh(hub.rooms[ROOM][mia.id])
    await mia.reload()
    assert mia.role == "participant"


async def test_who_was_sent_away_has_no_key():
    hub, mia, ben = await moderated()
    session = hub.rooms[ROOM][ben.id]
    session.role = "moderator"
    hub.ipc.event("participant.denied", ROOM, {"participant": ben.id})
    await ben.join()
    assert ben.role == "participant"


async def test_who_leaves_gives_the_moderation_up():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    await ben.ask("leave")
    await ben.join()
    assert ben.role == "participant"


async def test_a_room_that_ends_takes_its_keys_along():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    await ben.breaks()
    await mia.ask("leave")
    hub.ipc.ends(ROOM)
    assert not hub.returning and not hub.void
    await ben.join()
    assert ben.role == "participant"


async def test_a_rejoin_on_the_same_socket_keeps_role_and_room():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    await mia.ask("leave")
    await ben.join()
    assert ben.role == "moderator"
    assert list(hub.ipc.people[ROOM]) == [ben.id]


async def test_a_rejoin_that_fails_may_be_tried_again():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    hub.ipc.refusals["participant.join"] = Refused("sfud-not-running", "not now")
    assert (await ben.join())["error"]["reason"] == "sfud-not-running"
    del hub.ipc.refusals["participant.join"]
    await ben.join()
    assert ben.role == "moderator"


async def test_a_viewer_does_not_rejoin_as_more():
    hub, mia, ben = await moderated()
    change_role(hub, ben.id, "participant", "viewer")
    await ben.join(role="participant")
    assert ben.role == "viewer"


async def test_a_known_id_takes_nobody_over():
    hub, mia, ben = await moderated()
    assert len({mia.id, ben.id}) == 2
    for tab in (mia, ben):
        assert len(bytes.fromhex(tab.id.rpartition("-")[2])) == 16
    eve = Tab(hub, "Mia")
    eve.key = mia.id
    await eve.join()
    assert eve.id != mia.id and eve.role == "participant"
    assert (await eve.ask("resume", key=mia.id))["error"]["reason"] == "no-such-session"
    taken = Session(ROOM, "Mia")
    taken.id = mia.id
    with pytest.raises(Refused) as refused:
        await hub.join(taken, {})
    assert refused.value.reason == "already-exists"
    assert hub.rooms[ROOM][mia.id].browser is mia.browser


async def test_the_key_of_somebody_who_is_here_is_no_standing():
    hub, mia, ben = await moderated()
    copy = Tab(hub, "Mia")  # a duplicated tab
    copy.key = mia.key
    await copy.join()
    assert copy.role == "participant"
    assert mia.id in hub.rooms[ROOM] and copy.id in hub.rooms[ROOM]


async def test_keys_that_wait_are_bounded(monkeypatch):
    monkeypatch.setattr(hub_module, "MOST_RETURNING", 3)
    hub, mia, _ = await moderated()
    for number in range(5):
        tab = Tab(hub, "Mia", hub.invitations.token("moderator", name=f"Mia {number}"))
        await tab.join()
        await tab.breaks()
    assert len(hub.returning[ROOM]) == 3
    guest = Tab(hub, "Guest")
    await guest.join()
    await guest.breaks()
    assert len(hub.returning[ROOM]) == 3 and guest.key not in hub.returning[ROOM]


# Invitations.


async def test_without_an_invitation_nobody_joins_a_server_for_the_invited():
    hub, mia, ben = await moderated(is_open=False)
    eve = Tab(hub, "Eve")
    assert (await eve.join())["error"]["reason"] == "invitation-needed"
    eve.key = "a" * 32
    assert (await eve.join())["error"]["reason"] == "invitation-needed"
    assert len(hub.rooms[ROOM]) == 2


async def test_only_a_moderator_opens_a_room_of_the_invited():
    hub = open_hub(is_open=False)
    ben = Tab(hub, "Ben", hub.invitations.token("participant", ROOM))
    assert (await ben.join())["error"]["reason"] == "no-such-room"
    mia = Tab(hub, "Mia", hub.invitations.token("moderator", ROOM))
    await mia.join(settings={"mode": "lecture"})
    assert hub.ipc.rooms[ROOM]["settings"]["mode"] == "lecture"
    assert "result" in await ben.join()


async def test_an_invitation_holds_for_its_room_role_name_and_time():
    hub, mia, _ = await moderated(is_open=False)
    token = hub.invitations.token
    cy = Tab(hub, "Cy", token("viewer", ROOM, name="Cecilia"))
    await cy.join(role="participant")
    assert cy.role == "viewer"
    assert hub.rooms[ROOM][cy.id].name == "Cecilia"
    for wrong, reason in [
        (token("participant", "another"), "other-room"),
        (token("participant", ROOM, hours=-1), "invitation-expired"),
        (Invitations(SECRET + b"?").token("moderator"), "bad-invitation"),
    ]:
        assert (await Tab(hub, "Eve", wrong).join())["error"]["reason"] == reason


async def test_every_changed_byte_of_an_invitation_is_noticed():
    invitations = Invitations(SECRET)
    token = invitations.token("viewer", ROOM)
    assert invitations.read(token, ROOM) == ("viewer", None)
    for place, letter in enumerate(token):
        changed = token[:place] + ("B" if letter != "B" else "C") + token[place + 1 :]
        with pytest.raises(Refused, match="not of this server"):
            invitations.read(changed, ROOM)
    text = json.dumps({"role": "moderator", "expires": 1e12})
    forged = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    for signature in ("", ".", "." + token.partition(".")[2], ".\u00e9"):
        with pytest.raises(Refused, match="not of this server"):
            invitations.read(forged + signature, ROOM)


async def test_a_call_outlives_its_invitation():
    hub, mia, ben = await moderated(is_open=False)
    ben.token = hub.invitations.token("participant", ROOM, hours=-1)
    assert "result" in await ben.join()  # the page rejoins, because its media connection was lost
    await ben.ask("leave")
    assert (await ben.join())["error"]["reason"] == "invitation-expired"


async def test_a_moderator_invites_and_nobody_else():
    hub, mia, ben = await moderated(is_open=False)
    assert (await ben.ask("inviteLink"))["error"]["reason"] == "not-permitted"
    token = (await mia.ask("inviteLink"))["result"]["token"]
    cy = Tab(hub, "Cy", token)
    await cy.join()
    assert cy.role == "participant"
    assert (await cy.join("another"))["error"]["reason"] == "other-room"


# Events and names.


def events(tab: Tab) -> list[str]:
    """Returns the names of the events that a browser has been sent since the last call."""
    sent = [json.loads(tab.browser.queue.get_nowait()) for _ in range(tab.browser.queue.qsize())]
    return [it["event"] for it in sent if it["type"] == "event"]


async def test_an_event_goes_to_its_audience_and_to_nobody_else():
    hub, mia, ben = await moderated()
    cy = Tab(hub, "Cy")
    await cy.join()
    hub.rooms[ROOM][cy.id].awaited = True
    tabs = {"Mia": mia, "Ben": ben, "Cy": cy}
    for audience, hears in (
        ("all", ["Mia", "Ben"]),
        ([], []),
        ([ben.id, cy.id], ["Ben", "Cy"]),
        ({"except": []}, ["Mia", "Ben"]),
        ({"except": [ben.id]}, ["Mia"]),
    ):
        for tab in tabs.values():
            events(tab)
        # It names nobody else, whatever the event is about.
        hub.ipc.event("floor.requested", ROOM, {"participant": ben.id, "name": "Ben"}, audience)
        heard = [name for name, tab in tabs.items() if events(tab) == ["floor.requested"]]
        assert heard == hears, audience


async def test_a_room_of_several_pages_is_shown_whole():
    hub, mia, ben = await moderated()
    assert hub.ipc.page == 2
    for name in ("Cy", "Dan"):
        await Tab(hub, name).join()
    eve = Tab(hub, "Eve")
    room = (await eve.join())["result"]["room"]
    assert len(room["participants"]) == 5 and "next" not in room
    assert {mia.id, ben.id, eve.id} <= {it["participant"] for it in room["participants"]}


async def test_a_name_may_be_changed_unless_the_invitation_gives_it():
    hub, mia, ben = await moderated()
    assert "result" in await ben.ask("participant.update", name="Benjamin")
    assert hub.ipc.people[ROOM][ben.id]["name"] == "Benjamin"
    await ben.join()  # by the same browser
    assert hub.ipc.people[ROOM][ben.id]["name"] == "Benjamin"
    cy = Tab(hub, "Cy", hub.invitations.token("participant", ROOM, name="Cecilia"))
    await cy.join()
    for _ in range(2):
        refused = await cy.ask("participant.update", name="Mia")
        assert refused["error"]["reason"] == "not-permitted"
        assert hub.ipc.people[ROOM][cy.id]["name"] == "Cecilia"
        await cy.join()


async def test_who_was_long_disconnected_may_moderate_again():
    hub, mia, ben = await moderated()
    promote(hub, ben)
    hub.ipc.leaves(ROOM, ben.id, "disconnected")
    await ben.join()
    assert ben.role == "moderator"


async def test_no_message_names_its_caller():
    hub, mia, ben = await moderated()
    hub.ipc.calls.clear()
    await ben.ask("participant.drop", participants=[mia.id], detail="because")
    [(method, params)] = hub.ipc.calls
    assert method == "participant.drop" and params["by"] == ben.id
    for type, fields in (
        ("participant.drop", {"participants": [mia.id], "by": mia.id}),
        ("floor.request", {"participant": mia.id}),
        ("room.lock", {"room": "another"}),
        ("message.publish", {"topic": "t", "message": "m", "from": mia.id}),
        ("subscription.set", {"subscriptions": [], "participant": mia.id}),
        ("room.get", {}),
        ("stats.get", {}),
    ):
        assert (await ben.ask(type, **fields))["error"]["reason"] == "bad-message", type


# Recordings and live streams.


async def test_no_role_may_record_or_stream_unless_the_command_line_says_so():
    for allowed in ([], ["record"], ["record", "stream"]):
        for role in roles(allowed):
            given = {"record", "stream"} & set(role.get("permissions", []))
            assert given == (set(allowed) if role["name"] == "moderator" else set())


async def test_the_server_itself_refuses_what_is_not_allowed():
    hub, mia, _ = await moderated()
    hub.forbidden = {"recording.start", "streaming.start"}
    hub.ipc.calls.clear()
    streaming = {"type": "streaming.start", "url": "rtmp://live.example/app/key"}
    for wish in ({"type": "recording.start"}, streaming):
        assert (await mia.ask(**wish))["error"]["reason"] == "not-permitted"
    assert hub.ipc.calls == []


async def test_where_recordings_lie_is_told_to_no_browser():
    hub, mia, _ = await moderated()
    assert (await mia.ask("recording.start"))["result"] == {"recording": "rec-1"}
    directory = "/var/lib/sfud/standup/rec-1"
    for event in ("started", "stopped"):
        data = {"recording": "rec-1", "directory": directory, "files": [{"path": directory}]}
        hub.ipc.event(f"recording.{event}", ROOM, data)
    sent = [json.loads(mia.browser.queue.get_nowait()) for _ in range(mia.browser.queue.qsize())]
    assert [it["event"] for it in sent if it["type"] == "event"][-2:] == [
        "recording.started", "recording.stopped",
    ]  # fmt: skip
    assert directory not in json.dumps(sent)


@pytest.mark.parametrize(
    "url",
    [
        "rtmp://10.0.0.1/app/key", "rtmp://127.0.0.1:1935/app/key", "rtmp://localhost/app/key",
        "rtmp://169.254.169.254/latest/meta", "rtmp://192.168.1.1/a/b", "rtmp://172.16.0.9/a/b",
        "rtmp://100.64.0.1/a/b", "rtmp://0.0.0.0/a/b", "rtmp://[::1]/a/b", "rtmp://[fe80::1]/a/b",
        "rtmp://[fd00::1]/a/b", "rtmp://[::ffff:10.0.0.1]/a/b", "rtmp://[64:ff9b::a00:1]/a/b",
        "rtmp://2130706433/a/b", "rtmp://127.1/a/b", "rtmp://0x7f000001/a/b",
        "rtmp://224.0.0.1/a/b", "rtmp://no-such-host.invalid/a/b",
    ],
)  # fmt: skip
async def test_no_live_stream_goes_to_the_servers_own_network(url, monkeypatch):
    # Nothing answers a question for a name here.
    monkeypatch.setattr(destinations, "RESOLVE_SECONDS", 1)
    hub, mia, _ = await moderated()
    hub.ipc.calls.clear()
    refused = (await mia.ask("streaming.start", url=url))["error"]
    assert refused["reason"] == "not-permitted"
    assert refused["message"] == "this server does not stream to that host"
    assert hub.ipc.calls == []


@pytest.mark.parametrize(
    "url",
    [
        "rtmp://evil.example?@10.0.0.1/a/b", "rtmp://1.1.1.1#@10.0.0.1/a",
        "rtmp://1.1.1.1\\@10.0.0.1/a",
        "rtmp://user@1.1.1.1/a/b", "http://1.1.1.1/a", "rtmp:///a/b", "rtmp://1.1.1.1",
        "rtmp://1.1.1.1/a b", "rtmp://1.1.1.1:port/a",
    ],
)  # fmt: skip
async def test_an_address_that_may_be_read_in_two_ways_is_refused(url):
    hub, mia, _ = await moderated()
    hub.ipc.calls.clear()
    assert (await mia.ask("streaming.start", url=url))["error"]["reason"] == "bad-url"
    assert hub.ipc.calls == []


async def test_every_address_of_a_name_has_to_be_public(monkeypatch):
    found = {"both.example": ["93.184.216.34", "10.0.0.1"], "one.example": ["93.184.216.34"]}

    async def look_up(host, *_, **__):
        return [(2, 1, 6, "", (address, 0)) for address in found[host]]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", look_up)
    await destinations.check("rtmp://one.example/app/key", frozenset())
    with pytest.raises(Refused):
        await destinations.check("rtmp://both.example/app/key", frozenset())


async def test_listed_hosts_and_no_others():
    hosts = frozenset({"10.0.0.1", "::1", "live.example"})
    for url in ("rtmp://10.0.0.1/a", "rtmps://LIVE.example:443/a/b", "rtmp://[::1]:1935/a"):
        await destinations.check(url, hosts)
    for url in ("rtmp://10.0.0.2/a", "rtmp://1.1.1.1/a", "rtmp://live.example.evil/a"):
        with pytest.raises(Refused):
            await destinations.check(url, hosts)


async def test_why_a_live_stream_fails_is_told_to_no_browser():
    hub, mia, _ = await moderated()
    hub.streaming_hosts = frozenset({"10.0.0.1"})
    answers = set()
    for cause in ("unreachable", "refused", "timeout"):
        hub.ipc.refusals["streaming.start"] = Refused(
            "streaming-failed", f"the live stream could not be started: {cause}", 4508
        )
        error = (await mia.ask("streaming.start", url="rtmp://10.0.0.1/a/b"))["error"]
        answers.add(json.dumps(error))
    hub.ipc.refusals["streaming.start"] = Refused("timeout", "sfud did not answer", 0)
    error = (await mia.ask("streaming.start", url="rtmp://10.0.0.1/a/b"))["error"]
    answers.add(json.dumps(error))
    assert len(answers) == 1
    shown = [
        for_browsers({"event": "streaming.stopped", "data": {"streaming": "s", "reason": word}})
        for word in ("unreachable", "refused", "connection-lost")
    ]
    failed = {"event": "streaming.stopped", "data": {"streaming": "s", "reason": "failed"}}
    assert shown == [failed] * 3
    interrupted = {"event": "streaming.interrupted", "data": {"streaming": "s", "cause": "refused"}}
    assert for_browsers(interrupted)["data"] == {"streaming": "s"}
    asked = {"event": "streaming.stopped", "data": {"streaming": "s", "reason": "requested"}}
    assert for_browsers(asked) == asked


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [
        ("localhost:8080", True),
        ("127.0.0.1:8080", True),
        ("[::1]:8080", True),
        ("127.0.0.1", True),
        ("127.0.0.1.evil.example:8080", False),
        ("localhost.evil.example", False),
        ("evil.example:8080", False),
        ("10.0.0.1:8080", False),
        ("", False),
    ],
)
def test_an_open_demo_answers_to_names_of_this_machine_alone(host, is_ours):
    assert names_this_machine(host) is is_ours


# ---- In a cluster


async def test_who_is_to_move_connects_at_this_servers_node_again():
    hub, mia, ben = await moderated()
    hub.ipc.calls.clear()
    for who in (ben.id, "somebody-of-another-server"):
        data = {"participant": who, "node": "c", "reason": "node-lost"}
        hub.ipc.event("participant.moveWanted", ROOM, data, audience=[who])
    # Before the browser can offer: it has been told, and not answered.
    await asyncio.sleep(0)
    join = ("participant.join", {"room": ROOM, "participant": ben.id, "snapshot": False})
    assert hub.ipc.calls == [join]
    assert json.loads(ben.browser.queue.get_nowait())["event"] == "participant.moveWanted"
    assert mia.browser.queue.empty() and hub.session(ben.key) is ben.browser.session


async def test_a_page_is_told_where_else_it_may_go_on():
    hub = open_hub()
    hub.elsewhere = [other_server("b=http://127.0.0.2:8081/")]
    assert hub.status()["elsewhere"] == [{"name": "b", "url": "http://127.0.0.2:8081/"}]
    with pytest.raises(argparse.ArgumentTypeError):
        other_server("b=javascript:alert(1)")


# ---- Resuming


def tell(hub: Hub, seq: int, audience="all") -> None:
    hub.ipc.rooms[ROOM]["seq"] = seq
    hub.on_event(
        {"event": "room.locked", "room": ROOM, "seq": seq, "audience": audience, "data": {}}
    )


async def resumed(hub: Hub, tab: Tab, **since) -> dict:
    """Breaks the connection, and resumes with another."""
    if tab.browser.session:
        await tab.browser.end()
    tab.browser = Browser(hub, Socket())
    return (await tab.ask("resume", key=tab.key, **since))["result"]


def numbers(reply: dict) -> list[int] | None:
    return [it["seq"] for it in reply["events"]] if "events" in reply else None


async def test_a_resumed_browser_gets_the_events_that_it_missed():
    hub, _, ben = await moderated()
    tell(hub, 1)
    await ben.browser.end()
    tell(hub, 2)
    tell(hub, 3, audience={"except": [ben.id]})
    tell(hub, 4)
    reply = await resumed(hub, ben, since=1)
    assert numbers(reply) == [2, 4] and "room" not in reply and reply["state"] == "joined"
    tell(hub, 5)
    assert json.loads(ben.browser.queue.get_nowait())["seq"] == 5 and ben.browser.queue.empty()
    # An event may be lost although it was sent.
    assert numbers(await resumed(hub, ben, since=2)) == [4, 5]
    assert numbers(await resumed(hub, ben, since=5)) == []


async def test_who_missed_more_than_is_kept_gets_the_room():
    hub, _, ben = await moderated()
    for seq in range(1, MOST_KEPT + 3):
        tell(hub, seq)
    assert numbers(await resumed(hub, ben, since=2)) == [*range(3, MOST_KEPT + 3)]
    reply = await resumed(hub, ben, since=1)
    assert numbers(reply) is None and reply["room"]["seq"] == MOST_KEPT + 2
    # The copy has all of it, so what was before is not kept any more.
    assert numbers(await resumed(hub, ben, since=MOST_KEPT + 1)) is None
    assert numbers(await resumed(hub, ben, since=MOST_KEPT + 2)) == []


@pytest.mark.parametrize("why", ["no since", "sfud is away", "events were lost"])
async def test_without_certainty_a_resumed_browser_gets_the_room(why):
    hub, _, ben = await moderated()
    if why == "sfud is away":
        hub.ipc.connected.clear()
    tell(hub, 1)
    if why == "events were lost":
        hub.ipc.rooms[ROOM]["seq"] = 7
        hub.on_event({"event": "resync", "room": ROOM, "seq": 7, "audience": [], "data": {}})
        await asyncio.gather(*hub.tasks)
    reply = await resumed(hub, ben, **({} if why == "no since" else {"since": 1}))
    assert "events" not in reply and "room" in reply


async def test_who_was_let_in_meanwhile_does_not_get_what_was_before():
    hub, _, ben = await moderated()
    session = ben.browser.session
    session.awaited, hub.ipc.people[ROOM][ben.id]["state"] = True, "awaited"
    tell(hub, 1)
    await ben.browser.end()
    assert numbers(await resumed(hub, ben, since=0)) == []
    await ben.browser.end()
    hub.ipc.people[ROOM][ben.id]["state"] = "joined"
    hub.ipc.rooms[ROOM]["seq"] = 2
    hub.on_event({
        "event": "participant.approved", "room": ROOM, "seq": 2, "audience": "all",
        "data": {"participant": ben.id},
    })  # fmt: skip
    await asyncio.gather(*hub.tasks)
    tell(hub, 3)
    reply = await resumed(hub, ben, since=0)
    assert "room" in reply and "events" not in reply
    assert numbers(await resumed(hub, ben, since=3)) == []


@pytest.mark.parametrize("size, most", [(10, 1_000), (1_000_000, 4)])
async def test_a_browser_that_does_not_read_is_cut_off_and_takes_no_memory(size, most):
    class Transport:
        aborted = False

        def abort(self):
            self.aborted = True

    transport = Transport()
    browser = Browser(open_hub(), Socket(), transport)
    for number in range(most):
        browser.send({"type": "reply", "id": number, "result": "x" * size})
        assert not transport.aborted, number
    browser.send({"type": "reply", "id": most, "result": "x" * size})
    assert transport.aborted and browser.queue.empty()
    browser.send({"type": "reply", "id": most + 1, "result": "x"})
    assert browser.queue.empty()


@pytest.mark.parametrize("since", [-1, 1.5, "1", True, 1 << 60])
async def test_since_is_a_number_of_an_event(since):
    _, _, ben = await moderated()
    reply = await ben.ask("resume", key=ben.key, since=since)
    assert reply["error"]["reason"] == "bad-message"
