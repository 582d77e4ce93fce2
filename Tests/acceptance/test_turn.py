"""Clients behind a relay: Chromium, coturn and the gateway as docs/turn.md sets them up."""

import time

import aioice.stun
import pytest

from harness import expect
from harness.chromium import Chromium
from harness.gateway import TURN_SECRET, Link, token
from harness.looks import ALICE
from harness.process import until
from harness.turn import LISTENS, RELAYS, Turn, certify, documented, pin

pytestmark = pytest.mark.slow


@pytest.fixture
def turn(loop, sfud):
    certify(sfud.directory)
    found = loop.run_until_complete(Turn(sfud.directory).start())
    yield found
    loop.run_until_complete(found.close())


@pytest.fixture
def relayed(loop, turn):
    """Returns `await relayed(servers)`, which makes a peer that may use these alone, in a Chromium
    that trusts coturn's certificate; or, with `trusts=False`, in one that does not."""
    running: dict[bool, Chromium] = {}

    async def make(servers: list[dict], trusts: bool = True):
        if trusts not in running:
            flags = [f"--ignore-certificate-errors-spki-list={pin(turn.directory)}"]
            running[trusts] = await Chromium.start(*(flags if trusts else []))
        peer = await running[trusts].peer()
        await peer.configure({"iceServers": servers, "iceTransportPolicy": "relay"})
        return peer

    yield make
    for browser in running.values():
        loop.run_until_complete(browser.close())


def ice_servers(*arguments) -> list[dict]:
    """What the page's own lines return."""
    names: dict = {}
    exec(documented("python", "def ice_servers"), names)
    return names["ice_servers"](*arguments)


def toml(turn: Turn) -> str:
    """Returns the page's lines for the gateway, with this server's URLs and secret."""
    text = documented("toml", "ice.turn")
    for documented_url, url in (
        ("turn:turn.example:3478?transport=udp", turn.urls()["udp"]),
        ("turn:turn.example:3478?transport=tcp", turn.urls()["tcp"]),
        ("turns:turn.example:5349?transport=tcp", turn.urls()["tls"]),
        ("turn.secret", "turn-secret"),
    ):
        assert text.count(f'"{documented_url}"') == 1, documented_url
        text = text.replace(f'"{documented_url}"', f'"{url}"')
    return text


@pytest.mark.parametrize("way", ["udp", "tcp", "tls"])
async def test_chromium_publishes_and_watches_through_the_relay(gateway, turn, relayed, ipc, way):
    site = await gateway(more=toml(turn))
    ann = await site.join("show", sub="ann")
    [server] = ann.joined["iceServers"]
    assert server["urls"] == list(turn.urls().values())
    servers = [server | {"urls": [turn.urls()[way]]}]
    begin = time.time()

    publisher, viewer = await relayed(servers), await relayed(servers)
    await publisher.publish(**ALICE)
    await Link.open(site, "/whip/show", token("show", sub="cam"), publisher)
    await viewer.receive()
    await Link.open(site, "/whep/show", token("show"), viewer)

    # A receiving m-line of each kind: audio is the first.
    await expect.moving(viewer, "1", ALICE["hue"], since=begin, frames=60)
    await expect.heard(viewer, "0", ALICE["tone"], since=begin)
    for peer in (publisher, viewer):
        path = await peer.path()
        assert (path["type"], path["relay"], path["remote"]) == ("relay", way, "udp"), path
    transports = (await ipc.call("stats.get", room="acme:show"))["transports"]
    assert len(transports) == 2
    for one in transports:
        assert one["remote"].rpartition(":")[0] == RELAYS, one


async def gathers(peer) -> tuple[str, dict[str, list[int]]]:
    """Returns the candidates of an offer, and the refusals by URL."""
    await peer.receive()
    offer = await peer.offer()
    lines = [line for line in offer.splitlines() if line.startswith("a=candidate:")]
    return "\n".join(lines), await peer.evaluate("peer.refusals")


async def test_the_browser_says_why_it_has_no_relay(turn, relayed):
    urls = turn.urls()

    def servers(way: str, seconds: int = 600, secret: str = TURN_SECRET) -> list[dict]:
        return ice_servers(secret.encode(), "ann", [urls[way]], seconds)

    for way in urls:
        candidates, refusals = await gathers(await relayed(servers(way)))
        assert f" {RELAYS} " in candidates and not refusals, (way, candidates, refusals)
    for wrong in (servers("udp", seconds=-5), servers("udp", secret="another secret")):
        candidates, refusals = await gathers(await relayed(wrong))
        assert not candidates and set(refusals[urls["udp"]]) == {401}, (candidates, refusals)
    candidates, refusals = await gathers(await relayed(servers("tls"), trusts=False))
    assert not candidates and set(refusals[urls["tls"]]) == {701}, (candidates, refusals)


def credentials(seconds: int) -> tuple[str, str]:
    [server] = ice_servers(TURN_SECRET.encode(), "ann", [], seconds)
    return server["username"], server["credential"]


async def test_the_relay_reaches_sfud_and_nobody_else(turn):
    allocation = await turn.allocate(*credentials(600))
    await allocation.channel_bind(0x4000, (LISTENS, 9))
    for other in ("127.0.0.3", "10.0.0.1", "203.0.113.9"):
        with pytest.raises(aioice.stun.TransactionFailed) as refused:
            await allocation.channel_bind(0x4001, (other, 9))
        assert refused.value.response.attributes["ERROR-CODE"][0] == 403, other
    assert "denied" in turn.log.read_text()
    await allocation.delete()


async def test_an_allocation_goes_on_after_its_credentials_have_expired(turn):
    username, password = credentials(2)
    allocation = await turn.allocate(username, password)
    expiry = int(username.partition(":")[0])

    async def expired():
        return time.time() > expiry + 1

    await until(expired, "the credentials have expired")
    await allocation.extend()
    with pytest.raises(aioice.stun.TransactionFailed) as refused:
        await turn.allocate(username, password)
    assert refused.value.response.attributes["ERROR-CODE"][0] == 401
    await allocation.delete()
