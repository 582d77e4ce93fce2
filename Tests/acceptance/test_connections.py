"""Transports that restart, fall silent and die, and the time until a picture is shown."""

import asyncio
import datetime
import os
import signal
import time

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from harness import expect
from harness.chromium import Chromium
from harness.looks import ALICE


def change(participant: str, connection: str):
    """Filters one change out of the events `participant.connection`."""
    return lambda data: (data["participant"], data["connection"]) == (participant, connection)


def ufrag(sdp: str) -> str:
    return sdp.split("a=ice-ufrag:")[1].split()[0]


@pytest.mark.parametrize("who", ["publisher", "viewer"])
async def test_ice_restarts_in_mid_call(room, peers, who):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    before = await bob.peer.inbound(seen.video)
    member = {"publisher": alice, "viewer": bob}[who]
    stream = alice.stream

    begin = time.time()
    await member.peer.restart_ice()
    await member.negotiate()

    # Both sides have new credentials, and the stream is the old one.
    assert ufrag(member.offers[0]) != ufrag(member.offers[1])
    assert ufrag(member.answers[0]) != ufrag(member.answers[1])
    assert alice.stream == stream
    await expect.moving(bob.peer, seen.video, ALICE["hue"], begin - 0.5, frames=80, freeze=1)
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], begin)
    after = await bob.peer.inbound(seen.video)
    assert after["ssrc"] == before["ssrc"]
    lost = [one.data for one in room.ipc.events if one.data.get("connection") == "reconnecting"]
    assert not lost


def certificate(key, digest, days=(-1, 30)) -> x509.Certificate:
    """Makes a self-signed certificate that is valid for so many days from now on."""
    now = datetime.datetime.now(datetime.UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "peer")])
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now + datetime.timedelta(days=days[0]))
        .not_valid_after(now + datetime.timedelta(days=days[1]))
        .sign(key, digest)
    )


@pytest.mark.parametrize(
    "make, digest, days",
    [
        (lambda: ec.generate_private_key(ec.SECP256R1()), hashes.SHA256(), (-40, -10)),
        (lambda: ec.generate_private_key(ec.SECP521R1()), hashes.SHA512(), (-1, 30)),
        (lambda: ed25519.Ed25519PrivateKey.generate(), None, (-1, 30)),
        (lambda: rsa.generate_private_key(65537, 2048), hashes.SHA256(), (-1, 30)),
    ],
    ids=["expired", "P-521", "Ed25519", "RSA 2048"],
)
async def test_b8_odd_certificates_are_good_enough(room, peers, make, digest, days):
    """Checks that any certificate with the signalled fingerprint is accepted, whatever else it
    says."""
    peer = await peers("aiortc")
    key = make()
    peer.show(key, certificate(key, digest, days))
    await room.join("odd", peer, **ALICE)


async def test_b8_a_curve_that_nobody_uses_is_refused_at_once(room, peers):
    odd = await peers("aiortc")
    key = ec.generate_private_key(ec.SECP256K1())
    odd.show(key, certificate(key, hashes.SHA256()))
    joining = asyncio.create_task(room.join("odd", odd, **ALICE))
    try:
        await room.ipc.wait_for("participant.connection", change("odd", "disconnected"))
    finally:
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
    await room.join("usual", await peers("aiortc"), **ALICE)


RSA = "publicExponent: new Uint8Array([1, 0, 1]), hash: 'SHA-256' }"


@pytest.mark.seconds(120)
@pytest.mark.parametrize(
    "stack, algorithm",
    [
        ("Chromium", "{ name: 'RSASSA-PKCS1-v1_5', modulusLength: 8192, " + RSA),
        ("Firefox", "{ name: 'ECDSA', namedCurve: 'P-384' }"),
    ],
    ids=["Chromium, RSA 8192", "Firefox, P-384"],
)
async def test_b8_all_that_browsers_can_make_is_taken(sfud, room, peers, stack, algorithm):
    peer = await peers(stack)
    await peer.show(algorithm)
    used = sfud.processor_seconds()
    await room.join("odd", peer, **ALICE)
    print(f"{stack}, {algorithm}: {(sfud.processor_seconds() - used) * 1e3:.0f} ms of CPU")


# A viewer without any media shows life every 2.5 s only: with its connectivity checks.
@pytest.mark.sfud("--liveness-seconds", "3", "--timeout-seconds", "6")
@pytest.mark.slow
async def test_a_killed_browser_is_missed(room, peers):
    victim = await Chromium.start()
    try:
        alice = await room.join("alice", await victim.peer(), **ALICE)
        bob = await room.join("bob", await peers("Chromium"), slots=1)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

        await victim.kill()
        killed = time.time()

        reconnecting = await room.ipc.wait_for(
            "participant.connection", change("alice", "reconnecting"), seconds=6
        )
        assert 2 < reconnecting.time - killed < 5
        disconnected = await room.ipc.wait_for(
            "participant.connection", change("alice", "disconnected"), seconds=6
        )
        assert 5 < disconnected.time - killed < 8
        destroyed = await room.ipc.wait_for("stream.destroyed")
        assert destroyed.data["stream"] == alice.stream
        assert destroyed.audience == "all"
        assert not [
            one
            for one in room.ipc.events
            if one.event == "participant.connection"
            and one.data["participant"] == "bob"
            and one.data["connection"] != "connected"
        ]
    finally:
        await victim.close()


@pytest.mark.sfud("--liveness-seconds", "3", "--timeout-seconds", "20")
@pytest.mark.slow
async def test_a_browser_that_stood_still_comes_back(room, peers):
    victim = await Chromium.start()
    try:
        alice = await room.join("alice", await victim.peer(), **ALICE)
        bob = await room.join("bob", await peers("Chromium"), slots=1)
        seen = await bob.subscribe(alice.stream)
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

        os.killpg(victim.process.pid, signal.SIGSTOP)
        await room.ipc.wait_for(
            "participant.connection", change("alice", "reconnecting"), seconds=6
        )
        interrupted = await room.ipc.wait_for("subscription.disconnected")
        assert interrupted.data["final"] is False
        os.killpg(victim.process.pid, signal.SIGCONT)
        begin = time.time()
        await room.ipc.wait_for("participant.connection", change("alice", "reconnected"), seconds=6)

        await room.ipc.wait_for("subscription.reconnected")
        await expect.moving(bob.peer, seen.video, ALICE["hue"], begin + 0.5)
        await expect.heard(bob.peer, seen.audio, ALICE["tone"], begin)
    finally:
        await victim.close()


@pytest.mark.alone
@pytest.mark.slow
async def test_the_first_frame_comes_within_half_a_second(room, peers, capsys):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    latencies = []
    for _ in range(20):
        seen = await bob.subscribe(alice.stream)
        frame = await expect.first_frame(bob.peer, seen.video, ALICE["hue"], seen.since)
        latencies.append(frame.time - seen.since)
        await room.call("subscription.remove", subscription=seen.id)
        await expect.still(bob.peer, seen.video, seconds=0.5)

    latencies.sort()
    figures = [f"{seconds * 1000:.0f}" for seconds in latencies]
    with capsys.disabled():
        print(
            f"\nfirst frame after subscription.add, 20 tries, ms: p50 {figures[9]}, "
            f"p95 {figures[18]}, worst {figures[19]}"
        )
    assert latencies[18] <= 0.5, figures
