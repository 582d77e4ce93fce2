"""NATS servers with JetStream on loopback, the registry of nodes."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from harness import process
from harness.process import until
from harness.sfud import free_ports, is_free


class Nats:
    """A running `nats-server -js`, with further flags; its directory has what it stores."""

    def __init__(self, directory: Path, port: int | None = None, *more: str):
        self.directory = directory
        self.log = directory / "nats.log"
        self.port = port or free_ports()
        self.more = more

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    async def start(self) -> "Nats":
        """Starts it, also again after `kill`, with what it has stored."""
        self.process = await process.start(
            shutil.which("nats-server") or "/usr/sbin/nats-server",
            "-js",
            "-a",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-sd",
            self.directory / "store",
            *self.more,
            output=self.log,
        )

        async def listens():
            return not is_free(self.port)

        await until(listens, "the NATS server listens", 10)
        return self

    async def kill(self) -> None:
        await process.kill(self.process)

    def wipe(self) -> None:
        """Removes all that it has stored; it must not run."""
        shutil.rmtree(self.directory / "store", ignore_errors=True)


class ThreeNats:
    """Three servers that keep the same."""

    def __init__(self, directory: Path):
        first = free_ports(6)
        routes = ",".join(f"nats://127.0.0.1:{first + 3 + number}" for number in range(3))
        self.servers = []
        for number in range(3):
            own = directory / f"nats-{number}"
            own.mkdir()
            route = f"nats://127.0.0.1:{first + 3 + number}"
            self.servers.append(
                Nats(own, first + number, "-n", f"nats-{number}", "--cluster_name", "registry",
                     "--cluster", route, "--routes", routes)
            )  # fmt: skip

    @property
    def url(self) -> str:
        return ",".join(server.url for server in self.servers)

    async def start(self) -> "ThreeNats":
        await asyncio.gather(*(server.start() for server in self.servers))
        return self

    async def kill(self) -> None:
        for server in self.servers:
            await server.kill()


async def cluster(
    start_sfud,
    nats: Nats | ThreeNats,
    *names: str,
    more: tuple[str, ...] = (),
    own: Callable[[str], tuple[str, ...]] = lambda name: (),
    programs: dict[str, Path] | None = None,
    workers: int = 1,
    **options,
) -> list:
    """Starts a daemon for each name, with further flags, and those that are its `own`, and awaits
    that each finds all. `programs` has those of nodes of another version."""
    daemons = []
    for number, name in enumerate(names):
        host = f"127.0.0.{number + 1}"
        flags = ("--nats", nats.url, "--node", name, "--link", f"{host}:0", *more, *own(name))
        program = (programs or {}).get(name)
        options |= {"host": host, "workers": workers, "program": program}
        daemons.append(await start_sfud(*flags, **options))
    await asyncio.gather(*(finds(daemon, {name: "up" for name in names}) for daemon in daemons))
    return daemons


async def nodes(daemon) -> dict:
    async with daemon.client() as ipc:
        result = await ipc.call("node.list")
    return {"registry": result["registry"]} | {one["node"]: one for one in result["nodes"]}


async def finds(daemon, states: dict[str, str], registry: str = "reached", seconds=15) -> None:
    """Awaits that a daemon sees nodes in these states."""

    async def seen():
        found = await nodes(daemon)
        return found["registry"] == registry and all(
            found.get(name, {}).get("state") == state for name, state in states.items()
        )

    await until(seen, f"{states}, registry {registry}", seconds)


async def linked(daemon, *others: str) -> None:
    """Awaits that media comes through from a daemon to others and back."""

    async def all_linked():
        lines = [line for line in daemon.log_text().splitlines() if "link media" in line]
        return all(
            any(f"node={other}" in line and "media=up" in line for line in lines)
            for other in others
        )

    await until(all_linked, f"media links to {others}", 15)
