"""The tutorials' servers, from their own text: two and three browsers in a call through each."""

import asyncio
import contextlib
import json
import os
import re
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from harness import process
from harness.ipc import LONGEST_LINE, Refused
from harness.process import until
from harness.sfud import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.seconds(600)]

TUTORIALS = REPOSITORY / "docs/tutorials"
MOST_LINES = 150

#: The line separator, which is no end of a line in JSON.
NAMES = {"ann": "Ann", "ben": "Be\u2028n", "cy": "Cy \"<b>\" \\"}

#: How each server is built, and run.
BUILD: dict[str, list[str]] = {
    "node": [],
    "python": [],
    "go": ["go", "build", "-o", "server", "server.go"],
    "swift": ["swift", "build", "--scratch-path", str(REPOSITORY / ".build/tutorial")],
}
RUN = {
    "node": ["node", "server.mjs"],
    "python": ["/usr/bin/python3", "server.py"],
    "go": ["./server"],
    "swift": [str(REPOSITORY / ".build/tutorial/debug/server")],
}

#: JSON in a call's params that may make a line too long for sfud, or one that it cannot read.
HOSTILE = (
    f'"{"x" * 3_000_000}"',
    f'"{chr(0x4E2D) * 400_000}"',  # 1.2 MB in UTF-8
    f'"{"<" * 490_000}"',  # which some write as six characters
    f"[{','.join(['1e20'] * 90_000)}]",  # which some write as 21 digits
    '"\\ud800"',
    "[" * 100 + "]" * 100,
)
#: The servers wait ten seconds for sfud.
PATIENCE = aiohttp.ClientTimeout(total=20)

#: Measures what the pages show and play.
METER = """
const context = new AudioContext(), heard = new Map();
window.seen = () => [...document.querySelectorAll("video")].map((video) => {
  if (!heard.has(video)) {
    const meter = context.createAnalyser();
    context.createMediaStreamSource(video.srcObject).connect(meter);
    heard.set(video, { meter, loudest: 0 });
  }
  return { width: video.videoWidth, time: video.currentTime, loudest: heard.get(video).loudest };
});
setInterval(() => {
  for (const one of heard.values()) {
    const wave = new Float32Array(one.meter.fftSize);
    one.meter.getFloatTimeDomainData(wave);
    one.loudest = Math.max(one.loudest, ...wave.map(Math.abs));
  }
}, 20);
0
"""


def files(page: str) -> dict[str, str]:
    """Returns the files that a tutorial says to save, by name."""
    text = (TUTORIALS / f"{page}.md").read_text()
    found = re.findall(r"[Ss]ave it as `([^`]+)`[^\n]*:\n\n```\w+\n(.*?)^```", text, re.M | re.S)
    assert found, page
    return dict(found)


class Server:
    """A tutorial's server in a folder of its own."""

    def __init__(self, language: str, folder: Path):
        self.language, self.folder = language, folder
        self.log = folder / "server.log"

    async def start(self, sfud, port: int = 0) -> "Server":
        for name, text in {**files("README"), **files(self.language)}.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace('path: "../sfud"', f'path: "{REPOSITORY}"'))
        # The package of the Python client, as `pip install clients/python` would have it.
        found = os.environ | {"PYTHONPATH": str(REPOSITORY / "clients/python")}
        found |= {"GO111MODULE": "off"}
        if command := BUILD[self.language]:
            build = await process.start(*command, output=self.log, cwd=self.folder, env=found)
            assert await build.wait() == 0, self.log.read_text()
        self.process = await process.start(
            *RUN[self.language], sfud.ipc, str(port),
            output=self.log, cwd=self.folder, env=found, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        line = await asyncio.wait_for(self.process.stdout.readline(), 20)
        self.url = line.decode().strip()
        assert self.url.startswith("http://127.0.0.1:"), self.log.read_text()
        return self


@pytest.fixture
def tutorial(loop, sfud, tmp_path):
    """Returns `await tutorial(language)`, which starts that server; it is gone after the test.
    `at`: has the socket's path, `.ipc`, if it is not sfud's."""
    started = []

    async def start(language: str, at=sfud) -> Server:
        started.append(Server(language, tmp_path))
        return await started[-1].start(at)

    yield start
    for server in started:
        loop.run_until_complete(process.kill(server.process))


async def sees(page, count: int, loud: bool = False) -> None:
    """Awaits that the page shows so many moving pictures; `loud`: all of which are heard."""
    before: list[dict] = []

    async def shown():
        nonlocal before
        now = await page.evaluate("seen()")
        moving = len(now) == len(before) == count and all(
            one["width"] > 0 and one["time"] > old["time"] and (one["loudest"] > 0.01 or not loud)
            for one, old in zip(now, before)
        )
        before = now
        return moving

    try:
        await until(shown, "", 25, every=0.3)
    except AssertionError:
        raise AssertionError(f"not {count} moving pictures but {before}") from None


async def people(ipc) -> dict[str, str]:
    """Returns the ids of those in the room by name; nobody before there is one."""
    try:
        room = await ipc.call("room.get", room="hall")
    except Refused:
        return {}
    return {one["name"]: one["participant"] for one in room["participants"]}


@pytest.mark.parametrize("language", RUN)
async def test_browsers_meet_on_the_tutorials_server(tutorial, ipc, sfud, browsers, language):
    server = await tutorial(language)
    browser = await browsers.get("Chromium")
    pages = {}

    async def enter(who: str) -> None:
        query = f"?name={quote(NAMES[who], safe='')}"
        pages[who] = await browser.open(server.url + query)

        async def there():
            return NAMES[who] in await people(ipc)

        await until(there, f"{who} is in the room", 20)
        await pages[who].evaluate(METER)

    try:
        await enter("ann")
        await enter("ben")
        for who in ("ann", "ben"):
            await sees(pages[who], 1, loud=True)

        await pages["ann"].evaluate("document.querySelector('#mute').click()")
        ids = await people(ipc)

        async def muted():
            streams = (await ipc.call("stream.list", room="hall"))["streams"]
            return [one["audio"]["enabled"] for one in streams] == [False, True]

        await until(muted, "Ann's stream is muted")
        await enter("cy")
        for who in pages:
            await sees(pages[who], 2)

        await pages.pop("cy").close()

        async def gone():
            return set(await people(ipc)) == {NAMES["ann"], NAMES["ben"]}

        await until(gone, "Cy has left with the page")
        for who in pages:
            await sees(pages[who], 1)
        assert await people(ipc) == ids

        await ipc.call("participant.drop", room="hall", participants=[ids["Ann"]])

        async def alone():
            return not await pages["ben"].evaluate("seen().length")

        await until(alone, "Ben sees nobody")
    finally:
        for page in pages.values():
            await page.close()


async def test_pages_come_back_after_a_restart(tutorial, sfud, start_sfud, browsers):
    server = await tutorial("node")
    browser = await browsers.get("Chromium")
    pages = [await browser.open(server.url) for _ in range(2)]
    try:
        for page in pages:
            await page.evaluate(METER)
        for page in pages:
            await sees(page, 1)
        await sfud.stop()
        assert await asyncio.wait_for(server.process.wait(), 10) == 1
        await server.start(await start_sfud(), int(server.url.rsplit(":")[-1].strip("/")))
        for page in pages:
            await sees(page, 1, loud=True)
    finally:
        for page in pages:
            await page.close()


class Listener:
    """An open /events without a browser."""

    def __init__(self, reply: aiohttp.ClientResponse):
        self.reply = reply

    async def next(self, event: str, never: tuple[str, ...] = ()) -> dict:
        """Returns the data of the next event of that name, before which none of `never` comes."""
        while True:
            line = await asyncio.wait_for(self.reply.content.readline(), 10)
            assert line, f"the events have ended before {event}"
            if line.startswith(b"data: "):
                message = json.loads(line.removeprefix(b"data: "))
                assert message["event"] not in never, message
                if message["event"] == event:
                    return message["data"]


@pytest.mark.parametrize("language", RUN)
async def test_the_tutorials_server_says_who_calls(tutorial, ipc, sfud, language):
    server = await tutorial(language)
    async with aiohttp.ClientSession(server.url) as http:

        async def listen(name: str, room: str = "hall") -> Listener:
            reply = await http.get("/events", params={"room": room, "name": name})
            assert reply.status == 200, await reply.text()
            assert reply.content_type == "text/event-stream"
            return Listener(reply)

        async def call(**body) -> tuple[int, dict]:
            async with http.post("/call", data=json.dumps(body)) as reply:
                return reply.status, json.loads(await reply.text())

        async def still_serves() -> None:
            asked = {"method": "subscription.set", "params": {"subscriptions": []}}
            status, reply = await call(key=other["key"], **asked)
            assert status == 200 and reply["result"]["results"] == []

        ann, eve = await listen("Ann"), await listen("Eve")
        one, other = await ann.next("joined"), await eve.next("joined")
        assert len(one["key"]) == 32 and one["key"] != other["key"]
        assert one["roomInfo"]["room"] == "hall"
        assert (await ann.next("participant.joined"))["participant"] == one["participant"]
        assert (await ann.next("participant.joined"))["participant"] == other["participant"]

        # Nobody without a key, no other methods, and nobody as somebody else.
        status, reply = await call(key="0" * 32, method="subscription.set", params={})
        assert status == 403 and "error" in reply
        for method in ("room.close", "constructor", ""):
            status, reply = await call(key=one["key"], method=method, params={})
            assert status == 403 and "error" in reply, method
        params = {"participant": one["participant"], "by": one["participant"], "room": "x"}
        status, reply = await call(
            key=other["key"], method="subscription.set", params=params | {"subscriptions": []}
        )
        assert status == 200 and reply["result"]["results"] == []
        status, reply = await call(
            key=other["key"], method="transport.offer", params=params | {"sdp": "v=1\r\n"}
        )
        assert status == 400 and reply["error"]["data"]["reason"] == "bad-sdp"
        status, reply = await call(
            key=other["key"], method="stream.update", params={"stream": "s-1", "audio": False}
        )
        assert status == 400 and reply["error"]["data"]["reason"] == "no-such-stream"

        # Messages in another form.
        for text in ("", "nonsense", "[]", "null", "{}", '{"key": 1}'):
            async with http.post("/call", data=text) as refused:
                assert refused.status in (400, 403), text
        # A line of more than 1 MiB would cost the server its connection to sfud, and what sfud
        # cannot read it answers to nobody. Others' calls go on.
        for more in HOSTILE:
            text = json.dumps({"key": one["key"], "method": "subscription.set", "params": {}})
            text = text.replace("{}", f'{{"subscriptions": [], "more": {more}}}')
            with contextlib.suppress(aiohttp.ClientError):
                async with http.post("/call", data=text, timeout=PATIENCE) as refused:
                    assert refused.status in (400, 403, 413), more[:10]
            await still_serves()
        with contextlib.suppress(aiohttp.ClientError):
            name = {"room": "hall", "name": "<" * 300_000}
            async with http.get("/events", params=name, timeout=PATIENCE) as refused:
                assert refused.status in (400, 414, 431)
        await still_serves()
        url = URL(f"{server.url}/", encoded=True)
        async with aiohttp.request("GET", url, allow_redirects=False) as odd:
            assert odd.status in (301, 400, 404)
        await still_serves()
        for room in ("not a room", "", "x" * 200):
            refused = await http.get("/events", params={"room": room, "name": "Eve"})
            assert refused.status == 400 and "error" in json.loads(await refused.text()), room
        assert (await http.get("/nothing")).status == 404

        # Rooms are apart, and events reach their audience alone: a list, all but a list, all.
        far = await listen("Far", room="attic")
        await far.next("joined")
        await ipc.call("role.change", room="hall", participant=other["participant"], role="viewer")
        asked = await eve.next("role.changeRequested")
        assert asked["participant"] == other["participant"]
        await ipc.call("pin.add", room="hall", participants=[one["participant"]])
        await eve.next("talkers.changed")
        for room in ("hall", "attic"):
            await ipc.call("room.update", room=room, custom={"where": room})
        told = await ann.next("room.updated", never=("role.changeRequested", "talkers.changed"))
        assert told["custom"] == {"where": "hall"}
        assert (await far.next("room.updated"))["custom"] == {"where": "attic"}

        # A closed connection is a leave, and the end of sfud that of the server.
        eve.reply.close()
        assert (await ann.next("participant.left"))["participant"] == other["participant"]
        status, _ = await call(key=other["key"], method="subscription.set", params={})
        assert status == 403
        await ipc.close()
        await sfud.stop()
        assert await asyncio.wait_for(server.process.wait(), 10) == 1


class Lossy:
    """A socket of sfud's at which the replies to `participant.join` are lost."""

    def __init__(self, sfud, folder: Path):
        self.sfud, self.ipc = sfud, folder / "lossy.sock"

    async def __aenter__(self) -> "Lossy":
        self.server = await asyncio.start_unix_server(self.serve, self.ipc, limit=LONGEST_LINE)
        return self

    async def __aexit__(self, *_) -> None:
        self.server.close()

    async def serve(self, asked, answers) -> None:
        replies, calls = await asyncio.open_unix_connection(self.sfud.ipc, limit=LONGEST_LINE)
        lost = set()

        async def ask():
            while line := await asked.readline():
                call = json.loads(line)
                if call["method"] == "participant.join":
                    lost.add(call["id"])
                calls.write(line)
            calls.close()

        async def answer():
            while line := await replies.readline():
                if json.loads(line).get("id") not in lost:
                    answers.write(line)
            answers.close()

        await asyncio.gather(ask(), answer())


@pytest.mark.parametrize("language", RUN)
async def test_a_join_without_a_reply_leaves_nobody_there(tutorial, ipc, sfud, tmp_path, language):
    async with Lossy(sfud, tmp_path) as lossy:
        server = await tutorial(language, lossy)
        async with aiohttp.ClientSession(server.url, timeout=PATIENCE) as http:
            asked = asyncio.ensure_future(http.get("/events?room=hall&name=Ann"))

            async def there():
                return "Ann" in await people(ipc)

            await until(there, "Ann is in the room")
            assert (await asked).status == 400

            async def gone():
                return not await people(ipc)

            await until(gone, "Ann has left")
        await process.kill(server.process)


@pytest.mark.parametrize("language", RUN)
def test_the_tutorials_server_is_short(language):
    found = {name: text for name, text in files(language).items() if "erver" in name}
    assert found
    for name, text in found.items():
        lines = text.splitlines()
        assert len(lines) < MOST_LINES and max(map(len, lines)) <= 100, name

