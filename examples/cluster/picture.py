"""The cluster as its nodes describe it: what the page draws."""

import asyncio
import time
from typing import Any

from launch import Cluster, Node
from sfud_ipc import Refused

MOST_ROOMS = 20  # the page shows no more of them
MOST_PEOPLE = 200  # of a room
ASK_SECONDS = 3  # a call about a room waits as long as the room has no home


async def picture(cluster: Cluster) -> dict:
    """Returns nodes, links, rooms, and which streams go from where to where."""
    nodes = list(cluster.nodes.values())
    reports = dict(zip(cluster.nodes, await asyncio.gather(*map(_report, nodes)), strict=True))
    homes = {room: name for name, it in reports.items() for room in it["rooms"]}
    rooms = sorted(homes)[:MOST_ROOMS]
    shown = await asyncio.gather(*(_room(cluster.nodes[homes[it]], it) for it in rooms))
    registry = {it["registry"] for it in reports.values()} - {None}
    return {
        "time": time.time(),
        "registry": "away" if "away" in registry or not cluster.nats.is_running else "reached",
        "nats": {"isRunning": cluster.nats.is_running},
        "sfuctl": str(cluster.binary.with_name("sfuctl")),
        "nodes": [_node(node, reports) for node in nodes],
        "links": _links(reports),
        "rooms": [it for it in shown if it],
        "moreRooms": len(homes) - len(rooms),
        "news": list(cluster.news),
    }


async def _report(node: Node) -> dict[str, Any]:
    """Returns what a node says of the cluster; nothing if it does not answer."""
    nothing: dict[str, Any] = {"registry": None, "nodes": {}, "rooms": []}
    if not node.sfud.is_running or not node.ipc.connected.is_set():
        return nothing
    try:
        seen = await asyncio.wait_for(node.ipc.call("node.list"), ASK_SECONDS)
        rooms = [it["room"] async for it in node.ipc.pages("room.list", "rooms")]
    except (Refused, asyncio.TimeoutError):
        return nothing
    found = {it["node"]: it for it in seen["nodes"]}
    return {"registry": seen.get("registry"), "nodes": found, "rooms": rooms}


def _node(node: Node, reports: dict) -> dict:
    """Returns a node as it sees itself, else as the others see it."""
    own = reports[node.name]["nodes"].get(node.name)
    others = [it["nodes"].get(node.name) for name, it in reports.items() if name != node.name]
    views = [it["state"] for it in others if it]
    if own:
        state = own["state"]
    elif node.sfud.is_running:
        state = "starting"
    else:
        # The others give it up when its lease has run out.
        state = "lost" if views and set(views) == {"lost"} else "stopped"
    figures = own or {}
    return {
        "name": node.name, "state": state, "isRunning": node.sfud.is_running,
        "servesPage": node.server.is_running, "load": figures.get("load", 0),
        "rooms": figures.get("rooms", 0), "participants": figures.get("participants", 0),
        "address": figures.get("address"), "media": f"{node.host}:{node.media_port}",
        "url": node.url, "moderator": node.moderator, "socket": str(node.socket),
        "pid": node.sfud.pid,
    }  # fmt: skip


def _links(reports: dict) -> list[dict]:
    """Returns the link between each two nodes."""
    names = list(reports)
    links = []
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            ends = [reports[one]["nodes"].get(other), reports[other]["nodes"].get(one)]
            known = [it for it in ends if it]
            trips = [it["roundTripMilliseconds"] for it in known if "roundTripMilliseconds" in it]
            up = any(it["link"] == "up" for it in known)
            links.append({
                "between": [one, other], "state": "up" if up else "down",
                "roundTripMilliseconds": min(trips) if trips and up else None,
            })  # fmt: skip
    return links


async def _room(home: Node, room: str) -> dict | None:
    """Returns a room with its people and streams; `None` if it has no home at the moment."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            listed = home.ipc.pages("participant.list", "participants", room=room)
            people = [it async for it in listed]
            streams = [it async for it in home.ipc.pages("stream.list", "streams", room=room)]
            received, sent = await _statistics(home, room)
    except (Refused, TimeoutError):
        return None
    at = {it["participant"]: it.get("node") or home.name for it in people}
    flows = _flows(at, {it["stream"]: it for it in streams}, received, sent)
    return {
        "room": room, "home": home.name, "people": [_person(it) for it in people[:MOST_PEOPLE]],
        "count": len(people), "flows": flows,
    }  # fmt: skip


def _person(info: dict) -> dict:
    keys = ("participant", "name", "role", "node", "connection", "state")
    return {key: info.get(key) for key in keys}


async def _statistics(home: Node, room: str) -> tuple[list, list]:
    """Returns figures of a room's streams, and of the slots that receive them."""
    received, sent, params = [], [], {"room": room}
    while True:
        page = await home.ipc.call("stats.get", **params)
        received += page["streams"]
        sent += page["subscriptions"]
        if page.get("next") is None:
            return received, sent
        params["after"] = page["next"]


def _flows(at: dict, streams: dict, received: list, sent: list) -> list[dict]:
    """Returns what goes over links: a node with viewers takes a stream once from its publisher's.

    The bit rate is that of the layers that somebody there is sent, as they come from the publisher.
    """
    rates = {
        (it["stream"], it["kind"], layer.get("rid")): layer["bitrate"]
        for it in received for layer in it["encodings"]
    }  # fmt: skip
    flows: dict[tuple, dict] = {}
    for slot in sent:
        stream = streams.get(slot["stream"])
        origin = at.get(stream["participant"]) if stream else None
        target = at.get(slot["participant"])
        if origin is None or target is None or origin == target:
            continue
        flow = flows.setdefault(
            (origin, target, slot["stream"], slot["kind"]),
            {"from": origin, "to": target, "stream": slot["stream"], "kind": slot["kind"],
             "participant": stream["participant"], "source": stream.get("source"),
             "viewers": set(), "layers": set()},
        )  # fmt: skip
        flow["viewers"].add(slot["participant"])
        flow["layers"].add(slot.get("rid"))
    for flow in flows.values():
        layers = flow.pop("layers")
        flow["viewers"] = len(flow["viewers"])
        flow["bitrate"] = sum(rates.get((flow["stream"], flow["kind"], it), 0) for it in layers)
    return sorted(flows.values(), key=lambda it: (it["from"], it["to"], it["stream"], it["kind"]))


class Pictures:
    """The latest picture; a new one is taken when somebody looks, once a second at most."""

    def __init__(self, cluster: Cluster, every: float = 0.8):
        self.cluster, self.every = cluster, every
        self._taking = asyncio.Lock()
        self._last: dict | None = None
        self._time = 0.0

    async def latest(self) -> dict:
        async with self._taking:
            if self._last is None or time.monotonic() - self._time > self.every:
                self._last = await picture(self.cluster)
                self._time = time.monotonic()
            return self._last
