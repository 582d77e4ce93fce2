"""Measures a room over several nodes of a cluster beside the same room on one of them.

Real daemons, NATS and links on loopback. Each measurement prints its figure beside its bar; what is
compared is measured by turns in the same run, as often as --rounds says, and the median counts. The
exit status is 1 if something could not be measured, whether or not bars were reached. Run it with
benchmarks/nodes/run, or `make bench-nodes`.
"""

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from harness import bench
from harness.ipc import IPC, Refused
from harness.nats import Nats, cluster, finds, linked, nodes
from harness.node_path import NodePath
from harness.sfud import Sfud, free_ports

NAMES = ("a", "b", "c")


@dataclass
class Figure:
    """One measured figure beside its bar."""

    name: str
    value: str
    bar: str
    reached: bool

    def __str__(self) -> str:
        return f"{self.name:44} {self.value:28} bar {self.bar:22} {'yes' if self.reached else 'NO'}"


@dataclass
class Options:
    rounds: int
    seconds: int
    mutes: int
    away: int


@contextlib.asynccontextmanager
async def three_nodes(path: NodePath | None = None) -> AsyncIterator[list[Sfud]]:
    """Starts NATS and three nodes with media links between all of them.

    What the others send to the second one takes the path, if there is one."""
    with tempfile.TemporaryDirectory(prefix="sfud-nodes-") as directory:
        nats = await Nats(Path(directory)).start()
        try:
            async with three_nodes_at(nats, path) as daemons:
                yield daemons
        finally:
            await nats.kill()


@contextlib.asynccontextmanager
async def three_nodes_at(nats: Nats, path: NodePath | None = None) -> AsyncIterator[list[Sfud]]:
    """Starts three nodes of a registry that runs."""
    daemons: list[Sfud] = []

    async def start(*flags: str, **options) -> Sfud:
        if path is not None and NAMES[1] in flags:
            flags = (*flags[: flags.index("--link")], *path.flags)
        http = f"127.0.0.1:{free_ports()}"
        daemon = await Sfud.start(*flags, "--http", http, **options)
        daemon.http = http
        daemons.append(daemon)
        return daemon

    try:
        await cluster(start, nats, *NAMES)
        for daemon, name in zip(daemons, NAMES, strict=True):
            await linked(daemon, *(set(NAMES) - {name}))
        yield daemons
    finally:
        for daemon in daemons:
            await daemon.stop()
            daemon.remove()


async def load(
    daemons: list[Sfud], viewers: int, at: str, seconds: int, *more: str
) -> dict[str, str]:
    """Returns the report of a room whose publisher is at the first node, and whose viewers are at
    the nodes named in `at`, by turns."""
    chosen = [daemons[NAMES.index(one)] for one in at]
    flags = [flag for one in chosen for flag in ("--viewers-ipc", one.ipc)]
    process = await bench.start(
        *("sfu-bench", "load", "--ipc", daemons[0].ipc, *flags, "--pid", daemons[0].process.pid),
        *("--viewers", viewers, "--seconds", seconds, "--settle", 4, *more),
    )
    status, output, errors = await bench.finish(process)
    if status:
        raise RuntimeError(f"sfu-bench load: {errors or output}")
    return bench.figures(output)


def milliseconds(report: dict[str, str]) -> tuple[float, float]:
    """Returns the latency's p50 and p99."""
    values = report["latency p50 p99 p99.9 max"].split()
    return float(values[0]), float(values[1])


async def hop(options: Options) -> list[Figure]:
    """latency that a link adds for 50 viewers"""
    added: list[tuple[float, float]] = []
    async with three_nodes() as daemons:
        for _ in range(options.rounds):
            near = milliseconds(await load(daemons, 50, "a", options.seconds))
            far = milliseconds(await load(daemons, 50, "b", options.seconds))
            print(f"    p50, p99 at home {near}, behind a link {far} ms", flush=True)
            added.append((far[0] - near[0], far[1] - near[1]))
    p50, p99 = (statistics.median(one[index] for one in added) for index in (0, 1))
    return [
        Figure("a hop adds, p50", f"{p50:.2f} ms", "≤ 0.5 ms", p50 <= 0.5),
        Figure("a hop adds, p99", f"{p99:.2f} ms", "≤ 2 ms", p99 <= 2),
    ]


async def cost(options: Options) -> list[Figure]:
    """CPU time of a relayed screen share at its origin, beside a viewer's copy"""
    ratios = []
    async with three_nodes() as daemons:

        async def used(viewers: int, at: str) -> float:
            before = daemons[0].processor_seconds()
            begin = time.monotonic()
            await load(daemons, viewers, at, options.seconds * 2, "--screen")
            return (daemons[0].processor_seconds() - before) / (time.monotonic() - begin)

        # A viewer's copy is what one of ten costs; a link's, what it costs beside these.
        for _ in range(options.rounds):
            one, eleven, relayed = await used(1, "a"), await used(11, "a"), await used(1, "b")
            copy = (eleven - one) / 10
            relay = relayed - one + copy
            print(
                f"    of a core: {one:.2%} with one viewer, {eleven:.2%} with eleven,"
                f" {relayed:.2%} relayed",
                flush=True,
            )
            ratios.append(relay / copy if copy > 0 else float("inf"))
    ratio = statistics.median(ratios)
    return [Figure("relay at the origin / a viewer's copy", f"{ratio:.2f}", "≤ 1.2", ratio <= 1.2)]


async def packets(options: Options) -> list[Figure]:
    """link packets a wanted packet, for 1 to 500 viewers"""
    figures = []
    async with three_nodes() as daemons:
        for viewers in (1, 50, 500):
            before = await link_packets(daemons[0])
            report = await load(daemons, viewers, "b", options.seconds)
            sent = await link_packets(daemons[0]) - before
            # What was sent before the measurement is in neither: media runs longer than it.
            wanted = int(report["sent: audio packets"]) + int(report["sent: video packets"])
            ratio = sent / wanted
            figures.append(
                Figure(
                    f"link packets / wanted ones, {viewers} viewers",
                    f"{ratio:.3f} ({sent} / {wanted})", "1.00 to 1.02", 0.995 <= ratio <= 1.02,
                )
            )  # fmt: skip
    return figures


async def link_packets(daemon: Sfud) -> int:
    """Returns the number of media packets to other nodes."""

    def page() -> str:
        with urllib.request.urlopen(f"http://{daemon.http}/metrics", timeout=5) as reply:
            return reply.read().decode()

    found = re.search(r"^sfud_link_packets_out_total (\d+)", await asyncio.to_thread(page), re.M)
    if found is None:
        raise RuntimeError("the metrics say nothing of link packets")
    return int(found[1])


async def mutes(options: Options) -> list[Figure]:
    """time of a mute over three nodes, and packets after its reply"""
    took, after = [], 0
    async with three_nodes() as daemons, daemons[0].client() as at_a:
        room = f"mutes-{os.getpid()}"
        process = await bench.start(
            *("sfu-bench", "load", "--ipc", daemons[0].ipc, "--room", room, "--viewers", 6),
            *("--viewers-ipc", daemons[1].ipc, "--viewers-ipc", daemons[2].ipc),
            *("--seconds", 3600, "--settle", 0, "--until-input-ends"),
            stdin=asyncio.subprocess.PIPE,
        )
        try:
            far = [await daemon.client().open() for daemon in daemons[1:]]
            await flowing(far)
            trip = max(
                one.get("roundTripMilliseconds") or 0
                for name, one in (await nodes(daemons[0])).items() if name in NAMES[1:]
            )  # fmt: skip
            for number in range(options.mutes):
                begin = time.monotonic()
                await at_a.call("participant.hardMute", room=room, participant="publisher",
                                media=["audio", "video"])  # fmt: skip
                took.append(time.monotonic() - begin)
                before = await asyncio.gather(*map(sent, far))
                await asyncio.sleep(0.03)
                after += sum(await asyncio.gather(*map(sent, far))) - sum(before)
                await at_a.call("participant.hardUnmute", room=room, participant="publisher",
                                media=["audio", "video"])  # fmt: skip
                await asyncio.sleep(0.03)
                if number % 100 == 99:
                    print(f"    {number + 1} mutes, {after} packets after replies", flush=True)
            for ipc in far:
                await ipc.close()
        finally:
            process.stdin.close()
            await bench.finish(process)
    ordered = sorted(took)
    p99 = 1_000 * ordered[int(len(ordered) * 0.99)]
    bar = trip + 20
    return [
        Figure(f"packets after the reply of {len(took)} mutes", str(after), "0", after == 0),
        Figure("a mute's reply, p99", f"{p99:.1f} ms", f"≤ {bar:.1f} ms", p99 <= bar),
    ]


async def sent(ipc: IPC) -> int:
    """Returns the RTP packets that a node has sent to its clients."""
    return (await ipc.call("server.stats"))["rtpOut"]


async def flowing(clients: list[IPC]) -> None:
    """Awaits that all nodes send media."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        before = [await sent(ipc) for ipc in clients]
        await asyncio.sleep(0.2)
        if all([await sent(ipc) > one for ipc, one in zip(clients, before, strict=True)]):
            return
    raise RuntimeError("no media at the other nodes within 20 s")


async def joins(options: Options) -> list[Figure]:
    """what 100 viewers who join at once at each of three nodes ask of the publisher"""
    requests = []
    async with three_nodes() as daemons:
        clients = [await daemon.client().open() for daemon in daemons]
        for _ in range(options.rounds):
            before = await asyncio.gather(*map(sent, clients))
            report = await load(daemons, 3, "abc", options.seconds, "--late", "300")
            for name, old, ipc in zip(NAMES, before, clients, strict=True):
                # Each of a hundred is sent 50 packets of sound a second, and more of video.
                if await sent(ipc) - old < 100 * 50 * options.seconds:
                    raise RuntimeError(f"the late viewers at node {name} were sent too little")
            requests.append(int(report["late: PLI or FIR"]))
            took = report["late: connected within"]
            print(f"    300 connected within {took}, {requests[-1]} keyframe requests", flush=True)
        for ipc in clients:
            await ipc.close()
    most = max(requests)
    name = f"keyframe requests, 300 joins, the most of {options.rounds}"
    return [Figure(name, str(most), "≤ 2", most <= 2)]


async def loss(options: Options) -> list[Figure]:
    """packets lost by 20 viewers behind a link that loses 2 % and takes 40 ms"""
    path = await NodePath.open("127.0.0.2")
    try:
        async with three_nodes(path) as daemons:
            clean = await load(daemons, 20, "b", options.seconds * 2)
            path.loss, path.delay = 0.02, 0.04
            report = await load(daemons, 20, "b", options.seconds * 2)
    finally:
        await path.close()
    lost, expected = int(report["lost"]), int(report["copies expected"])
    print(f"    {path.dropped} datagrams lost on the link", flush=True)
    before, asked = (int(one["packets NACKed"]) for one in (clean, report))
    return [
        Figure(
            "lost by viewers, link loss 2 %", f"{lost / expected:.3%} ({lost} / {expected})",
            "≤ 0.05 %", lost * 2_000 <= expected,
        ),
        Figure("packets NACKed at the publisher", f"{asked} (without loss {before})",
               "no more", asked <= before),
    ]  # fmt: skip


async def registry(options: Options) -> list[Figure]:
    """media, mutes and the time until all is rebuilt while the registry is away, then wiped"""
    with tempfile.TemporaryDirectory(prefix="sfud-nodes-") as directory:
        nats = await Nats(Path(directory)).start()
        try:
            async with three_nodes_at(nats) as daemons, daemons[0].client() as at_a:
                return await without_registry(options, nats, daemons, at_a)
        finally:
            await nats.kill()


async def without_registry(
    options: Options, nats: Nats, daemons: list[Sfud], at_a: IPC
) -> list[Figure]:
    room = f"registry-{os.getpid()}"
    # Another room has the mutes, so that nothing of the first one may be missing.
    await at_a.call("room.create", room=f"{room}-muted")
    await at_a.call("participant.join", room=f"{room}-muted", participant="one")
    process = await bench.start(
        *("sfu-bench", "load", "--ipc", daemons[0].ipc, "--room", room, "--viewers", 6),
        *("--viewers-ipc", daemons[1].ipc, "--viewers-ipc", daemons[2].ipc),
        *("--seconds", 3_600, "--settle", 2, "--until-input-ends"),
        stdin=asyncio.subprocess.PIPE,
    )
    took: list[float] = []
    try:
        far = [await daemon.client().open() for daemon in daemons[1:]]
        await flowing(far)
        await asyncio.sleep(3)
        await nats.kill()
        await asyncio.gather(*(finds(one, {}, registry="away") for one in daemons))
        end = time.monotonic() + options.away
        while time.monotonic() < end:
            for method in ("participant.hardMute", "participant.hardUnmute"):
                begin = time.monotonic()
                await far[0].call(method, room=f"{room}-muted", participant="one", media=["audio"])
                took.append(time.monotonic() - begin)
            await asyncio.sleep(0.5)
        print(f"    away for {options.away} s, {len(took)} calls answered", flush=True)
        nats.wipe()
        await nats.start()
        rebuilt = await until_rebuilt(far, [room, f"{room}-muted"])
        await asyncio.sleep(2)
        for ipc in far:
            await ipc.close()
    finally:
        report = await ended(process)
    lost, expected = int(report["lost"]), report["copies expected"]
    return [
        Figure(f"lost of {expected}, registry away {options.away} s", str(lost), "0", lost == 0),
        Figure(f"the slowest of {len(took)} mutes meanwhile", f"{max(took) * 1_000:.1f} ms",
               "≤ 1000 ms", max(took) <= 1),
        Figure("rebuilt after it was wiped", f"{rebuilt:.2f} s", "≤ 5 s", rebuilt <= 5),
    ]  # fmt: skip


async def ended(process: asyncio.subprocess.Process) -> dict[str, str]:
    """Ends a load that goes on until its input ends; returns its report."""
    process.stdin.close()
    status, output, errors = await bench.finish(process)
    if status:
        raise RuntimeError(f"sfu-bench load: {errors or output}")
    return bench.figures(output)


async def drain(options: Options) -> list[Figure]:
    """time without sound of 100 viewers at a node that drains"""
    p99 = []
    async with three_nodes() as daemons:
        for _ in range(options.rounds):
            at_b = await daemons[1].client().open()
            await at_b.call("events.subscribe")
            process = await bench.start(
                *("sfu-bench", "load", "--ipc", daemons[0].ipc, "--viewers", 100),
                *("--viewers-ipc", daemons[1].ipc, "--seconds", 3_600, "--settle", 0),
                *("--follow-moves", "--until-input-ends"),
                stdin=asyncio.subprocess.PIPE,
            )
            try:
                await flowing([at_b])
                await asyncio.sleep(2)
                begin = time.monotonic()
                await at_b.call("server.drain")
                await at_b.wait_for("server.drained", seconds=60)
                took = time.monotonic() - begin
                await asyncio.sleep(2)
                await at_b.call("server.undrain")
                await at_b.close()
            finally:
                report = await ended(process)
            if int(report["moved: viewers"]) != 100:
                raise RuntimeError(f"{report['moved: viewers']} of 100 viewers moved")
            gaps = report["moved: without sound p50 p99 max"]
            print(f"    drained in {took:.1f} s, without sound {gaps}", flush=True)
            p99.append(float(gaps.split()[1]))
    worst = statistics.median(p99)
    return [Figure("100 viewers drained, without sound, p99", f"{worst:.0f} ms", "≤ 300 ms",
                   worst <= 300)]  # fmt: skip


async def until_rebuilt(clients: list[IPC], rooms: list[str]) -> float:
    """Returns the seconds until the names of all rooms are taken again and changes are kept."""
    begin = time.monotonic()
    while time.monotonic() < begin + 60:
        await asyncio.sleep(0.05)
        try:
            replies = [
                await ipc.call("room.update", room=room, custom={"at": time.time()})
                for ipc in clients for room in rooms
            ]  # fmt: skip
        except Refused:
            continue
        if not any("durable" in reply for reply in replies):
            return time.monotonic() - begin
    raise RuntimeError("the registry was not rebuilt within 60 s")


MEASUREMENTS: dict[str, Callable[[Options], Awaitable[list[Figure]]]] = {
    "hop": hop, "cost": cost, "packets": packets, "mutes": mutes, "joins": joins, "loss": loss,
    "registry": registry, "drain": drain,
}  # fmt: skip


def arguments(given: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/nodes/run",
        description=__doc__,
        epilog="measurements:\n"
        + "\n".join(f"  {name:10} {one.__doc__}" for name, one in MEASUREMENTS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to measure (all)")
    parser.add_argument("--rounds", type=int, default=3, help="of what is compared (3)")
    parser.add_argument("--seconds", type=int, default=10, help="of each load (10)")
    parser.add_argument("--away", type=int, default=60, help="seconds without the registry (60)")
    parser.add_argument("--mutes", type=int, default=1_000, help="how many (1000)")
    options = parser.parse_args(given)
    for name in options.names:
        if name not in MEASUREMENTS:
            parser.error(f"nothing is called {name}; --help lists what is measured")
    if min(options.rounds, options.seconds, options.mutes, options.away) < 1:
        parser.error("--rounds, --seconds, --mutes and --away have to be at least 1")
    return options


async def measure(given: argparse.Namespace) -> int:
    options = Options(given.rounds, given.seconds, given.mutes, given.away)
    print(f"{os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}", flush=True)
    failed, figures = False, []
    for name in given.names or MEASUREMENTS:
        print(f"{name}: {MEASUREMENTS[name].__doc__}", flush=True)
        try:
            figures += await MEASUREMENTS[name](options)
        except (RuntimeError, AssertionError, OSError, Refused) as error:
            failed = True
            print(f"{name}: not measured: {error}", file=sys.stderr)
    for figure in figures:
        print(figure)
    return 1 if failed else 0


def main() -> int:
    try:
        return asyncio.run(measure(arguments(sys.argv[1:])))
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
