"""WHIP (RFC 9725) and WHEP through the gateway, and TURN credentials with a real server."""

import asyncio
import re
import time

import aioice.turn
import pytest

from harness import expect, process
from harness.gateway import TURN_SECRET, Link, fragment, merged, token
from harness.process import until
from harness.sfud import free_ports, is_free


async def publish(site, peer, room: str = "show", **look) -> Link:
    await peer.publish(**({"hue": 120, "tone": 440} | look))
    return await Link.open(site, f"/whip/{room}", token(room), peer)


async def view(site, peer, room: str = "show", slots: int = 1, query: str = "") -> Link:
    await peer.receive(slots)
    return await Link.open(site, f"/whep/{room}{query}", token(room), peer)


async def mid_of(peer, kind: str = "video") -> str:
    """Returns the mid on which something of this kind arrives."""

    async def found():
        entries = [it for it in (await peer.stats())["in"] if it.get("kind") == kind]
        return next((it["mid"] for it in entries if it.get("packetsReceived", 1)), None)

    return await until(found, f"{kind} arrives")


@pytest.mark.parametrize("stack", ["aiortc", "GStreamer"])
async def test_viewers_by_whep_see_and_hear_a_publisher_by_whip(gateway, peers, stack):
    site = await gateway()
    publisher = await peers(stack)
    early = time.time()
    source = await publish(site, publisher)
    viewers = [await peers("Chromium" if stack == "aiortc" else "aiortc") for _ in range(2)]
    links = [await view(site, it) for it in viewers]
    for viewer in viewers:
        await expect.moving(viewer, await mid_of(viewer), 120, since=early)
        await expect.heard(viewer, await mid_of(viewer, "audio"), 440, since=early)
    # A player may offer to send, too; it does not.
    eager = await peers("aiortc")
    await eager.publish(hue=0, tone=880, sendrecv=True)
    extra = await Link.open(site, "/whep/show", token("show"), eager)
    assert "a=sendonly" in extra.answer and "a=sendrecv" not in extra.answer
    await expect.moving(eager, await mid_of(eager), 120, since=early)
    await extra.delete()
    # One leaves, the other sees on; then the publisher ends.
    watcher = await site.join("show", sub="watcher", role="viewer")
    assert watcher.joined["roomInfo"]["counts"]["participants"] == 4
    assert await links[0].delete() == 200
    assert await links[0].delete() == 404
    await watcher.hears("participant.left", reason="left")
    await expect.moving(viewers[1], await mid_of(viewers[1]), 120, since=time.time())
    assert await source.delete() == 200
    await watcher.hears("stream.destroyed")


async def test_a_publisher_restarts_ice_by_patch(gateway, peers):
    site = await gateway()
    publisher, viewer = await peers("Chromium"), await peers("aiortc")
    source = await publish(site, publisher)
    await view(site, viewer)
    await expect.moving(viewer, await mid_of(viewer), 120)

    offer = await publisher.offer()
    first = source.etag
    assert await source.patch(fragment(offer), first) == (204, "", "")  # trickle
    assert (await source.patch(fragment(offer), None))[0] == 428
    assert (await source.patch(fragment(offer), '"another"'))[0] == 412
    assert (await source.patch(fragment(offer), '"*"'))[0] == 400  # nothing new in it
    kind = {"Content-Type": "application/sdp"}
    assert (await source.patch(fragment(offer), first, **kind))[0] == 415
    assert (await source.patch("v=0\r\n", first))[0] == 400
    await publisher.accept(source.answer)

    await publisher.restart_ice()
    offer = await publisher.offer()
    status, answer, etag = await source.patch(fragment(offer), '"*"')
    assert status == 200 and etag not in ("", first), answer
    ufrag = re.compile(r"a=ice-ufrag:(\S+)")
    assert ufrag.search(answer)[1] != ufrag.search(source.answer)[1]
    assert "a=candidate:" in answer
    since = time.time()
    await publisher.accept(merged(source.answer, answer))
    await expect.moving(viewer, await mid_of(viewer), 120, since=since)
    assert (await source.patch(fragment(offer), first))[0] == 412
    assert (await source.patch(fragment(offer), etag))[0] == 204

    # A restart of the gateway leaves the session as it is.
    await site.stop()
    await site.start()
    await publisher.restart_ice()
    offer = await publisher.offer()
    status, answer, _ = await source.patch(fragment(offer), "*")
    assert status == 200
    since = time.time()
    await publisher.accept(merged(source.answer, answer))
    await expect.moving(viewer, await mid_of(viewer), 120, since=since)


async def test_a_viewer_gets_whom_it_names_or_who_talks(gateway, peers):
    site = await gateway()
    looks = {"ann": (120, 440), "ben": (240, 660)}
    speakers = {}
    for name, (hue, tone) in looks.items():
        speakers[name] = await peers("aiortc")
        await speakers[name].publish(hue=hue, tone=tone, speech=True)
        bearer = token("show", sub=name)
        await Link.open(site, "/whip", bearer, speakers[name])
    named, free, both = [await peers("aiortc") for _ in range(3)]
    await view(site, named, query="?participant=ben")
    await view(site, free)
    await view(site, both, slots=2)
    await expect.moving(named, await mid_of(named), 240)

    async def hues():
        stats = [it for it in (await both.stats())["in"] if it.get("kind") == "video"]
        frames = [await both.frames(it["mid"]) for it in stats]
        return {round(it[-1].hue / 120) for it in frames if it} == {1, 2}

    await until(hues, "both are seen in two slots")
    for name in ("ann", "ben", "ann"):
        for other, peer in speakers.items():
            await peer.speak(other == name)
        await expect.first_frame(free, await mid_of(free), looks[name][0], time.time())


async def test_what_is_asked_wrongly_by_http_is_answered_by_the_book(gateway, peers):
    site = await gateway(root='origins = ["https://app.example"]')
    peer = await peers("aiortc")
    await peer.publish(hue=120, tone=440)
    offer = await peer.offer()
    silent = await peers("aiortc")
    await silent.receive()
    sdp = {"Content-Type": "application/sdp"}
    good = sdp | {"Authorization": f"Bearer {token('show')}"}
    audio_only = token("audio", role="moderator", settings={"mode": "single_host_audio_only"})
    viewer = sdp | {"Authorization": f"Bearer {token('show', role='viewer')}"}

    async def post(path, data, headers):
        async with site.http.post(site.url + path, data=data, headers=headers) as reply:
            return reply, await reply.text()

    for path, data, headers, status in (
        ("/whip/show", offer, sdp, 401),
        ("/whip/show", offer, sdp | {"Authorization": "Bearer x.y.z"}, 401),
        ("/whip/show", offer, sdp | {"Authorization": f"Bearer {token('other')}"}, 403),
        ("/whip/show", offer, viewer, 403),
        ("/whip/show", offer, good | {"Content-Type": "text/plain"}, 415),
        ("/whip/show", "x" * 262_145, good, 413),
        ("/whip/show", "no SDP", good, 400),
        ("/whip/show", offer.replace("m=audio", "m audio"), good, 400),
        ("/whip/show", await silent.offer(), good, 422),
        ("/whep/none", offer, sdp | {"Authorization": f"Bearer {token('none')}"}, 409),
        ("/whip/a b", offer, good, 400),
        ("/whip/audio", offer, sdp | {"Authorization": f"Bearer {audio_only}"}, 403),
    ):
        reply, text = await post(path, data, headers)
        assert reply.status == status, (path, status, text)
        assert reply.content_type == "application/problem+json"
        assert ("WWW-Authenticate" in reply.headers) == (status == 401)
        assert ("Retry-After" in reply.headers) == (status == 409)
    # Nobody is left over from all this.
    watcher = await site.join("show", sub="watcher")
    assert watcher.joined["roomInfo"]["counts"]["participants"] == 1
    for method in ("get", "head", "put"):
        async with getattr(site.http, method)(site.url + "/whip/show") as reply:
            assert reply.status == 405
    for origin, allowed in (("https://app.example", True), ("https://evil.example", False)):
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        async with site.http.options(site.url + "/whip/show", headers=headers) as reply:
            assert reply.status == 200 and reply.headers["Accept-Post"] == "application/sdp"
            assert reply.headers.get("Access-Control-Allow-Origin") == (origin if allowed else None)
            assert "POST" in reply.headers["Access-Control-Allow-Methods"]
            assert "Location" in reply.headers["Access-Control-Expose-Headers"]
    url = site.url.replace("http", "ws", 1) + "/ws"
    with pytest.raises(Exception, match="403"):
        await site.http.ws_connect(url, headers={"Origin": "https://evil.example"})


async def test_who_is_dropped_publishes_no_more(gateway, peers):
    site = await gateway()
    mia = await site.join("show", sub="mia", role="moderator")
    peer = await peers("aiortc")
    await peer.publish(hue=120, tone=440)
    bearer = token("show", sub="cam")
    source = await Link.open(site, "/whip", bearer, peer)
    await mia.hears("stream.created", participant="cam")
    await mia.call("participant.drop", participants=["cam"])
    await mia.hears("participant.left", participant="cam", reason="dropped")
    assert await source.delete() == 404
    again = await peers("aiortc")
    await again.publish(hue=120, tone=440)
    with pytest.raises(AssertionError, match="401"):
        await Link.open(site, "/whip", bearer, again)


async def test_a_session_ends_with_its_own_token_even_an_expired_one(gateway, peers):
    site = await gateway(root="leeway_seconds = 0")
    expires = int(time.time()) + 4
    bearer = token("show", exp=expires)
    peer = await peers("aiortc")
    await peer.publish(hue=120, tone=440)
    source = await Link.open(site, "/whip", bearer, peer)
    await asyncio.sleep(expires + 0.1 - time.time())
    unsigned = bearer.rpartition(".")[0]
    statuses = []
    for text in (f"{unsigned}.c2lnbmF0dXJl", f"{unsigned}.", unsigned, token("show"), bearer):
        headers = {"Authorization": f"Bearer {text}"}
        async with site.http.delete(source.url, headers=headers) as reply:
            statuses.append(reply.status)
    assert statuses == [401, 401, 401, 401, 200]


TURN = """
[ice]
stun = ["stun:127.0.0.1:{port}"]
[[ice.turn]]
urls = ["turn:127.0.0.1:{port}?transport=udp"]
secret_file = "turn-secret"
seconds = 600
"""


async def test_coturn_accepts_the_credentials(gateway, sfud, peers):
    port = free_ports()
    server = await process.start(
        "turnserver", "-n", "--listening-ip=127.0.0.1", f"--listening-port={port}",
        "--no-tls", "--no-dtls", "--no-cli", "--use-auth-secret", "--realm=test",
        f"--static-auth-secret={TURN_SECRET}", "--allow-loopback-peers",
        f"--userdb={sfud.directory}/turndb", "--log-file=stdout", "--pidfile=/dev/null",
        output=sfud.directory / "turn.log",
    )  # fmt: skip
    try:
        site = await gateway(more=TURN.format(port=port))
        ann = await site.join("show", sub="ann")
        servers = ann.joined["iceServers"]
        assert servers[0] == {"urls": [f"stun:127.0.0.1:{port}"]}
        name, password = servers[1]["username"], servers[1]["credential"]
        expiry, _, who = name.partition(":")
        assert who == "acme/ann" and 590 < int(expiry) - time.time() <= 600

        async def allocate(username: str, secret: str) -> None:
            transport, _ = await aioice.turn.create_turn_endpoint(
                asyncio.DatagramProtocol, server_addr=("127.0.0.1", port),
                username=username, password=secret,
            )  # fmt: skip
            transport.close()
            await asyncio.sleep(0.05)  # in which it ends its allocation

        async def listens():
            return not is_free(port)

        await until(listens, "coturn listens")
        await allocate(name, password)
        later = (await ann.call("ice.servers"))["iceServers"][1]
        await allocate(later["username"], later["credential"])
        for username, secret in ((name, password[:-2] + "A="), (f"{int(expiry) + 9}:x", password)):
            with pytest.raises(Exception, match="401|Unauthorized"):
                await allocate(username, secret)
        peer = await peers("aiortc")
        source = await publish(site, peer)
        assert f'<stun:127.0.0.1:{port}>; rel="ice-server"' in source.links
        [link] = [it for it in source.links if it.startswith("<turn:")]
        found = dict(re.findall(r'(\w[\w-]*)="([^"]*)"', link))
        assert found["credential-type"] == "password"
        await allocate(found["username"], found["credential"])
    finally:
        await process.kill(server)
