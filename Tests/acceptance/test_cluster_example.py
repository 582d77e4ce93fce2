"""examples/cluster: one command that runs three nodes, and the page that draws them.

With SFUD_PICTURES=DIR the first test writes what the page looks like.

A test in which a node drains records in the tabs when a picture is drawn and when a sound is heard.
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
from harness.expect import Froze
from harness.nats import linked
from harness.process import until
from harness.sfud import REPOSITORY, binary

RUN = REPOSITORY / "examples/cluster/run"
SIZES = {"desktop": (1400, 1000), "phone": (390, 844)}

#: Seconds for which a picture may stand still while somebody moves, and sound may be away: the
#: fake microphone beeps twice a second.
LONGEST_GAPS = {"pictures": 1.0, "sounds": 1.0 + 0.5}

#: Notes in a tab the times of the pictures and sounds of the other person, in milliseconds, the
#: times without a picture, and what the page says of broken connections.
RECORDER = """(() => {
  const record = window.record = { pictures: [], sounds: [], ticks: [], blanks: [], problems: [] };
  const now = () => performance.now();
  const tile = document.querySelector(".tile[data-key^='participant:']");
  const video = tile.querySelector("video");
  const draw = () => video.requestVideoFrameCallback(() => {
    record.pictures.push(now());
    draw();
  });
  draw();
  const note = (list, what) => { if (list.at(-1) !== what) list.push(what); };
  const context = new OffscreenCanvas(4, 4).getContext("2d", { willReadFrequently: true });
  const isBlank = () => {
    if (!tile.isConnected || !tile.classList.contains("has-video")) return true;
    context.fillStyle = "black";
    context.fillRect(0, 0, 4, 4);
    context.drawImage(video, 0, 0, 4, 4);
    return context.getImageData(0, 0, 4, 4).data.every((it, index) => index % 4 === 3 || it < 8);
  };
  video.addEventListener("emptied", () => record.blanks.push(now()));
  let energy = 0;
  const listen = async () => {
    const sample = await sfudDemo.stats();
    const before = energy;
    energy = (sample?.received ?? []).reduce((sum, it) => sum + it.audioEnergy, 0);
    if (energy > before + 1e-6) record.sounds.push(now());
  };
  setInterval(() => {
    record.ticks.push(now());
    if (isBlank()) record.blanks.push(now());
    const banner = document.getElementById("banner");
    if (!banner.hidden) note(record.problems, document.getElementById("banner-text").textContent);
    if (!tile.querySelector(".tile-away").hidden) note(record.problems, "the other one is away");
    if (sfudDemo.state !== "joined") note(record.problems, sfudDemo.state);
    listen();
  }, 100);
})()"""


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


class Log:
    """The log of one of the example's nodes."""

    def __init__(self, example: Example, node: str):
        self.path = Path(example.directory) / f"{node}.log"

    def log_text(self) -> str:
        return self.path.read_text(errors="replace")


def longest_gap(times: list[float], start: float, end: float) -> tuple[float, float]:
    """Returns the longest time between two of them, and when that begins, in seconds."""
    inside = [start, *(it for it in times if start < it < end), end]
    gaps = [((after - it) / 1000, (it - start) / 1000) for it, after in zip(inside, inside[1:])]
    return max(gaps)


async def goes_on(tab: Tab, start: float) -> None:
    """Checks what a tab has recorded since then: no gap, no blank picture, no word of a break."""
    record = await tab.page.evaluate("window.record")
    end = await tab.page.evaluate("performance.now()")
    # While the page itself stands still, on a busy machine, it notes nothing.
    gaps = {it: longest_gap(record[it], start, end) for it in (*LONGEST_GAPS, "ticks")}
    for what, (gap, at) in gaps.items():
        print(f"{tab.name}: {len(record[what])} {what}, none for {gap:.2f} s from {at:.2f} s on")
    assert not record["problems"], (tab.name, record["problems"])
    assert not record["blanks"], f"{tab.name}: {len(record['blanks'])} looks at an empty tile"
    for what, most in LONGEST_GAPS.items():
        if gaps[what][0] > most + gaps["ticks"][0]:
            raise Froze(f"{tab.name}: no {what} for {gaps[what][0]:.2f} s")


SELF = """(() => {
  const { self } = sfudDemo.roomState;
  return { participant: self.participant, node: self.node,
    streams: sfudDemo.streams.map((it) => it.stream).sort() };
})()"""


@pytest.mark.seconds(90)
@pytest.mark.parametrize(
    "node",
    [pytest.param("b", marks=pytest.mark.slow, id="not the home"), pytest.param("a", id="the home")],
)
async def test_nobody_notices_that_a_node_drains(example, browsers, node):
    await asyncio.gather(linked(Log(example, "a"), "b", "c"), linked(Log(example, "b"), "c"))
    browser = await browsers.get("Chromium")
    drawing = Drawing(await browser.open(example.url))
    await drawing.shows(".node-card .sign", "up", "up", "up")
    tabs = {"a": await drawing.join(browser, "a", "Ada")}
    tabs["b"] = await drawing.join(browser, "b", "Ben")
    ada, ben = tabs.values()
    await ada.watches("Ben")
    await ben.watches("Ada")
    await drawing.shows("#room-list .sign", "home: a", "2 people")
    mover = tabs[node]
    before = {name: await tab.page.evaluate(SELF) for name, tab in tabs.items()}
    assert before[node]["node"] == node
    starts = {}
    for name, tab in tabs.items():
        await tab.page.evaluate(RECORDER)
        starts[name] = await tab.page.evaluate("performance.now()")
    await asyncio.sleep(1)  # the last second before
    await drawing.press(node, "drain")

    async def moved():
        now = await mover.page.evaluate(SELF)
        return now["node"] if now["node"] != node else None

    try:
        there = await until(moved, "", 10)
    except AssertionError:
        news = await drawing.find("#news-list span")
        log = Log(example, node).log_text()[-4_000:]
        said = f"{mover.name} does not move. {news}. {await mover.text()}. {log}"
        raise AssertionError(said) from None
    await asyncio.sleep(4)
    for name, tab in tabs.items():
        await goes_on(tab, starts[name])
        now = await tab.page.evaluate(SELF)
        assert now == before[name] | {"node": there if name == node else name}, now
    others = [it for it in ("a", "b", "c") if it != node]
    assert there in others
    await drawing.shows(f"#people [data-at={there}]:not(.is-away)",
                        *(tab.name for tab in tabs.values() if tab is mover or there in tabs),
                        attribute="data-person")  # fmt: skip
    told = f"Node {node} drains: {mover.name} moves to node {there}, unnoticed"
    assert told in await drawing.find("#news-list span")
    # All that they do next is heard as ever.
    await mover.demo("act('audio')")
    await tabs["b" if node == "a" else "a"].tile(mover.name, audioOn=False)
    for tab in (ada, ben, drawing):
        await tab.page.close()


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

        async def becomes(wanted: str) -> None:
            async def reached():
                return await state() == wanted

            await until(reached, f"node a is {wanted}")

        # The command has said that all run before the page has asked them.
        await becomes("up")
        assert await post("a/drain", Origin=f"http://{host}") == 200
        await becomes("draining")
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
