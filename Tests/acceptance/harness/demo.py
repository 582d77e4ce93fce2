"""The demo page of examples/signalling, operated as a person does."""

import asyncio
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlencode

from harness import process
from harness.media import hue_of
from harness.process import until
from harness.sfud import REPOSITORY

SERVER = REPOSITORY / "examples/signalling/server.py"
#: Finds faults in pages that people with screen readers or keyboards would stumble over.
AXE = Path(str(resources.files("axe_playwright_python") / "axe.min.js"))
# Debian's Python, as for anybody who runs the demo.
PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Site:
    """A signalling server: the page's address, and the moderator's link."""

    process: asyncio.subprocess.Process
    url: str
    moderator: str

    @property
    def socket(self) -> str:
        return self.url.replace("http", "ws", 1) + "ws"

    @property
    def invitation(self) -> str:
        """The moderator's invitation."""
        return self.moderator.partition("#")[2]


async def serve(ipc: str, directory: Path, *flags: str, server: Path = SERVER) -> Site:
    """Starts the signalling server."""
    log = directory / "signalling.log"
    child = await process.start(
        PYTHON, server, "--port", "0", "--ipc", ipc, *flags,
        output=log, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    line = (await asyncio.wait_for(child.stdout.readline(), 10)).decode()
    assert line.startswith("ready http://"), line + log.read_text()
    return Site(child, *line.split()[1:])


class Tab:
    """One participant's page."""

    def __init__(self, page, name: str):
        self.page, self.name = page, name

    @classmethod
    async def open(
        cls, browser, url: str, name: str, invitation: str = "", **parameters
    ) -> "Tab":
        """Opens the page and joins at once; `parameters` are the page's own."""
        query = urlencode({"room": "demo", "name": name, "auto": 1} | parameters)
        return cls(await browser.open(f"{url}?{query}#{invitation}"), name)

    async def demo(self, expression: str):
        return await self.page.evaluate(f"window.sfudDemo.{expression}")

    async def tiles(self) -> list[dict]:
        return await self.demo("tiles()")

    async def text(self) -> str:
        """Returns all visible text of the page."""
        return await self.page.evaluate("document.body.innerText")

    async def state(self, wanted: str, seconds: float = 15) -> None:
        """Awaits that state of the call."""

        async def there():
            # In one step: between two, a page that is loaded anew is another one.
            return await self.page.evaluate("window.sfudDemo?.state") == wanted

        try:
            await until(there, f"{self.name} is {wanted}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; the page says: {await self.text()}") from None

    async def joined(self) -> None:
        await self.state("joined")

    async def reload(self) -> None:
        """Loads the page again, as F5 does, and awaits that it has joined again."""
        await self.page.evaluate("window.isFormer = true, location.reload()")

        async def again():
            state = await self.page.evaluate("!window.isFormer && window.sfudDemo?.state")
            return state == "joined"

        await until(again, f"{self.name} has loaded the page again", 15)

    async def reads(self, text: str, seconds: float = 10) -> None:
        """Awaits these words on the page."""

        async def there():
            return text in await self.text()

        try:
            await until(there, "", seconds)
        except AssertionError:
            raise AssertionError(
                f"{self.name} does not read {text!r} within {seconds} s but: {await self.text()}"
            ) from None

    async def click(self, label: str, seconds: float = 10) -> None:
        """Clicks the button of this name, once it is visible."""
        find = (
            "[...document.querySelectorAll('button')].find((it) => it.checkVisibility()"
            " && !it.disabled && (it.getAttribute('aria-label') ?? it.textContent.trim()) === "
            f"{json.dumps(label)})"
        )

        async def clicked():
            return await self.page.evaluate(f"(() => {{ const it = {find}; it?.click();"
                                            " return Boolean(it); })()")  # fmt: skip

        try:
            await until(clicked, "", seconds)
        except AssertionError:
            raise AssertionError(
                f"{self.name} has no button {label!r} within {seconds} s: {await self.text()}"
            ) from None

    async def faults(self) -> list[str]:
        """Returns the serious and critical faults that axe-core finds in what the page shows."""
        if not await self.page.evaluate("typeof window.axe === 'object'"):
            await self.page.evaluate(AXE.read_text() + ";0")
        found = await self.page.evaluate("axe.run({resultTypes: ['violations']})")
        assert found["passes"], "axe-core has looked at nothing"
        return [
            f"{fault['impact']} {fault['id']}: {node['target']} {node['failureSummary']}"
            for fault in found["violations"] if fault["impact"] in ("serious", "critical")
            for node in fault["nodes"]
        ]  # fmt: skip

    async def focus(self) -> str:
        """Returns the name of what has the focus."""
        return await self.page.evaluate(
            "(() => { const it = document.activeElement;"
            " return it.getAttribute('aria-label') ?? it.labels?.[0]?.textContent.trim()"
            " ?? it.textContent.trim(); })()"
        )

    async def press(self, key: str) -> None:
        options = json.dumps({"key": key, "bubbles": True})
        await self.page.evaluate(
            f"document.body.dispatchEvent(new KeyboardEvent('keydown', {options}))"
        )

    async def received(self, kind: str) -> dict:
        """Returns the counters of this kind, summed over all streams that the page receives."""
        sample = await self.demo("stats()")
        entries = [it for it in sample["received"] if it["kind"] == kind] if sample else []
        keys = ("packetsReceived", "framesDecoded", "audioEnergy")
        return {key: sum(it[key] for it in entries) for key in keys}

    async def tile(self, name: str, seconds: float = 15, **wanted) -> dict:
        """Awaits a tile of that person with these properties."""
        tiles: list[dict] = []

        async def found():
            tiles[:] = await self.tiles()
            return next(
                (
                    tile for tile in tiles
                    if tile["name"].startswith(name)
                    and all(tile[key] == value for key, value in wanted.items())
                ),
                None,
            )  # fmt: skip

        try:
            return await until(found, "", seconds)
        except AssertionError:
            raise AssertionError(
                f"{self.name} has no tile of {name} with {wanted} within {seconds} s: "
                f"{json.dumps(tiles)}"
            ) from None

    async def on_stage(self, *names: str, seconds: float = 15) -> list[dict]:
        """Awaits exactly these tiles in this order, the first of several large."""
        tiles: list[dict] = []
        large = list(names[:1]) if len(names) > 1 else []

        async def there():
            tiles[:] = sorted(await self.tiles(), key=lambda it: it["place"])
            return [it["name"] for it in tiles] == list(names) and large == [
                it["name"] for it in tiles if it["large"]
            ]

        try:
            await until(there, "", seconds)
        except AssertionError:
            raise AssertionError(
                f"{self.name} does not see {names} within {seconds} s: {json.dumps(tiles)}"
            ) from None
        return tiles

    async def hue(self, name: str) -> float:
        """Returns the hue of the picture on somebody's tile, in degrees; -1 for one without
        color."""
        find = (
            "[...document.querySelectorAll('.tile')].find((it) =>"
            f" it.querySelector('.tile-name').textContent === {json.dumps(name)})"
        )
        pixels = await self.page.evaluate(
            "(() => { const context = new OffscreenCanvas(16, 16).getContext('2d');"
            f" context.drawImage({find}.querySelector('video'), 0, 0, 16, 16);"
            " return [...context.getImageData(0, 0, 16, 10).data]; })()"
        )
        return hue_of(*(sum(pixels[part::4]) / (len(pixels) // 4) for part in range(3)))

    async def watches(self, name: str, **wanted) -> dict:
        """Awaits that person's picture, and that it plays for a second."""
        first = None

        async def playing():
            nonlocal first
            tile = await self.tile(name, **wanted)
            first = first or (tile if tile["width"] > 0 else None)
            return tile if first and tile["time"] > first["time"] + 1 else None

        return await until(playing, f"{self.name} sees {name} move ({wanted})", 15)
