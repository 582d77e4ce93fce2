"""Pages that make calls with clients/js, served by a copy of the example server."""

import json
import os
import shutil
import tempfile
from pathlib import Path

from harness import demo
from harness.media import hue_distance, hue_of
from harness.process import until
from harness.sfud import REPOSITORY

LAB = Path(__file__).with_name("lab.js")
BLANK = (
    '<!doctype html><meta charset="utf-8"><title>lab</title>'
    '<script type="module" src="lab.js"></script>'
)

#: Whether the tests that one browser suffices for run in Firefox as well.
ALL_STACKS = bool(os.environ.get("SFUD_JS_CLIENT_ALL"))


class Copy:
    """A copy of the example and the package, into which a test may put files of its own."""

    def __init__(self):
        self.root = Path(tempfile.mkdtemp(prefix="sfud-js-"))
        for name in ("examples/signalling", "clients"):
            shutil.copytree(REPOSITORY / name, self.root / name)
        self.page = self.root / "examples/signalling/page"
        (self.page / "lab.js").write_text(LAB.read_text())
        (self.page / "lab.html").write_text(BLANK)

    @property
    def server(self) -> Path:
        return self.root / "examples/signalling/server.py"

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)


class Lab:
    """A page with several calls, each by the name of its participant."""

    def __init__(self, page, stack: str, room: str):
        self.page, self.stack, self.room = page, stack, room

    @classmethod
    async def open(cls, browser, site: demo.Site, stack: str, room: str) -> "Lab":
        lab = cls(await browser.open(site.url + "lab.html"), stack, room)

        async def there():
            return await lab.page.evaluate("typeof window.lab === 'object'")

        await until(there, "the page of calls", 20)
        return lab

    async def run(self, expression: str):
        """Returns the value of an expression with `lab`, and the calls by name in `calls`."""
        return await self.page.evaluate(f"(async ({{calls}}) => ({expression}))(lab)")

    async def enter(self, name: str, script: str = "{}", room: str | None = None) -> str:
        """Joins; the script is an object of options."""
        return await self.run(f"await lab.enter('{name}', '{room or self.room}', {script})")

    async def leave(self, *names: str) -> None:
        await self.run(f"await lab.leave(...{json.dumps(names)})")

    async def until(self, expression: str, what: str = "", seconds: float = 15):
        """Awaits that the expression is true, and returns its value."""

        async def there():
            return await self.run(expression)

        try:
            return await until(there, what or expression, seconds)
        except AssertionError as error:
            log = await self.run("lab.log.slice(-8)")
            raise AssertionError(f"{error}; the calls said: {log}") from None

    async def sees(self, who: str, whom: str, hue: float | None = None, source=None, **wanted):
        """Awaits a moving picture, of this hue and size."""
        first, seen = None, None

        async def there():
            nonlocal first, seen
            seen = await self.run(f"lab.sees('{who}', '{whom}', {json.dumps(source)})")
            fits = seen and all(seen[key] == value for key, value in wanted.items())
            if not fits or (hue is not None and hue_distance(hue_of(*seen["rgb"]), hue) > 25):
                return None
            first = seen["time"] if first is None or seen["time"] < first else first
            return seen if seen["time"] > first + 0.2 else None

        try:
            return await until(there, "", 20)
        except AssertionError:
            log = await self.run("lab.log.slice(-8)")
            raise AssertionError(
                f"{who} does not see {whom} ({hue}, {wanted}) but {seen}; the calls said: {log}"
            ) from None
