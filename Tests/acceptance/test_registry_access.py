"""Registries that let in nodes with certificates or credentials only, and what the others log."""

import asyncio

import pytest

from harness import expect
from harness.looks import ALICE
from harness.nats import cluster, finds, nodes
from harness.nats_jwt import Credentials, JWTNats, Key
from harness.nats_tls import Authority, TLSNats
from harness.process import until
from test_daemon import EX_CONFIG, refused, run
from test_moves import rooms


@pytest.fixture
def tls(loop, tmp_path):
    server = loop.run_until_complete(TLSNats(tmp_path).start())
    yield server
    loop.run_until_complete(server.kill())


@pytest.fixture
def jwt(loop, tmp_path):
    server = loop.run_until_complete(JWTNats(tmp_path).start())
    yield server
    loop.run_until_complete(server.kill())


async def share(daemons: dict, peers) -> None:
    """Awaits that somebody at b sees and hears somebody at a."""
    async with daemons["a"].client() as at_a, daemons["b"].client() as at_b:
        there = await rooms(daemons, (at_a, at_b), "ab")
        alice = await there["a"].join("alice", await peers("aiortc"), **ALICE)
        bob = await there["b"].join("bob", await peers("aiortc"), slots=1)
        people = (await there["b"].call("participant.list"))["participants"]
        assert [one["node"] for one in people] == ["a", "b"]
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)
        reply = await there["b"].call("room.update", custom={"topic": "tea"})
        assert "durable" not in reply


async def lone(start_sfud, url: str, *flags: str):
    """Starts a node of a registry that may not let it in."""
    return await start_sfud(
        "--nats", url, "--node", "c", "--link", "127.0.0.3:0", *flags,
        host="127.0.0.3", workers=1,
    )  # fmt: skip


async def says(daemon, *words: str) -> None:
    """Awaits a line of the log that has these words; each cause comes once, not at each attempt.

    By when the server closes the connection, the library gives one cause or another.
    """

    async def told() -> list[str]:
        lines = [line for line in daemon.log_text().splitlines() if "registry away" in line]
        return [line for line in lines if all(word in line for word in words)]

    try:
        await until(told, "", 10)
    except AssertionError:
        raise AssertionError(f"no {words} in\n{daemon.log_tail()}") from None
    await asyncio.sleep(1)
    causes = [line.partition(" cause=")[2] for line in await told()]
    assert len(causes) == len(set(causes)) <= 8, daemon.log_tail()
    assert (await nodes(daemon))["registry"] == "away"


async def all_say(start_sfud, wanted: list[tuple[str, tuple[str, ...], list[str]]]) -> list:
    """Starts a node for each URL and flags; each is to log its words, and to end at once."""
    daemons = [await lone(start_sfud, url, *flags) for url, flags, _ in wanted]
    told = [says(daemon, *words) for daemon, (_, _, words) in zip(daemons, wanted)]
    await asyncio.gather(*told)
    await asyncio.gather(*(daemon.stop() for daemon in daemons))
    return daemons


async def test_a_cluster_with_client_certificates_shares_a_room(start_sfud, tls, peers):
    daemons = await cluster(start_sfud, tls, "a", "b", own=tls.flags)
    await share(dict(zip("ab", daemons)), peers)


async def test_who_has_no_part_in_the_certificates_is_told_why(start_sfud, tls, tmp_path):
    stranger = Authority(tmp_path, "stranger")
    certificate, key = (str(file) for file in tls.authority.issue("c"))
    strange, strange_key = (str(file) for file in stranger.issue("strange"))
    authority = str(tls.authority.certificate)
    own = ("--nats-cert", certificate, "--nats-key", key)
    wanted = [
        (("--nats-ca", str(stranger.certificate), *own), ["handshake", "issuer"]),
        (own, ["handshake", "issuer", "there is no --nats-ca"]),
        (("--nats-ca", authority), ["it may not accept a node without --nats-cert"]),
        (
            ("--nats-ca", authority, "--nats-cert", strange, "--nats-key", strange_key),
            [f"it may not accept the certificate in {strange}"],
        ),
        (("--nats-ca", key, *own), [f"trusted certificates '{key}'"]),
        (
            ("--nats-ca", authority, "--nats-cert", certificate, "--nats-key", strange_key),
            [f"private key '{strange_key}'", "mismatch"],
        ),
    ]
    # The address in the certificate counts, too.
    elsewhere = (f"tls://localhost:{tls.port}", ("--nats-ca", authority, *own), ["localhost"])
    await all_say(start_sfud, [*((tls.url, *one) for one in wanted), elsewhere])


def without_secrets(daemon, *given: Credentials) -> None:
    text = daemon.log_text() + daemon.ready_line
    for one in given:
        # Parts of them would be bad enough.
        for secret in (one.seed, *one.jwt.split(".")[1:]):
            assert secret[4:40] not in text


async def test_a_cluster_with_credentials_shares_a_room(start_sfud, jwt, peers):
    given = {name: jwt.user(name) for name in "ab"}
    daemons = await cluster(start_sfud, jwt, "a", "b", own=lambda name: given[name].flags)
    await share(dict(zip("ab", daemons)), peers)
    for daemon in daemons:
        without_secrets(daemon, *given.values())


async def test_who_has_the_wrong_credentials_is_told_why(start_sfud, jwt, tmp_path):
    good = jwt.user("good")
    stranger = jwt.user("stranger", Key("account"))
    mixed = Credentials(tmp_path / "mixed.creds", good.jwt, stranger.seed)
    cut = Credentials(tmp_path / "cut.creds", good.jwt, good.seed)
    cut.file.write_text(good.file.read_text().split("\n\n")[0])
    spoilt = Credentials(tmp_path / "spoilt.creds", good.jwt, good.seed[:-4] + "AAAA")
    refusal = "the server refuses the credentials in"
    wanted = [
        (stranger, [f"{refusal} {stranger.file}"]),
        (mixed, [f"{refusal} {mixed.file}"]),
        (cut, ["no nkey user seed", str(cut.file)]),
        (spoilt, ["invalid checksum"]),
    ]
    without = (jwt.url, (), ["the server refuses this node; it has no --nats-creds"])
    started = await all_say(
        start_sfud, [*((jwt.url, one.flags, words) for one, words in wanted), without]
    )
    for daemon in started:
        without_secrets(daemon, good, stranger, spoilt)


async def test_a_node_whose_credentials_are_gone_comes_back_with_them(start_sfud, jwt):
    given = jwt.user("given")
    daemon = await lone(start_sfud, jwt.url, *given.flags)
    await finds(daemon, {"c": "up"})
    kept = given.file.rename(given.file.with_suffix(".kept"))
    await jwt.kill()
    await jwt.start()

    async def told():
        return f"the credentials in {given.file} cannot be read" in daemon.log_text()

    await until(told, "it says that they are gone", 10)
    kept.rename(given.file)
    await finds(daemon, {"c": "up"})
    without_secrets(daemon, given)


async def test_a_node_that_was_refused_comes_back_with_new_credentials(start_sfud, jwt):
    """The NATS library gives a connection up when a server has refused its credentials twice."""
    given = jwt.user("given")
    daemon = await lone(start_sfud, jwt.url, *given.flags)
    await finds(daemon, {"c": "up"})
    kept = given.file.read_text()
    given.file.write_text(jwt.user("stranger", Key("account")).file.read_text())
    await jwt.kill()
    await jwt.start()
    await says(daemon, "the server refuses", str(given.file))
    given.file.write_text(kept)
    await finds(daemon, {"c": "up"})


@pytest.mark.parametrize("flag", ["--nats-creds", "--nats-ca", "--nats-cert", "--nats-key"])
def test_a_file_that_cannot_be_read_is_named_at_the_start(tmp_path, flag):
    needed = ("--nats", "tls://127.0.0.1:1", "--node", "a", "--link", "127.0.0.1:1")
    for file in (tmp_path / "missing.pem", tmp_path):
        done = run(*needed, flag, file)
        refused(done, EX_CONFIG, flag.lstrip("-"))
        assert f'"{file}" is not a file that can be read' in done.stderr
