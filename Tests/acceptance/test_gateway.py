"""The gateway's tokens, rights and limits, and its WebSockets; with the real daemon."""

import asyncio
import contextlib
import json
import signal
import sqlite3
import string
import time

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from harness import expect, process
from harness.gateway import SECRET, Client, Refused, token
from harness.process import until


def public(key) -> bytes:
    return key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )


@pytest.fixture(scope="module")
def keys():
    return {
        "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
        "ES256": ec.generate_private_key(ec.SECP256R1()),
    }


def key_lines(directory, keys, *algorithms: str) -> str:
    lines = []
    for algorithm in algorithms:
        (directory / f"{algorithm}.pem").write_bytes(public(keys[algorithm]))
        lines.append(
            f'{{ kid = "{algorithm}", algorithm = "{algorithm}", '
            f'public_key_file = "{algorithm}.pem" }}'
        )
    return ",".join(lines)


async def refusal(gateway, text: str, room: str | None = None) -> str:
    client = await gateway.client()
    try:
        return await client.refused("participant.join", token=text, room=room)
    finally:
        await client.close()


# Tokens.


async def test_a_token_says_who_joins_where_and_as_what(sfud, gateway, keys):
    site = await gateway(keys=key_lines(sfud.directory, keys, "RS256", "ES256"))
    for algorithm in ("HS256", "RS256", "ES256"):
        client, kid = await site.client(), "a" if algorithm == "HS256" else algorithm
        text = token(
            "class-*", keys.get(algorithm, SECRET), kid, algorithm, sub=f"p-{algorithm}",
            name="Ann", role="moderator", custom={"seat": 4},
        )  # fmt: skip
        joined = await client.join(token=text, room="class-7")
        info = joined["participantInfo"]
        assert joined["participant"] == f"p-{algorithm}" and joined["room"] == "class-7"
        assert joined["roomInfo"]["room"] == "class-7"
        assert (info["name"], info["role"], info["custom"]) == ("Ann", "moderator", {"seat": 4})
        assert await client.refused("participant.update", name="Eve") == "not-permitted"
        assert await client.refused("participant.update", custom={}) == "not-permitted"
    free = await site.join("class-7")
    assert free.joined["participantInfo"]["role"] == "participant"
    assert len(free.id) > 32
    await free.call("participant.update", name="Ben")
    await free.hears("participant.changed", participant=free.id)


async def test_a_token_that_is_not_right_lets_nobody_in(sfud, gateway, keys):
    (sfud.directory / "other").write_text("the secret of another tenant, long enough")
    site = await gateway(
        keys=key_lines(sfud.directory, keys, "RS256"),
        more='[tenants.other]\nkeys = [{ kid = "o", algorithm = "HS256", secret_file = "other" }]',
    )
    now = int(time.time())
    pem = public(keys["RS256"])
    forged = jwt.utils.base64url_encode
    head = forged(json.dumps({"alg": "HS256", "kid": "RS256"}).encode())
    claims = forged(json.dumps({"iss": "acme", "room": "r1", "iat": now, "exp": now + 60}).encode())
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    confused = b".".join([head, claims, forged(mac.sign(head + b"." + claims, pem))]).decode()
    wrong = {
        token(exp=now - 60): "token-expired",
        token(nbf=now + 120): "token-not-yet-valid",
        token(key=SECRET + "?"): "token-invalid",
        token(kid="b"): "token-invalid",
        token(iss="other"): "token-invalid",
        token(iss="other", kid="o"): "token-invalid",
        token(iss="nobody"): "token-invalid",
        token(key=None, algorithm="none"): "token-invalid",
        token(iat=None): "token-invalid",
        token(exp=None): "token-invalid",
        token(exp=now + 90_000): "token-invalid",
        token(room=None): "token-invalid",
        token(room="a/b"): "token-invalid",
        token(sub="a b"): "token-invalid",
        token(ifPresent="never"): "token-invalid",
        confused: "token-invalid",
        "": "token-invalid",
        "a.b.c": "token-invalid",
        token("r2"): "wrong-room",
        token("x*"): "wrong-room",
        token(create=False): "no-such-room",
    }
    for text, reason in wrong.items():
        assert await refusal(site, text, "r1") == reason, (text, reason)
    # The leeway, and a prefix that fits.
    for text in (token(exp=now - 5), token(nbf=now + 5), token("r*")):
        client = await site.client()
        await client.join(token=text, room="r1")


async def test_keys_are_rotated_by_reload_and_nobody_in_a_call_notices(sfud, gateway, keys):
    site = await gateway()
    ann = await site.join(sub="ann")
    new = token(key=keys["ES256"], kid="ES256", algorithm="ES256", sub="ben")
    assert await refusal(site, new) == "token-invalid"
    site.write(keys=key_lines(sfud.directory, keys, "ES256"))
    await site.reload()
    ben = await site.client()
    await ben.join(token=new)
    await (await site.join(sub="cy")).close()  # both are good meanwhile
    site.config.write_text(site.config.read_text().replace('kid = "a"', 'kid = "z"'))
    await site.reload()
    assert await refusal(site, token()) == "token-invalid"
    site.config.write_text("listen = 7")
    await site.reload()
    assert site.refused_reloads() == 1
    await (await site.client()).join(token=new)  # takes Ben's place by the keys of before
    await ann.hears("participant.left", participant="cy")
    assert (await ann.call("room.get"))["room"] == "r1"


async def test_a_drop_revokes_the_token_also_after_a_restart(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    named, shared = token(sub="ben"), token()
    other = token(sub="ben", name="Another one of Ben's")
    ben, eve = await site.client(), await site.client()
    await ben.join(token=named)
    await eve.join(token=shared)
    await mia.call("participant.drop", participants=[ben.id, eve.id], detail="out")
    for client in (ben, eve):
        await client.hears("session.ended", reason="dropped")
        assert await client.refused("room.get") == "not-joined"
    for text in (named, shared, other):
        assert await refusal(site, text) == "token-revoked"
    await site.stop()
    await site.start()
    for text in (named, shared, other):
        assert await refusal(site, text) == "token-revoked"
    # The tenant's server decides anew, with a token of after the drop; other rooms are open.
    await asyncio.sleep(1.1 - time.time() % 1)
    await site.join(sub="ben")
    await site.join("r2", sub="ben")


def respelled(text: str, key=None) -> list[str]:
    """Returns other texts of a token, whose signatures verify as well."""
    signed, _, signature = text.rpartition(".")
    alphabet = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"
    last = alphabet[alphabet.index(signature[-1]) ^ 1]  # a spare bit
    found = [f"{signed}.{signature[:-1]}{last}", f"{signed}.{signature[:9]}!!!!{signature[9:]}"]
    if key is not None:  # (r, n - s) is good wherever (r, s) is
        both = jwt.utils.base64url_decode(signature)
        n = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        s = n - int.from_bytes(both[32:], "big")
        other = jwt.utils.base64url_encode(both[:32] + s.to_bytes(32, "big"))
        found.append(f"{signed}.{other.decode()}")
    return found


async def test_a_dropped_token_is_revoked_however_its_signature_is_spelled(gateway, sfud, keys):
    site = await gateway(keys=key_lines(sfud.directory, keys, "ES256"))
    mia = await site.join(sub="mia", role="moderator")
    for key, text in (
        (None, token()), (keys["ES256"], token(key=keys["ES256"], kid="ES256", algorithm="ES256")),
    ):  # fmt: skip
        eve = await site.client()
        await eve.join(token=respelled(text)[0])
        others = [await site.client() for _ in respelled(text, key)]
        for client, other in zip(others, respelled(text, key), strict=True):
            await client.join(token=other)  # so these are spellings of a token
        await mia.call("participant.drop", participants=[eve.id])
        await eve.hears("session.ended", reason="dropped")
        for other in [text, *respelled(text, key)]:
            assert await refusal(site, other) == "token-revoked", other


async def test_who_was_demoted_does_not_moderate_again_by_the_token(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    text = token(sub="ben", role="moderator")
    ben = await site.client()
    await ben.join(token=text)
    await mia.call("role.change", participant="ben", role="participant", force=True)
    await ben.hears("participant.roleChanged", current="participant")
    await ben.close()
    await mia.hears("participant.left", participant="ben")
    again = await site.client()
    assert (await again.join(token=text))["participantInfo"]["role"] == "participant"
    assert await again.refused("room.lock") == "not-permitted"


async def test_if_present_says_whether_a_second_connection_takes_over(gateway):
    site = await gateway()
    ann = await site.join(sub="ann")
    assert await refusal(site, token(sub="ann", ifPresent="refuse")) == "already-exists"
    again = await site.join(sub="ann")
    await ann.hears("session.ended", reason="replaced")
    assert await ann.refused("room.get") == "not-joined"
    assert (await again.call("room.get"))["counts"]["participants"] == 1
    await ann.close()
    await asyncio.sleep(0.3)  # the former connection's end takes nobody out
    assert (await again.call("room.get"))["counts"]["participants"] == 1


async def test_a_shared_token_loses_what_one_lost_and_gets_nothing_that_one_was_given(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    for role, current, then in (
        ("moderator", "participant", "participant"), ("participant", "moderator", "participant"),
        ("participant", "viewer", "viewer"),
    ):  # fmt: skip
        text = token(role=role, name=f"{role} to {current}")
        first, second = await site.client(), await site.client()
        await first.join(token=text)
        await mia.call("role.change", participant=first.id, role=current, force=True)
        joined = await second.join(token=text)
        assert joined["participantInfo"]["role"] == then, (role, current)


async def test_roles_that_a_token_made_are_lost_too(gateway):
    site = await gateway()
    roles = [
        {"name": "moderator", "permissions": ["changeRole", "lock"]},
        {"name": "host", "permissions": ["lock"]}, {"name": "guest"},
    ]  # fmt: skip
    settings = {"roles": roles}
    mia = await site.join(sub="mia", role="moderator", settings=settings)
    for current, then in (("guest", "guest"), ("moderator", "host")):
        text = token(role="host", name=f"host to {current}", settings=settings)
        first, second = await site.client(), await site.client()
        await first.join(token=text)
        await mia.call("role.change", participant=first.id, role=current, force=True)
        await first.hears("participant.roleChanged", participant=first.id, current=current)
        joined = await second.join(token=text)
        assert joined["participantInfo"]["role"] == then, current


# Rights.

MODERATION = [
    ("room.lock", {}), ("room.unlock", {}), ("room.hardMute", {}), ("room.hardUnmute", {}),
    ("participant.hardMute", {"participant": "ben", "media": ["audio"]}),
    ("participant.hardUnmute", {"participant": "ben", "media": ["audio"]}),
    ("pin.add", {"participants": ["ben"]}), ("pin.remove", {"participants": ["ben"]}),
    ("participant.setMode", {"participant": "ben", "mode": "RECV_ONLY"}),
    ("role.change", {"participant": "ben", "role": "viewer", "force": True}),
    ("participant.drop", {"participants": ["vic"]}),
    ("room.close", {}),
]  # fmt: skip


async def test_a_role_may_do_what_it_may_and_nothing_else(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    ben = await site.join(sub="ben")
    vic = await site.join(sub="vic", role="viewer")
    for client in (ben, vic):
        for method, params in MODERATION:
            if client.id != params.get("participant") or method == "role.change":
                assert await client.refused(method, **params) == "not-permitted", method
    for method in ("recording.start", "room.update"):
        params = {"custom": {}} if method == "room.update" else {}
        assert await mia.refused(method, **params) == "not-permitted"
    url = "rtmp://127.0.0.1/app/key"
    assert await mia.refused("streaming.start", url=url) == "not-permitted"
    for wrong in ({}, {"url": None}, {"url": 7}):
        assert await mia.refused("streaming.start", **wrong) == "invalid-params"
    for method, params in MODERATION:
        result = await mia.call(method, **params)
        assert "directory" not in result
    await ben.hears("session.ended", reason="room-closed")


async def test_who_has_the_right_records_and_is_not_told_where(gateway):
    roles = '[{ name = "moderator", publish = { audio = true }, permissions = ["record"] }]'
    site = await gateway(tenant=f"settings = {{ roles = {roles} }}")
    mia = await site.join(sub="mia", role="moderator")
    assert (await mia.call("recording.start")).keys() == {"recording"}
    await mia.call("recording.stop")
    stopped = await mia.hears("recording.stopped")
    assert stopped["data"].keys() <= {"recording", "reason", "by"}


async def test_a_client_names_nobody_but_itself_and_no_other_room(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    ben = await site.join(sub="ben")
    for method, params in (
        ("room.lock", {"by": "mia"}), ("room.lock", {"room": "r2"}),
        ("floor.request", {"participant": "mia"}),
        ("message.publish", {"topic": "t", "message": "m", "from": "mia"}),
        ("subscription.set", {"subscriptions": [], "participant": "mia"}),
        ("transport.offer", {"sdp": "v=0", "participant": "mia"}),
        ("stats.get", {"participant": "mia"}), ("room.update", {"settings": {"roles": []}}),
        ("participant.join", {"token": token(), "role": "moderator"}),
    ):  # fmt: skip
        assert await ben.refused(method, **params) == "invalid-params", (method, params)
    for method in ("participant.leave_", "server.info", "events.subscribe", "room.create",
                   "tap.start", "message.subscribe "):  # fmt: skip
        assert await ben.refused(method) == "no-such-method"
    assert await ben.refused("participant.update", participant="mia", name="x") == "not-permitted"
    assert await ben.refused("participant.setMode", participant="mia", mode="RECV_ONLY") \
        == "not-permitted"  # fmt: skip
    await ben.call("message.subscribe", topic="chat")
    await mia.call("message.publish", topic="chat", message="hello", payload={"n": 1})
    heard = await ben.hears("message.received")
    assert heard["data"]["from"] == "mia" and heard["room"] == "r1"
    assert not [it for it in mia.events if it["event"] == "message.received"]


async def test_who_waits_to_be_let_in_sees_nobody(gateway):
    site = await gateway()
    settings = {"knock": True, "mode": "lecture"}
    mia = await site.join(sub="mia", role="moderator", settings=settings)
    ben = await site.join(sub="ben")
    info = ben.joined["roomInfo"]
    assert ben.joined["state"] == "awaited"
    assert (info["participants"], info["awaited"], info["streams"]) == ([], [], [])
    assert await ben.refused("participant.list") == "not-permitted"
    assert (await ben.call("room.get"))["participants"] == []
    await mia.hears("participant.awaited", participant="ben")
    await mia.call("pin.add", participants=["mia"])
    await mia.hears("pins.changed")
    assert not [it for it in ben.events if it["event"] != "gateway.status"]
    assert [it["participant"] for it in (await mia.call("room.get"))["awaited"]] == ["ben"]
    await mia.call("participant.approve", participant="ben")
    approved = await ben.hears("participant.approved", participant="ben")
    assert approved["data"]["roomInfo"]["room"] == "r1"
    await ben.hears("participant.joined", participant="ben")
    assert len((await ben.call("participant.list"))["participants"]) == 2
    await ben.call("floor.request")
    await mia.hears("floor.requested", participant="ben")
    await mia.call("floor.grant", participant="ben")
    await ben.hears("floor.granted", participant="ben")
    await mia.call("room.close")


async def test_what_is_no_request_is_refused_and_harms_nobody(gateway):
    site = await gateway()
    client: Client = await site.join(sub="ann")
    for text, reason in (
        ("{", "parse-error"), ("[]", "invalid-request"), ("7", "invalid-request"),
        ('{"method":"room.get"}', "invalid-request"), ("[" * 5000, "parse-error"),
        ('{"id":true,"method":"room.get"}', "invalid-request"),
        ('{"id":1.5,"method":"room.get"}', "invalid-request"),
    ):  # fmt: skip
        assert (await client.raw(text))["error"]["reason"] == reason, text
    for number, text in enumerate((
        '{"id":%d,"method":"room.get","extra":1}', '{"id":%d,"method":7}',
        '{"id":%d,"method":"room.get","params":[1]}',
        '{"id":%d,"method":"message.publish","params":{"topic":"t","message":"\\ud800"}}',
        '{"id":%d,"method":"message.publish","params":{"topic":"t","message":"m","payload":1e999}}',
        '{"id":%d,"method":"message.publish","params":{"topic":"t","message":"m","payload":%s}}'
        % (1005, "[" * 60 + "]" * 60),
    ), 1000):  # fmt: skip
        id = number if "%d" in text else 1005
        reply = await client.raw(text % number if "%d" in text else text, None if number in (
            1003, 1004, 1005) else id)  # fmt: skip
        assert reply["error"]["reason"] in ("invalid-request", "invalid-params"), text
    assert (await client.call("room.get"))["counts"]["participants"] == 1


# Limits.


async def test_a_tenant_has_limits_of_its_own(gateway):
    limits = "limits = { rooms = 2, participants = 3, message_bytes = 2000 }"
    site = await gateway(tenant=limits)
    ann = await site.join("r1", sub="ann")
    await site.join("r2", sub="ben")
    with pytest.raises(Exception, match="limit rooms is reached"):
        await site.join("r3", sub="cy")
    await site.join("r1", sub="cy")
    with pytest.raises(Exception, match="limit participants is reached"):
        await site.join("r1", sub="dan")
    await site.join("r1", sub="cy")  # who is there comes back
    await ann.call("message.publish", topic="t", message="x" * 1_800)
    long = {"id": 7, "method": "message.publish", "params": {"topic": "t", "message": "x" * 2_000}}
    reply = await ann.raw(json.dumps(long))
    assert reply["error"]["data"] == {"limit": "messageBytes", "value": 2_000}
    # A reload raises them for those who are there too.
    site.write(tenant=limits.replace("2000", "9000").replace("rooms = 2", "rooms = 3"))
    await site.reload()
    assert "result" in await ann.raw(json.dumps(long), 7)


async def test_joins_are_limited_by_second_and_a_flood_waits(gateway):
    site = await gateway(tenant="limits = { joins_per_second = 3, messages_per_second = 20 }")
    client = await site.join(sub="ann")
    got = [await refusal(site, token("r1", sub="ann", ifPresent="refuse")) for _ in range(6)]
    assert got.count("limit-reached") >= 3 and got.count("already-exists") <= 3
    begin = time.monotonic()
    await asyncio.gather(*(client.call("room.get") for _ in range(40)))
    assert 0.7 < time.monotonic() - begin < 5


async def test_a_client_that_does_not_read_is_cut_off_and_resumes(gateway):
    site = await gateway()
    ann, ben = await site.join(sub="ann"), await site.join(sub="ben")
    for _ in range(14):
        content = {"message": "x" * 65_000, "payload": "x" * 60_000}
        await ann.call("message.publish", topic="t", persist=True, **content)
    ben.socket._response.connection.transport.pause_reading()
    for number in range(30):
        # Each of the replies has all that is kept.
        request = {"id": f"s{number}", "method": "message.subscribe", "params": {"topic": "t"}}
        await ben.socket.send_json(request)

    async def cut():
        return "sfud_gateway_connections 1.0" in await site.metrics()

    await until(cut, "the connection is cut", 10)
    again = await site.client()
    resumed = await again.call("session.resume", session=ben.joined["session"])
    assert resumed["participant"] == "ben"


async def test_a_connection_that_does_not_join_is_closed_however_busy_it_is(gateway):
    site = await gateway(root="join_seconds = 1")
    joined, idle, busy = await site.join(), await site.client(), await site.client()
    with pytest.raises(ConnectionError):
        while True:
            assert await busy.refused("room.get") == "not-joined"
            await asyncio.sleep(0.1)

    async def closed():
        return idle.socket.closed

    await until(closed, "the idle one is closed", 2)
    assert (await joined.call("room.get"))["counts"]["participants"] == 1


async def test_a_connection_that_floods_before_it_joins_is_read_slowly_and_closed(gateway):
    site = await gateway(root="join_seconds = 3")
    long = json.dumps({"id": 1, "method": "participant.join", "params": {"x": [1] * 40_000}})
    quick = json.dumps({"id": 1, "method": "room.get"})
    for text, least, most in ((quick, 5, 5 + 3 * 5 + 1), (long, 0, 2)):
        socket = await site.http.ws_connect(site.url.replace("http", "ws", 1) + "/ws")
        begin, answers = time.monotonic(), 0

        async def flood(socket=socket, text=text):
            with contextlib.suppress(ConnectionError):
                while not socket.closed:
                    await socket.send_str(text)

        flooding = asyncio.create_task(flood())
        async for frame in socket:
            answers += "error" in json.loads(frame.data)
        flooding.cancel()
        assert least <= answers <= most and 2 < time.monotonic() - begin < 9, (text[:30], answers)


async def test_a_connection_without_a_request_is_closed(gateway):
    site = await gateway(root="join_seconds = 1")
    joined = await site.join()
    for start in (b"", b"GET /ws HTT", b"GET /ws HTTP/1.1\r\nHost: x\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        writer.write(start)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(reader.read(), 5) == b"", start
        writer.close()
    assert (await joined.call("room.get"))["counts"]["participants"] == 1


# Calls, and what breaks.


async def publishes(client: Client, peer, **look) -> str:
    """Publishes over the WebSocket; returns the stream."""
    await peer.publish(**look)
    result = await client.call("transport.offer", sdp=await peer.offer())
    await peer.accept(result["sdp"])
    return next(it["stream"] for it in result["mids"] if "stream" in it)


async def watches(client: Client, peer, stream: str) -> dict:
    await peer.receive(1)
    result = await client.call("transport.offer", sdp=await peer.offer())
    await peer.accept(result["sdp"])
    result = await client.call("subscription.set", subscriptions=[{"stream": stream}])
    return result["results"][0]


async def test_a_call_goes_on_through_a_restart_and_a_broken_network(gateway, peers):
    site = await gateway()
    ann, ben = await site.join(sub="ann"), await site.join(sub="ben")
    publisher, viewer = await peers("aiortc"), await peers("aiortc")
    stream = await publishes(ann, publisher, hue=120, tone=440)
    watched = await watches(ben, viewer, stream)
    await expect.moving(viewer, watched["videoMid"], 120)
    explained = await ben.call("subscription.explain", subscription=watched["subscription"])
    assert explained["sent"]["width"] == 640
    assert await ann.refused("subscription.explain", subscription=watched["subscription"]) \
        == "not-own"  # fmt: skip

    since = time.time()
    await site.stop()
    assert ann.socket.close_code == 1012
    await site.start()
    keys = [it.joined["session"] for it in (ann, ben)]
    ann, ben = await site.client(), await site.client()
    for client, key in zip((ann, ben), keys, strict=True):
        client.joined = await client.call("session.resume", session=key)
        assert client.joined["roomInfo"]["counts"]["streams"] == 1
    await expect.moving(viewer, watched["videoMid"], 120, since=since)
    await ann.call("stream.update", stream=stream, video=False)
    await ben.hears("stream.changed", stream=stream)

    ben.breaks()
    await asyncio.sleep(0.2)
    again = await site.client()
    await again.call("session.resume", session=keys[1])
    listed = (await again.call("subscription.list"))["subscriptions"]
    assert [it["subscription"] for it in listed] == [watched["subscription"]]
    await again.close()  # a closed tab
    await ann.hears("participant.left", participant="ben", reason="left")
    stranger = await site.client()
    assert await stranger.refused("session.resume", session=keys[1]) == "no-such-session"
    await site.stop()
    await site.start()
    assert 'sfud_gateway_sessions{kind="ws",tenant="acme"} 1.0' in await site.metrics()  # Ann's


async def test_who_was_let_in_without_being_told_leaves_again(gateway, sfud):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    sfud.process.send_signal(signal.SIGSTOP)
    try:
        assert await refusal(site, token(sub="ben")) == "timeout"
    finally:
        sfud.process.send_signal(signal.SIGCONT)
    await mia.hears("participant.joined", participant="ben")
    await mia.hears("participant.left", participant="ben")
    ben = await site.join(sub="ben")  # and stays
    await asyncio.sleep(0.3)
    assert (await ben.call("room.get"))["counts"]["participants"] == 2


async def test_an_offer_that_a_crash_left_without_an_answer_leaves_nobody(gateway, sfud):
    site = await gateway()
    mia = await site.join(sub="mia")
    await site.join(sub="cam")
    await site.stop()
    # As a process leaves it that ends between the join of a POST and its answer.
    with contextlib.closing(sqlite3.connect(sfud.directory / "state/gateway.sqlite3")) as store:
        store.execute("UPDATE sessions SET kind = 'whip' WHERE participant = 'cam'")
        store.commit()
    await site.start()
    again = await site.client()
    await again.call("session.resume", session=mia.joined["session"])

    async def gone():
        return (await again.call("room.get"))["counts"]["participants"] == 1

    await until(gone, "the publisher has left", 5)
    assert (await again.call("room.get"))["participants"][0]["participant"] == "mia"


async def test_who_does_not_resume_in_time_has_left(gateway):
    site = await gateway(root="grace_seconds = 1")
    ann, ben = await site.join(sub="ann"), await site.join(sub="ben")
    ben.breaks()
    await asyncio.sleep(0.5)
    assert (await ann.call("room.get"))["counts"]["participants"] == 2
    await ann.hears("participant.left", participant="ben")
    await site.stop()
    await site.start()  # Ann does not come back either

    async def alone():
        joined = await site.join(sub="cy")
        count = joined.joined["roomInfo"]["counts"]["participants"]
        await joined.close()
        return count == 1

    await until(alone, "Ann is out", 5, every=0.4)


async def test_e8_e10_e12_a_reload_lifts_no_mute_and_locks_nobody_out(gateway):
    site = await gateway()
    mia = await site.join(sub="mia", role="moderator")
    ben = await site.join(sub="ben", ifPresent="refuse")
    await mia.call("participant.hardMute", participant="ben", media=["video"])
    await mia.call("room.lock")
    await ben.close(1001)  # as a browser does
    again = await site.join(sub="ben", ifPresent="refuse")
    assert again.joined["participantInfo"]["hardMuted"] == ["video"]
    assert await refusal(site, token(sub="ben", ifPresent="refuse")) == "already-exists"
    assert await refusal(site, token(sub="cy")) == "room-locked"
    assert not [it for it in mia.events if it["event"] == "participant.left"]

    # A participant that says goodbye leaves at once, and is not unmuted by it either.
    await again.close(1000)
    await mia.hears("participant.left", participant="ben", reason="left")
    assert await refusal(site, token(sub="ben")) == "room-locked"
    await mia.call("room.unlock")
    back = await site.join(sub="ben")
    assert back.joined["participantInfo"]["hardMuted"] == ["video"]
    await mia.call("participant.hardUnmute", participant="ben", media=["video"])
    await back.close(1000)
    free = await site.join(sub="ben")
    assert free.joined["participantInfo"]["hardMuted"] == []


async def test_whose_page_is_not_loaded_again_has_left(gateway):
    site = await gateway(root="grace_seconds = 1")
    ann, ben = await site.join(sub="ann"), await site.join(sub="ben")
    await ben.close(1001)
    await asyncio.sleep(0.5)
    assert (await ann.call("room.get"))["counts"]["participants"] == 2
    await ann.hears("participant.left", participant="ben", reason="left")


async def test_after_a_restart_of_sfud_a_client_is_told_to_join_again(gateway, sfud, start_sfud):
    other = await start_sfud()
    site = await gateway(root="grace_seconds = 60")
    site.config.write_text(site.config.read_text().replace(str(sfud.ipc), str(other.ipc)))
    await site.stop()
    await site.start()
    ann = await site.join(sub="ann")
    await process.kill(other.process)
    await ann.hears("gateway.status", sfud=False)
    with pytest.raises(Refused, match="sfud-not-running") as refused:
        await ann.call("room.get")
    assert str(other.directory) not in str(refused.value)
    again = await start_sfud()
    other.ipc.unlink()
    other.ipc.symlink_to(again.ipc)
    await ann.hears("session.ended", 8, reason="sfud-restarted")
    await until(site.is_ready, "the gateway is ready")
    await ann.join(token=token(sub="ann"))  # the same connection
    await again.stop()
