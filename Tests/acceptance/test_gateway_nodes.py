"""The gateway at a node of a cluster: rooms are lost when sfud says so, not with a node."""

import pytest

from harness import process
from harness.gateway import Refused
from harness.nats import cluster
from harness.process import until
from test_gateway_service import receiver  # noqa: F401
from test_nodes import nats  # noqa: F401


@pytest.mark.slow
async def test_rooms_of_other_nodes_outlive_the_node_that_the_gateway_asks(
    start_sfud, sfud, gateway, receiver, nats  # noqa: F811
):
    async def begin_again(address):
        """Starts another life of the second node, which has none of its calls."""
        other = await start_sfud(
            "--nats", nats.url, "--node", "b", "--link", "127.0.0.2:0",
            host="127.0.0.2", workers=1,
        )  # fmt: skip
        address.unlink()
        address.symlink_to(other.ipc)
        return other

    a, b = await cluster(start_sfud, nats, "a", "b")
    site = await gateway(more=receiver.toml())
    site.config.write_text(site.config.read_text().replace(str(sfud.ipc), str(b.ipc)))
    await site.stop()
    await site.start()
    async with a.client() as at_a:
        for room in ("acme:r1", "acme:r2"):
            await at_a.call("room.create", room=room)
        ann, cy = await site.join(sub="ann"), await site.join("r2", sub="cy")
        await receiver.has("participant.joined", participant="ann")
        await receiver.has("participant.joined", participant="cy")

        await process.kill(b.process)
        await at_a.call("participant.join", room="acme:r1", participant="ben")
        await at_a.call("room.close", room="acme:r2")
        again = await begin_again(b.ipc)

        # Missed events are told once, and nobody is lost who is there.
        await ann.hears("participant.joined", 15, participant="ben")
        await until(site.is_ready, "the gateway is ready")
        assert (await ann.call("room.get"))["counts"]["participants"] == 2
        await receiver.has("participant.joined", participant="ben")
        # sfud keeps no events of a room that has ended.
        await cy.hears("session.ended", reason="sfud-restarted")
        await receiver.has("room.closed", reason="lost")

        # Nor when the node cannot tell whether the room is there.
        await nats.kill()
        await process.kill(again.process)
        await begin_again(b.ipc)

        async def is_refused():
            try:
                await ann.call("room.get")
            except Refused as refused:
                return refused.reason == "registry-away"
            return False

        await until(is_refused, "the node answers without the registry", 15)
        await nats.start()

        async def is_there():
            try:
                return (await ann.call("room.get"))["counts"]["participants"] == 2
            except Refused:
                return False

        await until(is_there, "the room is found again", 15)
    told = [(it["event"], it["data"].get("participant")) for it in receiver.taken]
    assert [it for it in told if it[0] == "participant.left"] == [("participant.left", "cy")]
    assert receiver.names("r1") == ["room.created", "participant.joined", "participant.joined"]
