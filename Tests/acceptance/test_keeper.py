"""The keeper, which starts the daemon again when it dies, and the sockets that outlive it."""

import asyncio
import json
import os
import re
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness import process
from harness.sfud import binary, free_ports
from test_daemon import EX_CONFIG, EX_OSERR, get, run
from test_service import Manager
from test_sfuctl import sfuctl

LIVES = int(os.environ.get("SFUD_LIVES", 20))
STUN_REQUEST = bytes.fromhex("000100002112a442") + bytes(12)


def endpoints(ready: str, name: str) -> list[tuple[str, int]]:
    """Returns the addresses after `name=` in a ready line."""
    texts = re.search(rf" {name}=(\S+)", ready)[1].split(",")
    return [(text.rsplit(":", 1)[0], int(text.rsplit(":", 1)[1])) for text in texts]


async def asked(path: Path, method: str) -> dict:
    """Calls a method on a connection of its own, which may be made while nobody accepts it."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 20)
    writer.write(f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}\n'.encode())
    line = await asyncio.wait_for(reader.readline(), 5)
    writer.close()
    return json.loads(line)["result"]


def descriptors(pid: int) -> int:
    """Returns how many descriptors a process has open."""
    return len(os.listdir(f"/proc/{pid}/fd"))


async def test_sockets_outlive_twenty_deaths(start_sfud):
    """Whatever reaches a socket while the daemon is dead is served by the next life."""
    port = free_ports()
    daemon = await start_sfud("--tcp", "127.0.0.1:0", "--http", f"127.0.0.1:{port}", keeper=True)
    info = await asked(daemon.ipc, "server.info")
    lives, open_files, seconds = {info["started"]}, [], []
    ordinary = 0
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(LIVES):
        child = daemon.child()
        begin = time.monotonic()
        os.kill(child, signal.SIGKILL)
        # The call is made at once: there is no daemon yet that could answer it.
        call = asyncio.create_task(asked(daemon.ipc, "server.info"))
        for target in endpoints(daemon.ready_line, "udp"):
            for _ in range(10):
                sender.sendto(STUN_REQUEST, target)
        streams = [
            socket.create_connection(target) for target in endpoints(daemon.ready_line, "tcp")
        ]
        page = asyncio.to_thread(get, port, "/healthz")
        after = await call
        seconds.append(time.monotonic() - begin)
        assert (await page)[0] == 200
        assert after["udp"] == info["udp"] and after["tcp"] == info["tcp"]
        lives.add(after["started"])

        async def all_read():
            counters = await asked(daemon.ipc, "server.stats")
            return counters["drops"]["stun-unauthenticated"] == 10 * len(info["udp"])

        await process.until(all_read, "the datagrams that waited are read", 5, 0.01)
        _, _, metrics = await asyncio.to_thread(get, port, "/metrics")
        assert f"sfud_tcp_accepted_total {len(streams)}" in metrics
        for stream in streams:
            stream.close()
        assert daemon.child() not in (0, child)
        open_files.append(descriptors(daemon.process.pid))
        ordinary = ordinary or descriptors(daemon.child()) + 3

        async def all_closed():
            return descriptors(daemon.child()) <= ordinary

        await process.until(all_closed, f"the daemon has at most {ordinary} descriptors", 5)
    sender.close()
    assert len(lives) == LIVES + 1
    assert len(set(open_files)) == 1, f"the keeper's descriptors leak: {open_files}"
    median = statistics.median(seconds) * 1000
    print(
        f"from SIGKILL to an answer: {seconds[0] * 1000:.0f} ms after the first death, "
        f"median {median:.0f} ms, at most {max(seconds) * 1000:.0f} ms"
    )
    child = daemon.child()
    assert await daemon.stop() < 2
    assert not Path(f"/proc/{child}").exists()
    assert not daemon.ipc.exists() and not Path(f"{daemon.ipc}.lock").exists()


@pytest.mark.parametrize(
    "arguments, status, said",
    [
        (["--workers", "0"], EX_CONFIG, "sfud: workers:"),
        (["--", "--nosuch"], EX_CONFIG, "sfud: --nosuch:"),
        (["--ipc", "/nonexistent/sfud.sock"], EX_OSERR, "sfud: ipc:"),
        (["--version"], 0, ""),
        (["--", "--check-config"], 0, ""),
    ],
)
def test_what_fails_at_the_first_start_is_final(arguments, status, said):
    result = run("--keeper", *arguments)
    assert result.returncode == status, result
    assert said in result.stderr
    assert result.stderr.count('msg="child started"') == 1
    assert f'msg="keeper ends" status={status}' in result.stderr


# A child that does what the test says, in place of the daemon.

FAKE = '''#!{python} -ES
import array, os, pathlib, select, signal, socket, sys, time

def notify(text, *descriptors):
    address = os.environ["NOTIFY_SOCKET"].replace("@", "\\0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        while True:
            try:
                return sender.sendto(text.encode(), address) if not descriptors else \\
                    (sender.connect(address), sender.sendmsg([text.encode()], rights))
            except BlockingIOError:
                time.sleep(0.001)

kept = []

def udp():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("127.0.0.1", 0))
    kept.append(one)
    return one

def tell(*words):
    # Not print(): a signal's handler may interrupt it, and may not use it then.
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def inherited():
    """The inherited sockets' names and ports."""
    names = os.environ.get("LISTEN_FDNAMES", "").split(":")
    count = int(os.environ.get("LISTEN_FDS", 0))
    assert count == 0 or os.environ["LISTEN_PID"] == str(os.getpid())
    ports = [socket.socket(fileno=os.dup(3 + index)).getsockname()[1] for index in range(count)]
    return dict(zip(names, ports))

directory = pathlib.Path(sys.argv[1])
lives = directory / "lives"
life = int(lives.read_text()) if lives.exists() else 0
lives.write_text(str(life + 1))
exec(compile((directory / str(life)).read_text(), "life", "exec"))
'''


class Keeper:
    """A keeper with a fake child, which executes the text of each of its lives."""

    def __init__(self, directory: Path, *lives: str, **options):
        self.directory = directory
        for number, text in enumerate(lives):
            (directory / str(number)).write_text(text)
        self.program = directory / "child"
        self.program.write_text(FAKE.replace("{python}", sys.executable))
        self.program.chmod(0o755)
        self.process = subprocess.Popen(
            [str(self.program), "--keeper", str(directory)],
            executable=binary(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def line(self) -> str:
        """Returns the child's next line; fails if there is none in time."""
        assert select.select([self.process.stdout], [], [], 10)[0], "the child says nothing"
        return self.process.stdout.readline().strip()

    def end(self, seconds: float = 10) -> tuple[int, list[str], str]:
        """Awaits the end; returns the status, the remaining lines, and the log."""
        try:
            output, log = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"does not end: {self.process.communicate()[1][:2500]}") from None
        return self.process.returncode, output.splitlines(), log


READY = "notify('READY=1')\n"
LAST = READY + "notify('STOPPING=1')\nsys.exit(0)\n"


def test_what_a_life_stores_the_next_gets(tmp_path):
    # A descriptor that whoever starts the keeper has left open is not the child's.
    left_open = os.dup2(0, 60, inheritable=True)
    keeper = Keeper(
        tmp_path,
        """
assert inherited() == {}
stored = {name: udp() for name in "abcdefghijkl"}
for name, one in stored.items():
    notify(f"FDSTORE=1\\nFDPOLL=0\\nFDNAME={name}", one.fileno())
notify("FDSTORE=1\\nFDNAME=other", stored["a"].fileno())
notify("FDSTOREREMOVE=1\\nFDNAME=b")
# The keeper has it under the number that has become free, below those of older ones.
stored["late"] = udp()
notify("FDSTORE=1\\nFDNAME=late", stored["late"].fileno())
del stored["b"]
notify("READY=1")
tell({name: one.getsockname()[1] for name, one in stored.items()})
die()
""",
        READY + "tell(inherited())\ntell(sorted(map(int, os.listdir('/proc/self/fd'))))\n" + LAST,
        pass_fds=[left_open],
    )
    os.close(left_open)
    status, lines, log = keeper.end()
    assert status == 0, log
    assert lines[0] == lines[1]
    # Besides 0 to 2 and the twelve of them, only the listing's own.
    assert lines[2] == str(list(range(3 + 12 + 1)))


def test_strangers_are_not_heard(tmp_path):
    keeper = Keeper(
        tmp_path,
        READY + "tell(os.environ['NOTIFY_SOCKET'])\nsys.stdin.readline()\ndie()",
        READY + "tell(inherited())\n" + LAST,
        stdin=subprocess.PIPE,
    )
    address = keeper.line().replace("@", "\0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger, socket.socket() as stolen:
        stranger.setblocking(False)
        stranger.connect(address)
        for text in (b"STOPPING=1", b"WATCHDOG=trigger", b"\xff\x00", b"", b"A" * 10_000):
            stranger.send(text)
        socket.send_fds(stranger, [b"FDSTORE=1\nFDNAME=evil"], [stolen.fileno()])
    keeper.process.stdin.write("\n")
    keeper.process.stdin.flush()
    status, lines, log = keeper.end()
    assert (status, lines) == (0, ["{}"]), log


def test_garbage_of_its_own_child_does_no_harm(tmp_path):
    keeper = Keeper(
        tmp_path,
        """
for text in ("", "=", "FDSTORE=1", "FDSTOREREMOVE=1", "FDNAME=a", "BARRIER=1", "A" * 10_000):
    notify(text)
notify("FDSTOREREMOVE=1\\nFDNAME=never", udp().fileno())
notify("FDSTORE=1\\nFDNAME=" + "a" * 300, udp().fileno())
"""
        + READY
        + "die()",
        READY + "tell(list(inherited()))\n" + LAST,
    )
    status, lines, log = keeper.end()
    # A descriptor without a valid name gets the one that systemd gives.
    assert (status, lines) == (0, ["['stored']"]), log


def test_a_barrier_waits_for_what_was_said_before(tmp_path):
    keeper = Keeper(
        tmp_path,
        READY
        + """
ours, theirs = os.pipe()
notify("BARRIER=1", theirs)
os.close(theirs)
poll = select.poll()
poll.register(ours, 0)
tell(poll.poll(5000))
"""
        + LAST,
    )
    status, lines, log = keeper.end()
    assert status == 0 and lines[0].endswith(f", {16})]"), (lines, log)  # POLLHUP


@pytest.mark.parametrize(
    "lives, status",
    [
        (["sys.exit(3)"], 3),
        (["die()"], 128 + 9),
        (["tell('started')\nsys.exit(0)"], 0),
        ([READY + "sys.exit(0)"], 0),
        ([READY + "sys.exit(78)"], 78),
        ([READY + "notify('STOPPING=1')\nsys.exit(71)"], 71),
        ([READY + "sys.exit(71)", LAST], 0),
        ([READY + "die()", "sys.exit(71)", "die()", READY + "sys.exit(78)"], 78),
    ],
)
def test_the_end_is_that_of_the_child(tmp_path, lives, status):
    keeper = Keeper(tmp_path, *lives)
    ended, _, log = keeper.end()
    assert ended == status, log
    assert (tmp_path / "lives").read_text() == str(len(lives))
    assert f'msg="keeper ends" status={status}' in log


def test_signals_are_passed_on(tmp_path):
    keeper = Keeper(
        tmp_path,
        """
for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT):
    signal.signal(number, lambda number, _: tell(signal.Signals(number).name))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(5))
"""
        + READY
        + "tell(os.getpgid(0) == os.getpid())\nwhile True: time.sleep(0.02)",
    )
    assert keeper.line() == "True"
    for name in ("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGINT"):
        keeper.process.send_signal(signal.Signals[name])
        assert keeper.line() == name
    keeper.process.send_signal(signal.SIGTERM)
    status, lines, log = keeper.end()
    assert (status, lines) == (5, []), log


def test_a_child_that_stands_still_is_started_again(tmp_path):
    still = "notify('READY=1\\nWATCHDOG_USEC=100000')\ntime.sleep(60)"
    begin = time.monotonic()
    keeper = Keeper(tmp_path, still, READY + "notify('WATCHDOG=trigger')\ntime.sleep(60)", LAST)
    status, _, log = keeper.end()
    assert status == 0 and (tmp_path / "lives").read_text() == "3"
    assert 'msg="child stands still"' in log and 'msg="child asks to be killed"' in log
    assert time.monotonic() - begin < 5


def test_without_the_keeper_there_is_no_child(tmp_path):
    keeper = Keeper(
        tmp_path,
        """
signal.signal(signal.SIGTERM, lambda *_: (tell("told"), sys.exit(0)))
"""
        + READY
        + "tell('ready')\nwhile True: time.sleep(0.02)",
    )
    assert keeper.line() == "ready"
    keeper.process.kill()
    assert keeper.line() == "told"
    keeper.end()


def test_a_manager_above_hears_of_the_child(tmp_path):
    above = Manager(f"@sfud-test-above-{os.getpid()}")
    above.socket.setblocking(True)
    above.socket.settimeout(5)
    keeper = Keeper(
        tmp_path,
        READY + "notify('STATUS=busy\\nMAINPID=1\\nWATCHDOG=1')\nudp()\nnotify('FDSTORE=1')\n" + LAST,
        env={
            **os.environ,
            "NOTIFY_SOCKET": f"@sfud-test-above-{os.getpid()}",
            "WATCHDOG_USEC": "30000000",
        },
    )
    said = [above.socket.recv(4096).decode() for _ in range(4)]
    assert said == ["READY=1", "STATUS=busy\nWATCHDOG=1", "READY=1", "STOPPING=1"]
    assert keeper.end()[0] == 0
    above.close()


def test_a_replaced_program_is_used_at_the_next_start(tmp_path):
    keeper = Keeper(tmp_path, READY + "tell('old')\nsys.stdin.readline()\ndie()", LAST,
                    stdin=subprocess.PIPE)  # fmt: skip
    assert keeper.line() == "old"
    (tmp_path / "new").write_text(
        keeper.program.read_text().replace("directory = ", "tell('new')\ndirectory = ", 1)
    )
    (tmp_path / "new").chmod(0o755)
    (tmp_path / "new").rename(keeper.program)
    keeper.process.stdin.write("\n")
    keeper.process.stdin.flush()
    status, lines, log = keeper.end()
    assert (status, lines) == (0, ["new"]), log


def test_it_holds_so_many_descriptors_and_no_more(tmp_path):
    store = """
for number in range(390):
    notify(f"FDSTORE=1\\nFDNAME=udp.{number}.0", udp().fileno())
"""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    keeper = Keeper(
        tmp_path,
        store + READY + "die()",
        READY + "found = inherited()\ntell(len(found), 'udp.383.0' in found)\n" + LAST,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, limits[1])),
    )
    status, lines, log = keeper.end()
    assert (status, lines) == (0, ["384 True"]), log
    assert log.count("descriptor not stored: too many") == 6


def test_out_of_descriptors_it_goes_on(tmp_path):
    """With a full table nothing more is stored; the child is kept running all the same."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    keeper = Keeper(
        tmp_path,
        """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for number in range(40):
    notify(f"FDSTORE=1\\nFDNAME=udp.{number}.0", udp().fileno())
"""
        + READY
        + "tell('full')\nsys.stdin.readline()\ndie()",
        READY + "tell(len(inherited()) > 3)\n" + LAST,
        stdin=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, limits[1])),
    )
    assert keeper.line() == "full"
    # A child takes pipes and copies besides, so the start fails until there is room.
    keeper.process.stdin.write("\n")
    keeper.process.stdin.flush()
    time.sleep(0.3)
    resource.prlimit(keeper.process.pid, resource.RLIMIT_NOFILE, limits)
    status, lines, log = keeper.end()
    assert (status, lines) == (0, ["True"]), log
    assert "notification truncated" in log and "child cannot be started" in log


# Upgrades of the real daemon.


async def life(daemon) -> float:
    """Returns when the process began; an upgrade may end a connection before the reply."""
    while True:
        try:
            return (await asked(daemon.ipc, "server.info"))["started"]
        except (ConnectionError, json.JSONDecodeError):
            continue


@pytest.mark.parametrize("keeper", [False, True])
async def test_an_upgrade_keeps_the_process_and_its_sockets(start_sfud, tmp_path, keeper):
    daemon = await start_sfud("--tcp", "127.0.0.1:0", keeper=keeper)
    pid = daemon.child() if keeper else daemon.process.pid
    before = await asked(daemon.ipc, "server.info")
    new = tmp_path / "sfud-new"
    new.symlink_to(binary())
    status, output, errors = await sfuctl("--ipc", daemon.ipc, "upgrade", new)
    assert (status, errors) == (0, "")
    assert re.fullmatch(r"sfud (\S+) -> \1\n", output)
    after = await asked(daemon.ipc, "server.info")
    assert after["started"] > before["started"] and after["udp"] == before["udp"]
    assert after["boot"] == before["boot"]
    assert after["tcp"] == before["tcp"]
    # The program's name is that of the new one, its process the old one.
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    assert command[0] == bytes(new) and str(daemon.ipc).encode() in command
    os.kill(pid, signal.SIGHUP)

    async def replaced():
        return await life(daemon) not in (before["started"], after["started"])

    await process.until(replaced, "SIGHUP replaces the program, too", 5)
    if keeper:
        # What was handed over within the process is still the keeper's.
        os.kill(pid, signal.SIGKILL)
        assert (await asked(daemon.ipc, "server.info"))["udp"] == before["udp"]
        assert daemon.child() not in (0, pid)
    assert await daemon.stop() < 2


async def test_many_upgrades_leak_nothing(start_sfud):
    daemon = await start_sfud()
    seen, counts, last = set(), [], await life(daemon)
    for _ in range(5):
        daemon.process.send_signal(signal.SIGHUP)

        async def replaced():
            return await life(daemon) != last

        await process.until(replaced, "the next life answers", 5, 0.01)
        last = await life(daemon)
        seen.add(last)
        await asyncio.sleep(0.05)
        counts.append(daemon.descriptors())
    assert len(seen) == 5 and max(counts) - min(counts) <= 1, counts
    await daemon.stop()


async def test_a_program_that_cannot_be_executed_changes_nothing(start_sfud, tmp_path):
    """It prints a version and then takes its own interpreter away, so only the last step fails."""
    port = free_ports()
    daemon = await start_sfud("--tcp", "127.0.0.1:0", "--http", f"127.0.0.1:{port}")
    (tmp_path / "sh").symlink_to("/bin/sh")
    bad = tmp_path / "bad"
    bad.write_text(f"#!{tmp_path}/sh\nrm {tmp_path}/sh\necho sfud 9.9.9\n")
    bad.chmod(0o755)
    before = await life(daemon)

    def reserved() -> set[str]:
        folder = Path(f"/proc/{daemon.process.pid}/fd")
        return {one.name for one in folder.iterdir() if os.readlink(one) == "/dev/null"}

    async with daemon.client() as ipc:
        numbers = reserved()
        await ipc.call("room.create", room="r1")
        assert await ipc.call("server.upgrade", binary=str(bad)) == {}

    async def failed():
        return 'msg="upgrade failed"' in daemon.log_text()

    await process.until(failed, "the failure is logged", 5)

    async def restarted():
        return await life(daemon) != before

    # The workers had ended, so the same program has gone on with the calls.
    await process.until(restarted, "the program executes itself", 5)
    # For a moment the memory of two lives is kept.
    async def complete():
        return len(reserved()) == len(numbers)

    await process.until(complete, "as many descriptors are kept free", 5)
    rooms = (await asked(daemon.ipc, "room.list"))["rooms"]
    assert [one["room"] for one in rooms] == ["r1"]
    assert (await asyncio.to_thread(get, port, "/healthz"))[0] == 200
    for target in endpoints(daemon.ready_line, "tcp"):
        socket.create_connection(target).close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for target in endpoints(daemon.ready_line, "udp"):
            sender.sendto(STUN_REQUEST, target)

    async def read():
        return (await asked(daemon.ipc, "server.stats"))["drops"]["stun-unauthenticated"] == 2

    await process.until(read, "the workers still read their sockets", 5, 0.01)
    await daemon.stop()


async def test_an_upgrade_keeps_the_rooms(start_sfud, tmp_path):
    daemon = await start_sfud()
    async with daemon.client() as ipc:
        await ipc.call("room.create", room="r1")
        before = await ipc.call("server.info")
        status, _, errors = await sfuctl("--ipc", daemon.ipc, "upgrade", tmp_path)
        assert status == 1 and "is no program" in errors
        assert (await ipc.call("server.info"))["started"] == before["started"]
        status, output, errors = await sfuctl("--ipc", daemon.ipc, "upgrade")
        assert (status, errors) == (0, ""), output
    after = await asked(daemon.ipc, "server.info")
    assert after["boot"] == before["boot"] and after["started"] > before["started"]
    rooms = (await asked(daemon.ipc, "room.list"))["rooms"]
    assert [one["room"] for one in rooms] == ["r1"]
    await daemon.stop()
