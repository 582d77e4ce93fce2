"""The processes of the cluster: NATS, and an sfud with its signalling server for each node."""

import asyncio
import contextlib
import secrets
import shutil
import socket
import sys
import time
from collections import deque
from pathlib import Path

from sfud_ipc import IPC

SIGNALLING = Path(__file__).resolve().parents[1] / "signalling"
NAMES = ("a", "b", "c")
START_SECONDS = 15
STOP_SECONDS = 3  # then a process is killed
DISCONNECTED_SECONDS = 20  # who was at a lost node and does not come back leaves after that
MOST_NEWS = 60


class CannotStart(Exception):
    """A process has not started; the message is for people."""


def free_ports(count: int) -> list[int]:
    """Returns different ports that are free at all addresses, for TCP and for UDP."""
    ports: list[int] = []
    with contextlib.ExitStack() as open_until_all_are_chosen:
        while len(ports) < count:
            stream = open_until_all_are_chosen.enter_context(socket.socket())
            stream.bind(("", 0))
            with socket.socket(type=socket.SOCK_DGRAM) as datagrams, contextlib.suppress(OSError):
                datagrams.bind(stream.getsockname())
                ports.append(stream.getsockname()[1])
    return ports


def outer_address() -> str | None:
    """Returns this machine's address in its network, if it is in one.

    Firefox pairs none of its addresses with one of loopback, so that nodes need another one too.
    """
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        host = probe.getsockname()[0]
    return None if host.startswith("127.") else host


class Process:
    """A program that is started, stopped and started again; its output goes to a file."""

    def __init__(self, name: str, log: Path):
        self.name, self.log = name, log
        self.child: asyncio.subprocess.Process | None = None

    @property
    def is_running(self) -> bool:
        return self.child is not None and self.child.returncode is None

    @property
    def pid(self) -> int | None:
        return self.child.pid if self.is_running else None

    async def start(self, *command: str | Path, is_ready) -> str:
        """Starts it, and awaits a true value of `is_ready`, which is given its output so far."""
        # It ends with this process even if that is killed.
        guard = ("setpriv", "--pdeathsig", "TERM") if shutil.which("setpriv") else ()
        with self.log.open("wb") as output:
            self.child = await asyncio.create_subprocess_exec(
                *guard, *map(str, command), stdin=asyncio.subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True,  # Ctrl-C is for the launcher
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while True:
            text = self.log.read_text(errors="replace")
            if self.is_running and (said := is_ready(text)):
                return said
            if not self.is_running or time.monotonic() > deadline:
                raise CannotStart(f"{self.name} did not start. It said:\n\n{text[-2_000:]}")
            await asyncio.sleep(0.05)

    async def stop(self, at_once: bool = False) -> None:
        """Ends it; `at_once` as when its host fails."""
        if self.child is None or not self.is_running:
            return
        self.child.kill() if at_once else self.child.terminate()
        try:
            await asyncio.wait_for(self.child.wait(), STOP_SECONDS)
        except asyncio.TimeoutError:
            self.child.kill()
            await self.child.wait()


def ready_line(text: str) -> str | None:
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("ready "))
    return next((line for line in lines if line.endswith("\n")), None)


class Node:
    """An sfud, the signalling server beside it, and a connection to its IPC."""

    def __init__(self, name: str, host: str, ports: tuple[int, int], directory: Path, on_event):
        self.name, self.host = name, host
        self.socket = directory / f"{name}.sock"
        self.sfud = Process(f"sfud of node {name}", directory / f"{name}.log")
        self.server = Process(f"the server of node {name}", directory / f"{name}-server.log")
        self.media_port, self.page_port = ports
        self.url = f"http://{self.host}:{self.page_port}/"
        self.moderator = ""  # the same page, with an invitation that makes a moderator
        self.ipc = IPC(str(self.socket), on_event)
        self.changing = asyncio.Lock()

    @property
    def is_running(self) -> bool:
        return self.sfud.is_running and self.server.is_running

    async def start(self, cluster: "Cluster") -> None:
        async with self.changing:
            if not self.sfud.is_running:
                await self.sfud.start(*self._sfud(cluster), is_ready=ready_line)
            if not self.server.is_running:
                line = await self.server.start(*self._server(cluster), is_ready=ready_line)
                self.moderator = line.split()[2]

    async def stop(self, at_once: bool = False) -> None:
        async with self.changing:
            if at_once:  # both at the same moment, as with their host
                await asyncio.gather(self.sfud.stop(True), self.server.stop(True))
            else:
                await self.server.stop()  # it takes its participants out
                await self.sfud.stop()

    def _sfud(self, cluster: "Cluster") -> list:
        hosts = [self.host, cluster.outer] if cluster.outer else [self.host]
        addresses = [it for host in hosts for it in ("--udp", f"{host}:{self.media_port}")]
        return [
            cluster.binary, "--ipc", self.socket, *addresses, "--workers", "1",
            "--nats", cluster.nats_url, "--node", self.name, "--link", f"{self.host}:0",
            "--recordings", cluster.directory / "recordings", *cluster.flags,
        ]  # fmt: skip

    def _server(self, cluster: "Cluster") -> list:
        others = [it for it in cluster.nodes.values() if it is not self]
        elsewhere = [part for it in others for part in ("--elsewhere", f"{it.name}={it.url}")]
        return [
            sys.executable, SIGNALLING / "server.py", "--host", self.host,
            "--port", str(self.page_port), "--ipc", self.socket, *elsewhere,
            "--secret-file", cluster.secret, "--no-invited-only", "--log-level", "warning",
            "--disconnected-seconds", str(DISCONNECTED_SECONDS),
        ]  # fmt: skip


class Cluster:
    """All processes, and what has happened lately."""

    def __init__(self, directory: Path, binary: Path, nats_server: str, flags: list[str]):
        self.directory, self.binary, self.flags = directory, binary.absolute(), flags
        self.outer = outer_address()
        self.secret = directory / "secret"  # for the invitations of all servers
        self.secret.touch(mode=0o600)
        self.secret.write_text(secrets.token_urlsafe(32))
        self.nats_server = nats_server
        self.nats_port, *ports = free_ports(1 + 2 * len(NAMES))
        self.nats = Process("NATS", directory / "nats.log")
        self.news: deque[dict] = deque(maxlen=MOST_NEWS)  # {time, text}
        self._told: deque[tuple] = deque(maxlen=10 * MOST_NEWS)
        self._places: dict[str, str] = {}  # participant → the node where it is connected
        self.nodes = {
            name: Node(
                name, f"127.0.0.{index + 1}", (ports[2 * index], ports[2 * index + 1]), directory,
                self._on_event,
            )
            for index, name in enumerate(NAMES)
        }  # fmt: skip
        self._connections: list[asyncio.Task] = []

    @property
    def nats_url(self) -> str:
        return f"nats://127.0.0.1:{self.nats_port}"

    async def start(self) -> None:
        await self.start_nats()
        await asyncio.gather(*(node.start(self) for node in self.nodes.values()))
        self._connections = [
            asyncio.create_task(node.ipc.run()) for node in self.nodes.values()
        ]
        self.tell("NATS and the nodes were started")

    async def start_nats(self) -> None:
        if self.nats.is_running:
            return
        await self.nats.start(
            self.nats_server, "-js", "-a", "127.0.0.1", "-p", str(self.nats_port),
            "-sd", self.directory / "nats", is_ready=lambda text: "Server is ready" in text,
        )  # fmt: skip

    async def stop(self) -> None:
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*(node.stop() for node in self.nodes.values()))
        await self.nats.stop()

    async def act(self, name: str, action: str) -> None:
        """Does what a button of the page says: `stop`, `start`, `drain` or `undrain`."""
        if name == "nats":
            await (self.start_nats() if action == "start" else self.nats.stop(at_once=True))
            return self.tell(f"NATS was {'started' if action == 'start' else 'stopped'}")
        node = self.nodes[name]
        match action:
            case "start":
                await node.start(self)
                self.tell(f"Node {name} was started")
            case "stop":
                await node.stop(at_once=True)
                self.tell(f"Node {name} was stopped")
            case _:
                await node.ipc.call(f"server.{action}")
                self.tell(f"Node {name} {'drains' if action == 'drain' else 'takes rooms again'}")

    def tell(self, text: str) -> None:
        if self.news and self.news[-1]["text"] == text:  # told for each of a room's people
            return
        self.news.append({"time": time.time(), "text": text})

    def _on_event(self, event: dict) -> None:
        """Notes what people want to know of. Each event comes from all nodes, and counts once."""
        told = tuple(event.get(key) for key in ("room", "seq", "time", "event"))
        if "seq" not in event or told in self._told:
            return
        self._told.append(told)
        data = event["data"]
        text = words_for(event["event"], data, event.get("room", ""), self._places)
        self._note_place(event["event"], data)
        if text:
            self.tell(text)

    def _note_place(self, event: str, data: dict) -> None:
        """Notes where somebody is connected: the next event may be about a move from there."""
        node = (data.get("participantInfo") or {}).get("node")
        if node:
            self._places[data["participant"]] = node
        elif event == "participant.left":
            self._places.pop(data["participant"], None)


def words_for(event: str, data: dict, room: str, places: dict[str, str]) -> str | None:
    """Returns an event in words, if it is worth them; `places` has the nodes of participants."""
    info = data.get("participantInfo") or {}
    match event:
        case "room.created":
            return f"Room {room} was created"
        case "room.closed":
            return f"Room {room} has ended ({data.get('reason')})"
        case "participant.joined":
            again = "connects again" if data.get("rejoined") else "has joined"
            return f"{info.get('name')} {again} at node {info.get('node')}"
        case "participant.moveWanted" if data.get("reason") == "drain":
            former = places.get(data["participant"])
            why = f"Node {former} drains" if former else "A node drains"
            return f"{why}: {person(data['participant'])} moves to node {data['node']}, unnoticed"
        case "participant.moveWanted":
            who = person(data["participant"])
            return f"Room {room} goes on at node {data['node']}: {who} has to connect again"
        case "participant.connection" if data["connection"] == "disconnected":
            return f"{person(data['participant'])} is disconnected"
        case "participant.left" if data.get("reason") != "replaced":
            return f"{person(data['participant'])} has left"
    return None


def person(participant: str) -> str:
    """Returns the name in an id that the demo has made: a name, and random digits."""
    return participant.rpartition("-")[0] or participant
