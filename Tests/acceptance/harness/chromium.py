"""Chromium, driven over the DevTools protocol."""

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

from harness import process
from harness.peer import PagePeer

#: Time for a command, in seconds: making a key of 8,192 bits takes half a minute on a slow machine.
COMMAND_SECONDS = 60

PAGE = Path(__file__).with_name("page.js")

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--disable-dev-shm-usage",
    # Pages in the background must encode and decode at full rate as well.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--auto-select-desktop-capture-source=Entire screen",
    # Real host candidates, 127.0.0.1 among them.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--allow-loopback-in-peer-connection",
    "--remote-debugging-port=0",
]


class PageError(AssertionError):
    """An exception in a page."""


class Chromium:
    """A browser process with a fresh profile; its pages are peers."""

    def __init__(self, directory: Path, process_: asyncio.subprocess.Process):
        self._directory = directory
        self.process = process_
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}
        self.log = directory / "chromium.log"

    @classmethod
    async def start(cls, *flags: str) -> "Chromium":
        binary = shutil.which("chromium") or shutil.which("google-chrome")
        assert binary, "Chromium is not installed (Debian package chromium)"
        directory = Path(tempfile.mkdtemp(prefix="sfud-chromium-"))
        child = await process.start(
            binary,
            *FLAGS,
            *flags,
            f"--user-data-dir={directory}",
            "about:blank",
            output=directory / "chromium.log",
        )
        browser = cls(directory, child)
        try:
            await browser._connect()
        except BaseException:
            await browser.close()
            raise
        return browser

    async def _connect(self) -> None:
        async def address():
            file = self._directory / "DevToolsActivePort"
            lines = file.read_text().splitlines() if file.exists() else []
            assert self.process.returncode is None, self.log.read_text()
            return lines if len(lines) == 2 else None

        port, path = await process.until(address, "Chromium's debugging port", 30)
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(
            f"ws://127.0.0.1:{port}{path}", max_msg_size=0
        )
        self._reader = asyncio.create_task(self._read())
        # Without it a page gathers only the default route's address, and not if it is loopback.
        await self.command("Browser.grantPermissions", permissions=["audioCapture", "videoCapture"])

    async def _read(self) -> None:
        async for message in self._socket:
            reply = json.loads(message.data)
            future = self._waiting.pop(reply.get("id"), None)
            if future and not future.done():
                future.set_result(reply)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(PageError("Chromium has gone"))

    async def command(self, method: str, session: str | None = None, **params: Any) -> dict:
        """Returns one DevTools command's result; for a page where `session` names one."""
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        await self._socket.send_json(message)
        reply = await asyncio.wait_for(self._waiting[number], COMMAND_SECONDS)
        if "error" in reply:
            raise PageError(f"{method}: {reply['error']}")
        return reply["result"]

    async def open(self, url: str = "about:blank") -> "Page":
        """Opens a page in a window of its own, so that it counts as visible."""
        target = (await self.command("Target.createTarget", url=url, newWindow=True))["targetId"]
        attached = await self.command("Target.attachToTarget", targetId=target, flatten=True)
        return Page(self, target, attached["sessionId"])

    async def peer(self) -> "ChromiumPeer":
        page = await self.open()
        await page.evaluate(PAGE.read_text() + ";0")
        return ChromiumPeer(page)

    async def kill(self) -> None:
        """Sends SIGKILL, without a chance to say goodbye."""
        await process.kill(self.process)

    async def close(self) -> None:
        await process.kill(self.process)
        if hasattr(self, "_session"):
            self._reader.cancel()
            await self._session.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Page:
    """A page of a Chromium."""

    def __init__(self, browser: Chromium, target: str, session: str):
        self._browser, self._target, self._session = browser, target, session

    async def evaluate(self, expression: str) -> Any:
        """Returns the JSON value of an expression, awaited if it is a promise."""
        reply = await self._browser.command(
            "Runtime.evaluate",
            self._session,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if details := reply.get("exceptionDetails"):
            raise PageError(details.get("exception", {}).get("description") or details["text"])
        return reply["result"].get("value")

    async def command(self, method: str, **params: Any) -> dict:
        return await self._browser.command(method, self._session, **params)

    async def resize(self, width: int, height: int) -> None:
        """Gives the page this size in CSS pixels."""
        await self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    async def press(self, key: str) -> None:
        """Presses and releases a key where the focus is: a character, or a key's name."""
        text = {"text": key} if len(key) == 1 else {"Enter": {"text": "\r"}}.get(key, {})
        code = {"Tab": 9, "Enter": 13, "Escape": 27, "PageUp": 33, "PageDown": 34}.get(key, 0)
        named = {"key": key, "windowsVirtualKeyCode": code}
        await self.command("Input.dispatchKeyEvent", type="keyDown", **named, **text)
        await self.command("Input.dispatchKeyEvent", type="keyUp", **named)

    async def picture(self, path: Path) -> None:
        """Writes what the page shows as a PNG."""
        shot = await self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    async def close(self) -> None:
        await self._browser.command("Target.closeTarget", targetId=self._target)


class ChromiumPeer(PagePeer):
    stack = "Chromium"
    codecs = ("VP8", "VP9", "H264", "AV1")

    def __init__(self, page: Page):
        self.page = page

    async def evaluate(self, expression):
        return await self.page.evaluate(expression)

    async def close(self):
        await self.call("close")
        await self.page.close()
