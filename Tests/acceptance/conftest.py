"""Shared fixtures of the tests: one event loop, the daemon, the browsers.

A test is an `async def`, or an ordinary function; it gets the daemon and the peers as fixtures.
Each has its own daemon, so that counters and log show that test's effects only.
"""

import asyncio
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import demo as demo_page
from harness import expect
from harness import process
from harness.aio import AioPeer
from harness.chromium import Chromium
from harness.firefox import Firefox
from harness.gateway import Gateway
from harness.gst import GstPeer
from harness.peer import Peer
from harness.room import Room
from harness.sfud import Sfud

#: Seconds for one test, unless a mark `seconds` says otherwise.
TEST_SECONDS = 60


def pytest_sessionstart(session):
    """Ensures that loopback is the only interface: browsers prefer any other."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    links = [line.split(":")[0].strip() for line in lines]
    up = subprocess.run(["ip", "-o", "link", "show", "up"], capture_output=True, text=True).stdout
    if links != ["lo"] or "lo:" not in up:
        pytest.exit(
            "these tests run in a network namespace with loopback alone: use Tests/acceptance/run",
            returncode=2,
        )


@pytest.fixture(scope="session")
def loop():
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    """Runs an `async def` test on the shared loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    loop = pyfuncitem._request.getfixturevalue("loop")
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    mark = pyfuncitem.get_closest_marker("seconds")
    seconds = mark.args[0] if mark else TEST_SECONDS

    async def run():
        async with asyncio.timeout(seconds):
            await pyfuncitem.obj(**arguments)

    loop.run_until_complete(run())
    return True


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows the end of the daemon's log with a failure, and puts a flaky test's failure off."""
    outcome = yield
    report = outcome.get_result()
    daemon = getattr(item, "funcargs", {}).get("sfud")
    if report.failed and isinstance(daemon, Sfud) and daemon.log.exists():
        report.sections.append(("sfud's log", daemon.log_tail()))
    mark = item.get_closest_marker("flaky_outside")
    reason = mark.kwargs["reason"] if mark else ""
    if report.failed and call.excinfo.errisinstance(expect.Froze):
        reason = "a stall of the busy machine looks like a freeze"
    elif hasattr(item.config, "workerinput"):
        reason = reason or "another test ran beside it"
    if report.failed and reason and not item.config.getoption("last_chance"):
        report.sections.append(("to be repeated alone, as it may fail", reason))
        report.outcome = "postponed"


def pytest_addoption(parser):
    parser.addoption(
        "--last-chance", action="store_true", help="take a flaky test's failure for a failure"
    )


def pytest_report_teststatus(report):
    return ("postponed", "P", "POSTPONED") if report.outcome == "postponed" else None


def pytest_terminal_summary(terminalreporter):
    """Shows why the postponed tests failed, whether they have passed since or not."""
    for report in terminalreporter.getreports("postponed"):
        terminalreporter.write_sep("_", f"failed at first: {report.nodeid}")
        report.toterminal(terminalreporter._tw)


#: Failures of repeated tests after which the others are not repeated: a slow machine fails many
#: tests that pass alone, a fault of sfud's fails these too.
MOST_FAILED_AGAIN = 3

#: The postponed tests, in the order in which they failed.
postponed: dict[str, None] = {}


def pytest_runtest_logreport(report):
    if report.outcome == "postponed":
        postponed[report.nodeid] = None


def pytest_sessionfinish(session):
    """Repeats the postponed tests, one after the other, when no other test runs any more."""
    if not postponed or hasattr(session.config, "workerinput"):
        return
    here = Path(__file__).parent
    print(f"\nOnce more, alone: {', '.join(postponed)}", flush=True)
    again = [sys.executable, "-m", "pytest", "--last-chance", "-p", "no:xdist"]
    again += [f"--maxfail={MOST_FAILED_AGAIN}", *postponed]
    if subprocess.run(again, cwd=here).returncode != 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture
def start_sfud(loop):
    """Returns `await start_sfud(*flags)`, which starts another daemon, or one that the test
    ends."""
    started = []

    async def start(*flags: str, **options) -> Sfud:
        started.append(await Sfud.start(*flags, **options))
        return started[-1]

    yield start
    for daemon in started:
        loop.run_until_complete(process.kill(daemon.process))
        daemon.remove()


@pytest.fixture
def sfud(loop, request, start_sfud):
    """Returns a daemon of the test's own: `.ipc` is its socket's path, `.client()` connects to
    it."""
    mark = request.node.get_closest_marker("sfud")
    daemon = loop.run_until_complete(start_sfud(*(mark.args if mark else ())))
    yield daemon
    loop.run_until_complete(daemon.stop())


@pytest.fixture
def ipc(loop, sfud):
    """Returns a connection to the daemon's IPC."""
    client = sfud.client()
    loop.run_until_complete(client.open())
    yield client
    loop.run_until_complete(client.close())


@pytest.fixture
def room(loop, ipc):
    """Returns an open room whose events the test receives."""
    return loop.run_until_complete(Room(ipc).open())


class Browsers:
    """The browser processes that all tests share, started on first use."""

    def __init__(self):
        self._running = {}

    async def get(self, stack: str):
        if stack not in self._running:
            self._running[stack] = await {"Chromium": Chromium, "Firefox": Firefox}[stack].start()
        return self._running[stack]

    async def close(self) -> None:
        for browser in self._running.values():
            await browser.close()


@pytest.fixture(scope="session")
def browsers(loop):
    browsers = Browsers()
    yield browsers
    loop.run_until_complete(browsers.close())


@pytest.fixture
def peers(loop, browsers):
    """Returns `await peers(stack)`, which makes a peer of that stack; it is closed after the
    test."""
    made = []

    async def make(stack: str) -> Peer:
        match stack:
            case "Chromium" | "Firefox":
                peer = await (await browsers.get(stack)).peer()
            case "GStreamer":
                peer = await GstPeer.start()
            case "aiortc":
                peer = AioPeer()
        made.append(peer)
        return peer

    yield make
    for peer in made:
        loop.run_until_complete(peer.close())


@pytest.fixture
def demo(loop, request, sfud):
    """Returns the demo's signalling server; a mark `demo` gives it flags."""
    mark = request.node.get_closest_marker("demo")
    flags = mark.args if mark else ()
    site = loop.run_until_complete(demo_page.serve(sfud.ipc, sfud.directory, *flags))
    yield site
    loop.run_until_complete(process.kill(site.process))


@pytest.fixture
def enter(loop, browsers, demo):
    """Returns `await enter(name, **parameters)`, which opens the demo's page and joins at once;
    with `moderates=True` by the moderator's link."""
    opened = []

    async def open_(name: str, moderates: bool = False, **parameters) -> demo_page.Tab:
        browser = await browsers.get("Chromium")
        if moderates:
            parameters = {"invitation": demo.invitation} | parameters
        opened.append(await demo_page.Tab.open(browser, demo.url, name, **parameters))
        return opened[-1]

    yield open_
    for tab in opened:
        loop.run_until_complete(tab.page.close())


@pytest.fixture
def tabs(enter):
    """Returns `await tabs(name, ...)`, which opens the page for each name and awaits that all have
    joined."""

    async def open_(*names: str) -> list[demo_page.Tab]:
        opened = [await enter(name) for name in names]
        for tab in opened:
            await tab.joined()
        return opened

    return open_


@pytest.fixture
def gateway(loop, sfud):
    """Returns `await gateway(root=, tenant=, keys=, more=)`, which starts the gateway with lines of
    configuration beside the usual ones."""
    started = []

    async def start(**lines: str) -> Gateway:
        found = Gateway(sfud.ipc, sfud.directory)
        found.write(**lines)
        started.append(found)
        return await found.start()

    yield start
    for one in started:
        loop.run_until_complete(one.close())
