"""Participants at the several workers of a node that is not their room's home."""

import os
import time
from signal import Signals

import pytest

from harness import expect
from harness.looks import ALICE
from harness.nats import cluster, linked
from harness.room import Room
from test_nodes import nats  # noqa: F401


@pytest.mark.seconds(120)
async def test_media_passes_between_the_workers_of_another_node(
    start_sfud, nats, peers, tmp_path
):
    """Publishers and viewers in both workers of a node see one another, also when the node has
    started again."""
    config = tmp_path / "limits.json5"
    config.write_text("{ limits: { workerSpread: 0 } }")
    daemons = dict(
        zip(
            "ab",
            await cluster(
                start_sfud, nats, "a", "b", more=("--config", str(config)), workers=2, keeper=True
            ),
        )
    )
    await linked(daemons["a"], "b")
    async with daemons["a"].client() as at_a:
        at_b = daemons["b"].client()
        await at_b.open()
        for client in (at_a, at_b):
            await client.call("events.subscribe")
        home, there = Room(at_a), Room(at_b)
        there.id = home.id
        await home.call("room.create")
        people = []
        for name in ("one", "two", "three"):
            people.append(await there.join(name, await peers("aiortc"), slots=2, **ALICE))
        views = []
        for viewer in people:
            for publisher in people:
                if publisher is not viewer:
                    seen = await viewer.subscribe(publisher.stream)
                    views.append((viewer, seen.video))
                    await expect.moving(viewer.peer, seen.video, ALICE["hue"], seen.since)
        await at_b.close()
        killed = time.time()
        os.kill(daemons["b"].child(), Signals.SIGKILL)
        for viewer, mid in views:
            await expect.moving(viewer.peer, mid, ALICE["hue"], killed + 1, frames=30)
