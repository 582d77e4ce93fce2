"""examples/cluster: one command that runs three nodes, and the page that draws them.

With SFUD_PICTURES=DIR the first test writes what the page looks like.
"""

import asyncio
import os
import re
import shutil
import signal
import socket
from pathlib import Path

import aiohttp
import pytest

from harness import process
from harness.demo import PYTHON, Tab
from harness.process import until
from harness.sfud import REPOSITORY, binary

RUN = REPOSITORY / "examples/cluster/run"
SIZES = {"desktop": (1400, 1000), "phone": (390, 844)}


class Example:
    """The running command: its page's address, and the directory of its files."""

    def __init__(self, child, said: str):
        self.child = child
        self.url = re.search(r"http://127\.0\.0\.1:\d+/\n", said)[0].strip()
        self.directory = re.search(r"logs are in (\S+)\.\s", said)[1]

    @classmethod
    async def start(cls, log: Path, *flags: str) -> "Example":
        child = await process.start(
            PYTHON, RUN, "--port", "0", "--sfud", binary(), *flags,
            output=log, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said = ""
        while "Ctrl-C" not in said:
            line = await asyncio.wait_for(child.stdout.readline(), 30)
            assert line, log.read_text()
            said += line.decode()
        return cls(child, said)

    def processes(self) -> list[str]:
        """Returns the commands of its processes, but for its own."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                command = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if self.directory in command:
                found.append(command)
        return found

    async def interrupt(self) -> int:
        """Does what Ctrl-C does; returns the exit status."""
        self.child.send_signal(signal.SIGINT)
        return await asyncio.wait_for(self.child.wait(), 15)


@pytest.fixture
def example(loop, tmp_path):
    running = loop.run_until_complete(Example.start(tmp_path / "run.log"))
    yield running
    if running.child.returncode is None:
        loop.run_until_complete(running.interrupt())


class Drawing:
    """The cluster's page."""

    def __init__(self, page):
        self.page = page

    async def find(self, selector: str, attribute: str | None = None) -> list:
        """Returns the texts of what is there, or an attribute of each."""
        what = f"it.getAttribute('{attribute}')" if attribute else "it.textContent.trim()"
        return await self.page.evaluate(
            f"[...document.querySelectorAll({selector!r})].map((it) => {what})"
        )

    async def shows(self, selector: str, *texts: str, attribute=None, seconds: float = 10):
        """Awaits exactly these."""
        found: list = []

        async def there():
            found[:] = await self.find(selector, attribute)
            return sorted(found) == sorted(texts)

        try:
            await until(there, "", seconds)
        except AssertionError:
            page = await self.page.evaluate("document.body.innerText")
            raise AssertionError(f"{selector} is {found}, not {texts}. {page}") from None

    async def press(self, node: str, action: str) -> None:
        button = f"document.querySelector('.node-card[data-node={node}] [data-do={action}]')"
        await self.page.evaluate(f"{button}.click()")

    async def join(self, browser, node: str, name: str) -> Tab:
        """Opens what the link of a node opens, and awaits that it has joined."""
        await self.shows(f".node-card[data-node={node}] .sign", "up")
        link = f".node-card[data-node={node}] [data-join=participant]"

        async def suggested():
            [href] = await self.find(link, "href")
            return href if f"name={name}" in href else None

        tab = Tab(await browser.open(await until(suggested, f"{name} is the next name")), name)
        await tab.joined()
        return tab


@pytest.mark.seconds(90)
async def test_people_at_three_nodes_meet_and_outlive_the_home(example, browsers):
    assert len(example.processes()) == 7, example.processes()
    browser = await browsers.get("Chromium")
    page = await browser.open(example.url)
    drawing = Drawing(page)
    await drawing.shows(".node-card .sign", "up", "up", "up")
    await drawing.shows("#links .link:not(.is-down)", "", "", "")

    ada = await drawing.join(browser, "a", "Ada")
    ben = await drawing.join(browser, "b", "Ben")
    await ada.watches("Ben")
    await ben.watches("Ada")
    await drawing.shows("#people [data-at=a]", "Ada", attribute="data-person")
    await drawing.shows("#people [data-at=b]", "Ben", attribute="data-person")
    await drawing.shows("#flows > *", "a>b", "b>a", attribute="data-flow")
    await drawing.shows("#room-list .room", "demo", attribute="data-room")
    await drawing.shows("#room-list .sign", "home: a", "2 people")
    await drawing.shows(".tree .way", "a → b", "b → a")
    [told] = await drawing.find(".tree [data-branch='a>b']")
    assert "Ada’s camera and microphone" in told or "Ada’s microphone and camera" in told, told
    assert "for 1 viewer" in told and not await Tab(page, "the page").faults()
    await pictures(page)

    # The home fails: Ben stays where he is, and Ada's tab has lost its server too.
    await drawing.press("a", "stop")
    await ada.reads("The connection to the signalling server is lost")
    await drawing.shows(".node-card[data-node=a] .sign", "lost")
    await drawing.shows("#people [data-at=b]:not(.is-away)", "Ben", attribute="data-person")
    before = await ben.demo("participant")
    await ada.click("Go on at c")
    await ada.joined()
    await ada.watches("Ben")
    await ben.watches("Ada", connection="connected")
    assert await ben.demo("participant") == before, "he has not joined anew"
    await drawing.shows("#people [data-at=c]:not(.is-away)", "Ada", attribute="data-person")
    await drawing.shows("#flows > *", "b>c", "c>b", attribute="data-flow")
    assert "home: a" not in await drawing.find("#room-list .sign")

    await drawing.press("a", "start")
    await drawing.shows(".node-card .sign", "up", "up", "up")
    for tab in (ada, ben, drawing):
        await tab.page.close()
    assert await example.interrupt() == 0
    assert example.processes() == []
    assert not Path(example.directory).exists()


async def pictures(page) -> None:
    if "SFUD_PICTURES" not in os.environ:
        return
    for scheme in ("dark", "light"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await page.command("Emulation.setEmulatedMedia", features=features)
        for name, (width, height) in SIZES.items():
            await page.resize(width, height)
            await asyncio.sleep(0.5)
            tall = await page.evaluate("document.documentElement.scrollHeight")
            await page.resize(width, tall)
            await asyncio.sleep(0.5)
            await page.picture(Path(os.environ["SFUD_PICTURES"]) / f"cluster-{name}-{scheme}.png")


async def test_other_sites_do_not_press_its_buttons(example):
    host = example.url.split("/")[2]
    other = "http://evil.example"
    async with aiohttp.ClientSession() as client:

        async def post(path: str, **headers: str) -> int:
            async with client.post(example.url + path, headers=headers) as reply:
                return reply.status

        assert await post("a/drain", Origin=other) == 403
        assert await post("a/drain", **{"Sec-Fetch-Site": "cross-site"}) == 403
        assert await post("a/drain", Host="evil.example") == 403
        async with client.get(example.url + "picture", headers={"Host": "evil.example"}) as reply:
            assert reply.status == 403
        assert await post("d/drain") == await post("a/explode") == await post("nats/drain") == 404

        async def state() -> str:
            async with client.get(example.url + "picture") as reply:
                return (await reply.json())["nodes"][0]["state"]

        assert await state() == "up"
        assert await post("a/drain", Origin=f"http://{host}") == 200

        async def draining():
            return await state() == "draining"

        await until(draining, "node a drains")
        assert await post("a/undrain") == 200  # as curl does it
        assert await post("a/stop") == 200
        async with client.post(example.url + "a/drain") as reply:
            assert reply.status == 409 and "cannot be reached" in await reply.text()


async def test_nothing_goes_on_when_it_is_killed(example):
    assert len(example.processes()) == 7
    example.child.kill()
    await example.child.wait()

    async def gone():
        return example.processes() == []

    await until(gone, "the processes that it has started end")
    shutil.rmtree(example.directory)


async def ends(tmp_path, *flags: str, status: int) -> str:
    """Returns what the command says that cannot start."""
    log = tmp_path / "run.log"
    child = await process.start(PYTHON, RUN, *flags, output=log)
    assert await asyncio.wait_for(child.wait(), 10) == status, log.read_text()
    return log.read_text()


async def test_it_says_what_is_missing(tmp_path):
    assert "make build" in await ends(tmp_path, "--sfud", "/nowhere", status=69)
    sfud = ("--sfud", str(binary()))
    said = await ends(tmp_path, *sfud, "--nats-server", "/nowhere", status=69)
    assert "no /nowhere" in said and "apt-get install nats-server" in said
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = await ends(tmp_path, *sfud, "--port", str(port), status=71)
        assert f"cannot have port {port}" in said and f"PORT={port + 1}" in said
    assert "127.0.0.1" in await ends(tmp_path, "--help", status=0)
