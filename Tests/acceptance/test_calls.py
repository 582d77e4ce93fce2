"""Calls between all stacks through sfud: pictures move, sound is heard, and nothing freezes."""

import pytest

from harness import expect
from harness.looks import ALICE, BOB
from harness.scene import watching
from harness.sfud import free_ports

CALLS = [
    ("Chromium", "Chromium", "VP8"),
    ("Chromium", "Chromium", "VP9"),
    ("Chromium", "Chromium", "H264"),
    ("Chromium", "Chromium", "AV1"),
    ("Chromium", "aiortc", "VP8"),
    ("Chromium", "aiortc", "H264"),
    ("aiortc", "Chromium", "VP8"),
    ("aiortc", "Chromium", "H264"),
    ("Chromium", "GStreamer", "VP8"),
    ("Chromium", "GStreamer", "VP9"),
    ("Chromium", "GStreamer", "H264"),
    ("GStreamer", "Chromium", "VP8"),
    ("GStreamer", "Chromium", "H264"),
    ("Firefox", "Chromium", "VP8"),
    ("Firefox", "Chromium", "VP9"),
    ("Chromium", "Firefox", "VP8"),
    ("Chromium", "Firefox", "VP9"),
]


#: Beside another test that encodes and decodes on the same two cores, Chromium has been seen to stand
#: still for 0.51 to 0.69 s just after the first picture.
STALLS = pytest.mark.flaky_outside(reason="a stall of the busy machine looks like a freeze")


@STALLS
@pytest.mark.parametrize("publisher, viewer, codec", CALLS)
async def test_one_sees_and_hears_the_other(room, peers, publisher, viewer, codec):
    alice = await room.join("alice", await peers(publisher), codec=codec, **ALICE)
    created = await room.ipc.wait_for("stream.created")
    assert created.data["stream"] == created.data["streamInfo"]["stream"] == alice.stream
    assert created.data["participant"] == "alice"
    bob = await room.join("bob", await peers(viewer), slots=1)

    seen = await bob.subscribe(alice.stream)

    frames = await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, frames=40)
    assert frames[-1].width >= 320 and frames[-1].height >= 180, frames[-1]
    await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)
    inbound = await bob.peer.inbound(seen.video)
    assert inbound.get("codec", f"video/{codec}") == f"video/{codec}"
    if viewer != "GStreamer":  # it counts late packets as lost
        assert inbound["packetsLost"] <= 0
    await room.ipc.wait_for("subscription.connected", lambda data: data["subscription"] == seen.id)


@STALLS
@pytest.mark.parametrize(
    "one, other",
    [
        ("Chromium", "Chromium"),
        ("Firefox", "Chromium"),
        ("aiortc", "Chromium"),
        ("GStreamer", "Chromium"),
    ],
)
async def test_both_send_and_receive_on_one_transport(room, peers, one, other):
    alice = await room.join("alice", await peers(one), slots=1, **ALICE)
    bob = await room.join("bob", await peers(other), slots=1, **BOB)

    bobs = await bob.subscribe(alice.stream)
    alices = await alice.subscribe(bob.stream)

    await expect.moving(bob.peer, bobs.video, ALICE["hue"], bobs.since)
    await expect.moving(alice.peer, alices.video, BOB["hue"], alices.since)
    await expect.heard(bob.peer, bobs.audio, ALICE["tone"], bobs.since)
    await expect.heard(alice.peer, alices.audio, BOB["tone"], alices.since)


@STALLS
@pytest.mark.parametrize("stack", ["Chromium", "Firefox", "aiortc"])
async def test_an_m_line_that_sends_is_a_slot_too(room, peers, stack):
    alice = await room.join("alice", await peers(stack), sendrecv=True, **ALICE)
    bob = await room.join("bob", await peers("Chromium"), sendrecv=True, **BOB)

    bobs = await bob.subscribe(alice.stream)
    alices = await alice.subscribe(bob.stream)

    assert {bobs.audio, bobs.video} == {mid["mid"] for mid in bob.mids}
    await expect.moving(bob.peer, bobs.video, ALICE["hue"], bobs.since)
    await expect.moving(alice.peer, alices.video, BOB["hue"], alices.since)
    await expect.heard(bob.peer, bobs.audio, ALICE["tone"], bobs.since)
    await expect.heard(alice.peer, alices.audio, BOB["tone"], alices.since)


@pytest.mark.alone
@pytest.mark.parametrize("codec, width, height", [("VP8", 960, 540), ("AV1", 640, 360)])
async def test_the_encoder_grows_to_its_full_size(room, peers, codec, width, height):
    # Its estimate starts at 300 kbit/s: without our feedback it would stay small.
    alice = await room.join(
        "alice", await peers("Chromium"), codec=codec, **ALICE, width=width, height=height, fps=15
    )
    bob = await room.join("bob", await peers("Chromium"), slots=1)

    seen = await bob.subscribe(alice.stream)

    await expect.size(bob.peer, seen.video, width, height)


@STALLS
async def test_of_simulcast_the_highest_layer_is_forwarded(room, peers):
    alice = await room.join(
        "alice",
        await peers("Chromium"),
        codec="VP8",
        simulcast=True,
        **ALICE,
        width=960,
        height=540,
        fps=15,
    )
    bob = await room.join("bob", await peers("Chromium"), slots=1)

    seen = await bob.subscribe(alice.stream)

    await expect.size(bob.peer, seen.video, 960, 540)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, freeze=1)
    [stream] = (await room.call("stream.list"))["streams"]
    layers = {layer["rid"]: layer for layer in stream["video"]["layers"]}
    assert set(layers) == {"q", "h", "f"}
    assert all(layer["active"] for layer in layers.values()), layers


@STALLS
@pytest.mark.parametrize(
    "stack, codec",
    [("Firefox", "VP8"), ("Chromium", "VP9"), ("Chromium", "H264"), ("Chromium", "AV1")],
)
async def test_simulcast_of_any_codec_is_forwarded(room, peers, stack, codec):
    # Small, because the machine has to encode it.
    alice = await room.join(
        "alice", await peers(stack), codec=codec, simulcast=True, **ALICE, fps=15
    )
    bob = await room.join("bob", await peers("Chromium"), slots=1)

    seen = await bob.subscribe(alice.stream)

    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since, freeze=1)


@pytest.mark.parametrize("workers", [2, 8])
async def test_a_call_over_ipv6(start_sfud, peers, workers):
    daemon = await start_sfud(host="[::1]", workers=workers)
    async with watching(daemon, await peers("aiortc"), await peers("aiortc")) as scene:
        remotes = await scene.remotes()
        assert all(remote.startswith("[::1]:") for remote in remotes), remotes


@pytest.mark.parametrize(
    "host, further, announced, reached, workers",
    [
        ("127.0.0.2", "127.0.0.1", None, "127.0.0.", 1),
        ("0.0.0.0", None, "127.0.0.1", "127.0.0.1", 5),
        ("[::]", None, "::1", "[::1]", 1),
        ("127.0.0.1", "[::1]", None, "", 5),
    ],
    ids=["two", "any", "any of IPv6", "both families"],
)
async def test_k9_peers_connect_whatever_it_listens_on(
    start_sfud, peers, host, further, announced, reached, workers
):
    flags = []
    if further:
        flags += ["--udp", f"{further}:{free_ports(workers)}"]
    if announced:
        flags += ["--announce", announced]
    daemon = await start_sfud(*flags, host=host, workers=workers)
    async with watching(daemon, await peers("aiortc"), await peers("aiortc")) as scene:
        await scene.heard()
        remotes = await scene.remotes()
        assert all(remote.startswith(reached) for remote in remotes), remotes


@pytest.mark.parametrize("kind", ["audio", "video"])
async def test_a_stream_may_have_one_kind_alone(room, peers, kind):
    other = {"audio": "video", "video": "audio"}[kind]
    alice = await room.join("alice", await peers("Chromium"), **ALICE, **{other: False})
    bob = await room.join("bob", await peers("Chromium"), slots=1)

    seen = await bob.subscribe(alice.stream)

    if kind == "audio":
        assert seen.video is None
        await expect.heard(bob.peer, seen.audio, ALICE["tone"], seen.since)
    else:
        assert seen.audio is None
        await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
