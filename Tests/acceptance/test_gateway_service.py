"""The gateway's webhooks, TLS, metrics and command line, and a load of joins.

`SFUD_GATEWAY_JOINS=1000 SFUD_GATEWAY_OUTAGE=20` makes 1,000 joins in 30 s, with a receiver of
webhooks that is away for the first 20; `SFUD_GATEWAY_ROOMS=1` has them all in one room.
"""

import asyncio
import contextlib
import json
import os
import re
import secrets
import ssl
import subprocess
import time

import pytest

from harness import process
from harness.gateway import (
    PYTHON,
    SECRET,
    SOURCES,
    TURN_SECRET,
    WEBHOOK_SECRET,
    Receiver,
    new_room,
    token,
)
from harness.process import until
from harness.sfud import REPOSITORY

JOINS = int(os.environ.get("SFUD_GATEWAY_JOINS", 60))
OUTAGE = float(os.environ.get("SFUD_GATEWAY_OUTAGE", 2))
SECONDS = JOINS * 0.03  # in which they come


@pytest.fixture
def receiver(loop):
    found = Receiver()
    loop.run_until_complete(found.start())
    yield found
    loop.run_until_complete(found.stop())


def documented(page: str, language: str, word: str) -> str:
    """Returns the example of a page in that language that has a word in it."""
    text = (REPOSITORY / page).read_text()
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    [example] = [it for it in found if word in it]
    return example


def verifier():
    """Returns `verify(body, header, secret)` of the documentation."""
    names: dict = {}
    exec(documented("docs/gateway.md", "python", "def verify"), names)
    return names["verify"]


async def test_webhooks_outlive_an_outage_and_a_restart(gateway, receiver):
    site = await gateway(more=receiver.toml())
    verify = verifier()
    ann = await site.join(sub="ann", name="Ann")
    joined = await receiver.has("participant.joined", participant="ann")
    assert joined["tenant"] == "acme" and joined["room"] == "r1"
    assert joined["data"]["participantInfo"]["name"] == "Ann"
    await receiver.stop()
    ben = await site.join(sub="ben")
    await ben.close()
    await ann.hears("participant.left", participant="ben")
    receiver.status = 503
    await receiver.start()

    async def refused():
        return receiver.attempts >= 3

    await until(refused, "the gateway tries again")
    await process.kill(site.process)  # no chance to say anything
    await asyncio.sleep(0.2)
    receiver.status = 200
    await site.start()
    await ann.close()
    cy = await site.client()
    await cy.join(token=token(sub="cy"))
    left = await receiver.has("participant.left", participant="ben")
    assert left["data"]["session"]["duration"] < 60
    await receiver.has("participant.joined", participant="cy")
    assert receiver.names("r1") == [
        "room.created", "participant.joined", "participant.joined", "participant.left",
        "participant.joined",
    ]  # fmt: skip
    assert len({it["id"] for it in receiver.taken}) == 5
    secret = WEBHOOK_SECRET.encode()
    for headers, body in receiver.requests:
        assert verify(body, headers["Sfud-Signature"], secret)
        assert not verify(body + b" ", headers["Sfud-Signature"], secret)
        assert not verify(body, headers["Sfud-Signature"], secret + b"?")
        old = re.sub(r"t=\d+", f"t={int(time.time()) - 600}", headers["Sfud-Signature"])
        assert not verify(body, old, secret)


async def test_what_happens_while_the_gateway_is_away_is_told_afterwards(gateway, receiver, ipc):
    site = await gateway(more=receiver.toml())
    mia, bearer = await site.join(sub="mia", name="Mia"), token(sub="ann")
    await (await site.client()).join(token=bearer)
    await site.join("r2", sub="ben")
    await receiver.has("participant.joined", participant="ben")
    await process.kill(site.process)
    await ipc.call("participant.drop", room="acme:r1", participants=["ann"])
    await ipc.call("room.close", room="acme:r2")
    await site.start()
    left = await receiver.has("participant.left", participant="ann")
    assert left["data"]["reason"] == "dropped" and "session" in left["data"]
    # sfud keeps no events of a room that has ended.
    await receiver.has("room.closed", reason="lost")
    await receiver.has("participant.left", participant="ben", reason="lost")
    assert receiver.names("r2")[-2:] == ["participant.left", "room.closed"]
    client = await site.client()
    assert await client.refused("participant.join", token=bearer) == "token-revoked"
    await client.call("session.resume", session=mia.joined["session"])
    assert await client.refused("participant.update", name="Eve") == "not-permitted"


async def test_a_room_that_ended_with_sfud_is_told_too(gateway, sfud, start_sfud, receiver):
    other = await start_sfud()
    site = await gateway(more=receiver.toml())
    site.config.write_text(site.config.read_text().replace(str(sfud.ipc), str(other.ipc)))
    await site.stop()
    await site.start()
    await site.join(sub="ann")
    await receiver.has("participant.joined", participant="ann")
    await process.kill(other.process)
    await process.kill(site.process)
    again = await start_sfud()
    other.ipc.unlink()
    other.ipc.symlink_to(again.ipc)
    await site.start()
    await receiver.has("room.closed", reason="lost")
    await receiver.has("participant.left", participant="ann", reason="lost")


async def test_a_full_queue_of_webhooks_tells_how_many_are_lost(gateway, receiver):
    receiver.status = 500
    site = await gateway(tenant="limits = { webhooks = 4 }", more=receiver.toml())
    ann = await site.join(sub="ann")
    for name in ("ben", "cy"):
        await (await site.join(sub=name)).close()
        await ann.hears("participant.left", participant=name)
    receiver.status = 200

    async def empty():
        return 'sfud_gateway_webhooks_queued{tenant="acme"} 0.0' in await site.metrics()

    await until(empty, "all that waits is delivered")
    assert len(receiver.taken) == 4
    await site.join(sub="dan")
    await receiver.has("participant.joined", participant="dan")
    lost = await receiver.has("webhooks.lost")
    assert lost["data"]["count"] == 2 and lost["data"]["first"] < lost["data"]["last"]


async def test_webhooks_are_those_that_the_tenant_wants_and_change_by_reload(gateway, receiver):
    site = await gateway(more=receiver.toml('events = ["participant.*"]\n'))
    await site.join(sub="ann")
    await receiver.has("participant.joined", participant="ann")
    assert receiver.names() == ["participant.joined"]
    (site.directory / "second").write_text("another secret of webhooks, as long as that")
    more = receiver.toml().replace('["webhook-secret"]', '["second", "webhook-secret"]')
    site.write(more=more)
    await site.reload()
    await site.join("r2", sub="ben")
    await receiver.has("room.created")
    header = receiver.requests[-1][0]["Sfud-Signature"]
    for secret in (WEBHOOK_SECRET.encode(), (site.directory / "second").read_bytes()):
        assert verifier()(receiver.requests[-1][1], header, secret)


def certificate(directory, name: str):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", directory / "key.pem", "-out", directory / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


async def presented(port: int) -> bytes:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found


async def test_a_reload_changes_the_certificate_and_not_the_connections(gateway, sfud):
    certificate(sfud.directory, "first")
    site = await gateway(more='[tls]\ncertificate = "cert.pem"\nkey = "key.pem"')
    assert site.url.startswith("https://")
    ann = await site.join(sub="ann")
    first = await presented(site.port)
    certificate(sfud.directory, "second")
    await site.reload()
    second = await presented(site.port)
    assert b"first" in first and b"second" in second
    (sfud.directory / "cert.pem").write_text("no certificate")
    await site.reload()
    assert site.refused_reloads() == 1 and await presented(site.port) == second
    assert (await ann.call("room.get"))["room"] == "r1"


async def test_it_says_how_it_is(gateway, sfud):
    site = await gateway()
    ann = await site.join(sub="ann")
    assert await ann.refused("room.lock") == "not-permitted"
    text = await site.metrics()
    for line in (
        "sfud_gateway_sfud_connected 1.0", "sfud_gateway_connections 1.0",
        'sfud_gateway_sessions{kind="ws",tenant="acme"} 1.0',
        'sfud_gateway_rooms{tenant="acme"} 1.0',
        'sfud_gateway_joins_total{kind="ws",tenant="acme"} 1.0',
        'sfud_gateway_refusals_total{reason="not-permitted"} 1.0',
        'sfud_gateway_calls_total{method="room.lock"} 1.0',
    ):  # fmt: skip
        assert line in text.splitlines(), line
    page = (REPOSITORY / "docs/gateway.md").read_text()
    for name in re.findall(r"# TYPE (\S+) ", text):
        assert name.endswith("_created") or f"`{name}`" in page, f"{name} is not documented"
    await sfud.stop()

    async def told():
        async with site.http.get(site.url + "/readyz") as reply:
            return reply.status == 503

    await until(told, "it is not ready without sfud")
    async with site.http.get(site.url + "/healthz") as reply:
        assert reply.status == 200
    async with site.http.get(site.url + "/metrics") as reply:
        assert reply.status == 404  # they are the operator's


async def test_no_secret_is_in_a_log_or_an_error(gateway, sfud, receiver, peers):
    (sfud.directory / "turn-secret").write_text(TURN_SECRET)
    ice = '[[ice.turn]]\nurls = ["turn:127.0.0.1:9"]\nsecret_file = "turn-secret"\n'
    receiver.status = 500
    site = await gateway(more=ice + receiver.toml())
    bearer = token(sub="ann")
    ann = await site.client()
    joined = await ann.join(token=bearer)
    client = await site.client()
    wrong = token(sub="eve", key=SECRET + "?")
    errors = []
    for text in (wrong, wrong[:-3]):
        request = {"id": 1, "method": "participant.join", "params": {"token": text}}
        errors.append(await client.raw(json.dumps(request), 1))
    key = secrets.token_urlsafe(32)
    async with site.http.delete(f"{site.url}/whip/sessions/{key}") as reply:
        errors.append(await reply.text())
    await ann.close()
    await asyncio.sleep(0.5)
    site.write(more=ice.replace("turn-secret", "short"))
    (sfud.directory / "short").write_text("short-secret")
    await site.reload()
    text = site.log.read_text() + str(errors)
    assert "INFO" in text and "short: a secret has" in text
    for secret in (
        SECRET, WEBHOOK_SECRET, TURN_SECRET, bearer, wrong, key, "path-with-a-secret",
        "short-secret", joined["session"], joined["iceServers"][0]["credential"], str(sfud.ipc),
    ):  # fmt: skip
        assert secret not in text.replace(f"connected to sfud at {sfud.ipc}", ""), secret


def gateway_command(*flags, module: str = "sfud_gateway") -> subprocess.CompletedProcess:
    return subprocess.run(
        [PYTHON, "-m", module, *map(str, flags)], capture_output=True, text=True, timeout=20,
        env=os.environ | {"PYTHONPATH": str(SOURCES)},
    )  # fmt: skip


def test_the_command_line_and_the_documented_configuration(tmp_path):
    shown = gateway_command("--help")
    assert shown.returncode == 0 and "--check-config" in shown.stdout
    version = gateway_command("--version").stdout
    assert re.fullmatch(r"sfud-gateway \d+\.\d+\.\d+\n", version)
    assert f'version = "{version.split()[1]}"' in (SOURCES / "pyproject.toml").read_text()
    for name in ("acme.secret", "webhook.secret", "turn.secret"):
        (tmp_path / name).write_text(SECRET)
    key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True).stdout
    public = subprocess.run(
        ["openssl", "rsa", "-pubout"], input=key, capture_output=True, check=True
    )
    (tmp_path / "acme.pem").write_bytes(public.stdout)
    config = tmp_path / "gateway.toml"
    whole = documented("docs/gateway.md", "toml", "token_seconds")
    for text in (whole, documented("gateway/README.md", "toml", "[tenants.acme]")):
        config.write_text(text)
        checked = gateway_command("--config", config, "--check-config")
        assert (checked.returncode, checked.stderr) == (0, ""), checked.stderr
    for before, after, message in (
        ("token_seconds", "token_second", "token_second: is not known"),
        ('kid = "2026"', 'kid = "2027"', "2027 is there twice"),
        ('algorithm = "RS256"', 'algorithm = "ES256"', "is no key for ES256"),
        ("rooms = 1000", "rooms = 0", "rooms: is not in 1 to 100000"),
        ("[tenants.acme]", "[tenants.Acme]", "is no name of a tenant"),
        ("https://acme.example/", "acme.example/", "is no http or https URL"),
        ("listen = ", "listen = 7 #", "listen: is no str"),
        ("listen = ", "listen = = ", "gateway.toml: "),
        ('"turn:', '"http:', "is no turn or turns URI"),
        ('"acme.secret"', '"missing"', "missing: No such file"),
    ):
        assert before in whole, before
        config.write_text(whole.replace(before, after))
        checked = gateway_command("--config", config, "--check-config")
        assert checked.returncode == 78 and message in checked.stderr, (after, checked.stderr)
    minted = gateway_command(
        "--tenant", "acme", "--key-file", tmp_path / "acme.secret", "--room", "r1",
        module="sfud_gateway.mint",
    )  # fmt: skip
    assert minted.returncode == 0 and minted.stdout.count(".") == 2


async def test_many_join_while_the_receiver_of_webhooks_is_away(gateway, receiver):
    limits = "limits = { joins_per_second = 1000 }"
    site = await gateway(root="grace_seconds = 600", tenant=limits, more=receiver.toml())
    rooms = int(os.environ.get("SFUD_GATEWAY_ROOMS", max(1, JOINS // 50)))
    room_ids = [new_room() for _ in range(rooms)]
    bearers = [token(room_ids[at % len(room_ids)], sub=f"p{at}") for at in range(JOINS)]
    await receiver.stop()
    begin = time.monotonic()

    async def come(at: int):
        await asyncio.sleep(at * SECONDS / JOINS * 0.9)
        started = time.monotonic()
        client = await site.client()
        await client.join(token=bearers[at])
        return client, time.monotonic() - started

    joining = asyncio.gather(*(come(at) for at in range(JOINS)))
    await asyncio.sleep(OUTAGE)
    await receiver.start()
    back = time.monotonic()
    joined = await joining
    spent = time.monotonic() - begin
    times = sorted(seconds for _, seconds in joined)

    async def all_told():
        return sum(it["event"] == "participant.joined" for it in receiver.taken) >= JOINS

    await until(all_told, "every join is told", 60)
    told = time.monotonic() - back
    names = [it["data"]["participant"] for it in receiver.taken
             if it["event"] == "participant.joined"]  # fmt: skip
    assert sorted(names) == sorted(f"p{at}" for at in range(JOINS))
    for room in room_ids:
        assert receiver.names(room)[0] == "room.created"
    print(
        f"\n{JOINS} joins in {spent:.1f} s, each {times[len(times) // 2] * 1000:.0f} ms (median), "
        f"{times[int(len(times) * 0.99)] * 1000:.0f} ms (p99), {times[-1] * 1000:.0f} ms (worst); "
        f"all webhooks {told:.1f} s after the receiver came back"
    )
    assert spent < max(4, SECONDS * 1.5)
    with contextlib.suppress(ConnectionError):
        await asyncio.gather(*(client.socket.close() for client, _ in joined))


test_many_join_while_the_receiver_of_webhooks_is_away = pytest.mark.seconds(150 + JOINS / 10)(
    test_many_join_while_the_receiver_of_webhooks_is_away
)
