"""The daemon's counters add up, and its output reveals no secrets."""

import asyncio
import socket
import time
from random import Random

import pytest

from harness import expect
from harness.ipc import Refused
from harness.looks import ALICE
from harness.process import until

#: Drop causes of datagrams that were not recognized as RTP; all others are of RTP packets.
EARLY_DROPS = {
    "unknown-protocol", "oversized", "unknown-source", "stun-malformed", "stun-unauthenticated",
    "stun-rate-limited", "dtls-unexpected", "not-connected", "malformed-rtcp",
    "srtcp-authentication", "srtcp-replay", "rtcp-rate-limited",
}  # fmt: skip


def assert_sums(counters: dict) -> None:
    drops = counters["drops"]
    early = sum(count for cause, count in drops.items() if cause in EARLY_DROPS)
    outgoing = {
        "relay-queue-full", "send-queue-full", "send-queue-stale", "send-queue-withdrawn",
    }  # fmt: skip
    late = sum(drops[cause] for cause in drops.keys() - EARLY_DROPS - outgoing)
    assert counters["rtpIn"] == counters["rtpForwarded"] + late, counters
    relayed = counters["relayedForwarded"] + sum(counters["relayDrops"].values())
    assert counters["relayedIn"] == relayed, counters
    kinds = ("stunIn", "dtlsIn", "rtcpIn", "rtpIn")
    assert counters["datagramsIn"] == sum(counters[kind] for kind in kinds) + early, counters
    # Packets out are copies, retransmissions and reports, besides STUN and DTLS.
    assert counters["datagramsOut"] >= sum(
        counters[kind] for kind in ("rtpOut", "rtxOut", "paddingOut", "rtcpOut")
    ), counters


async def test_packets_in_are_forwarded_or_dropped_by_cause(room, peers):
    alice = await room.join("alice", await peers("Chromium"), slots=1, **ALICE)
    bob = await room.join("bob", await peers("aiortc"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, frames=60)

    stats = await room.ipc.call("server.stats")

    assert_sums(stats)
    for worker in stats["workers"]:
        assert_sums(worker)
    for name in ("datagramsIn", "rtpIn", "rtpForwarded", "rtpOut", "rtcpIn", "rtcpOut", "bytesOut"):
        assert stats[name] == sum(worker[name] for worker in stats["workers"]), name
        assert stats[name] > 0, name
    assert (stats["rooms"], stats["participants"], stats["transports"]) == (1, 2, 2)
    for cause in ("srtp-authentication", "malformed-rtp", "malformed-rtcp", "unknown-stream"):
        assert stats["drops"].get(cause, 0) == 0, stats["drops"]
    assert stats["kernelDrops"] == 0

    # When everybody has left, the sums are constant, and nothing more is forwarded.
    for member in (alice, bob):
        await member.leave()
    for _ in range(2):
        assert_sums(await room.ipc.call("server.stats"))


async def test_noise_is_counted_and_harms_nobody(sfud, room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)

    begin = time.time()
    random = Random(1)
    address, port = sfud.udp.rsplit(":", 1)
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        while sent < 20_000:
            for _ in range(100):
                datagram = random.randbytes(random.randint(1, 1500))
                stranger.sendto(datagram, (address, int(port) + sent % 2))
                sent += 1
            await asyncio.sleep(0.005)

    await expect.moving(bob.peer, seen.video, ALICE["hue"], begin, frames=60)

    async def counted():
        stats = await room.ipc.call("server.stats")
        assert_sums(stats)
        dropped = sum(stats["drops"].get(cause, 0) for cause in EARLY_DROPS)
        return dropped + stats["kernelDrops"] >= sent

    await until(counted, f"{sent} drops", 5)


async def test_the_network_statistics_of_a_call(room, peers):
    alice = await room.join("alice", await peers("Chromium"), codec="VP8", **ALICE)
    bob = await room.join("bob", await peers("Chromium"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, frames=60)

    stats = await room.call("stats.get")

    assert {one["participant"] for one in stats["transports"]} == {"alice", "bob"}
    for transport in stats["transports"]:
        assert transport["connection"] == "connected"
        assert transport["remote"].startswith("127.0.0.1:")
        assert transport["srtpProfile"], transport
    streams = {one["kind"]: one for one in stats["streams"]}
    assert set(streams) == {"audio", "video"}
    assert streams["video"]["codec"] == "vp8"
    [encoding] = streams["video"]["encodings"]
    assert encoding["packets"] > 30 and encoding["packetsLost"] == 0
    slots = {one["kind"]: one for one in stats["subscriptions"]}
    assert slots["video"]["subscription"] == seen.id and slots["video"]["mid"] == seen.video
    assert slots["video"]["packets"] > 30 and slots["audio"]["packets"] > 30
    assert slots["video"]["packetsLost"] == 0

    async def round_trip():
        # By a viewer's receiver reports, which name the sender reports that it received.
        [one] = (await room.call("stats.get", participant="bob"))["transports"]
        return one.get("roundTripTime") is not None

    await until(round_trip, "a round trip time", 10)


async def test_no_secret_is_in_the_log(sfud, room, peers):
    alice = await room.join("alice", await peers("Chromium"), **ALICE)
    bob = await room.join("bob", await peers("aiortc"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    with pytest.raises(Refused):
        await room.call(
            "transport.offer", participant="bob", sdp="v=0\r\na=ice-pwd:TheSecretOfABadOffer00\r\n"
        )
    await alice.leave()

    log = sfud.log_text()
    stats = str(await room.ipc.call("server.stats")) + str(await room.call("stats.get"))
    state = str(await room.call("room.get"))

    assert "level=" in log
    secrets = {"TheSecretOfABadOffer00"}
    for member in (alice, bob):
        for sdp in member.offers + member.answers:
            secrets |= {
                line.split(":", 1)[1] for line in sdp.splitlines() if line.startswith("a=ice-pwd:")
            }
    assert len(secrets) >= 5
    for secret in secrets:
        for text in (log, stats, state):
            assert secret not in text
