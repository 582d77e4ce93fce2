"""Firefox, driven over WebDriver BiDi."""

import asyncio
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

from harness import process
from harness.chromium import PAGE, PageError
from harness.peer import PagePeer

PREFERENCES = {
    "media.navigator.streams.fake": True,
    "media.navigator.permission.disabled": True,
    "media.peerconnection.ice.loopback": True,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    "media.autoplay.block-webaudio": False,
    # Makes Web Audio run although there is no sound device.
    "media.cubeb.force_mock_context": True,
    # A codec plugin cannot be fetched here, and waiting for it delays the first offer.
    "media.gmp-manager.updateEnabled": False,
    # The picture is read back from a canvas.
    "privacy.resistFingerprinting": False,
    "privacy.fingerprintingProtection": False,
    "dom.min_background_timeout_value": 4,
    "dom.timeout.enable_budget_timer_throttling": False,
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "remote.active-protocols": 1,
}


class Firefox:
    """A browser process with a fresh profile; its tabs are peers."""

    def __init__(self, directory: Path, process_: asyncio.subprocess.Process):
        self._directory = directory
        self.process = process_
        self.log = directory / "firefox.log"
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future] = {}

    @classmethod
    async def start(cls) -> "Firefox":
        binary = shutil.which("firefox-esr") or shutil.which("firefox")
        assert binary, "Firefox is not installed (Debian package firefox-esr)"
        directory = Path(tempfile.mkdtemp(prefix="sfud-firefox-"))
        preferences = "".join(
            f"user_pref({json.dumps(name)}, {json.dumps(value)});\n"
            for name, value in PREFERENCES.items()
        )
        (directory / "user.js").write_text(preferences)
        child = await process.start(
            binary,
            "--headless",
            "--no-remote",
            "--profile",
            directory,
            "--remote-debugging-port",
            "0",
            output=directory / "firefox.log",
        )
        browser = cls(directory, child)
        try:
            await browser._connect()
        except BaseException:
            await browser.close()
            raise
        return browser

    async def _connect(self) -> None:
        async def port():
            file = self._directory / "WebDriverBiDiServer.json"
            assert self.process.returncode is None, self.log.read_text()
            try:
                return json.loads(file.read_text())["ws_port"]
            except (FileNotFoundError, ValueError):
                return None

        number = await process.until(port, "Firefox' debugging port", 30)
        self._session = aiohttp.ClientSession()
        self._socket = await self._session.ws_connect(
            f"ws://127.0.0.1:{number}/session", max_msg_size=0
        )
        self._reader = asyncio.create_task(self._read())
        await self.command("session.new", capabilities={})

    async def _read(self) -> None:
        async for message in self._socket:
            reply = json.loads(message.data)
            future = self._waiting.pop(reply.get("id"), None)
            if future and not future.done():
                future.set_result(reply)

    async def command(self, method: str, **params: Any) -> dict:
        number = next(self._ids)
        self._waiting[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": params})
        reply = await asyncio.wait_for(self._waiting[number], 30)
        if reply["type"] == "error":
            raise PageError(f"{method}: {reply['error']}: {reply['message']}")
        return reply["result"]

    async def open(self, url: str = "about:blank") -> "Page":
        """Opens a page in a window of its own: a tab in the background shows no frames."""
        context = (await self.command("browsingContext.create", type="window"))["context"]
        if url != "about:blank":
            await self.command("browsingContext.navigate", context=context, url=url, wait="complete")
        return Page(self, context)

    async def peer(self) -> "FirefoxPeer":
        peer = FirefoxPeer(await self.open())
        await peer.evaluate(f"(() => {{ {PAGE.read_text()}; return 0; }})()")
        return peer

    async def close(self) -> None:
        await process.kill(self.process)
        if hasattr(self, "_session"):
            self._reader.cancel()
            await self._session.close()
        shutil.rmtree(self._directory, ignore_errors=True)


class Page:
    """A page of a Firefox."""

    def __init__(self, browser: Firefox, context: str):
        self._browser, self._context = browser, context

    async def evaluate(self, expression: str) -> Any:
        """Returns the JSON value of an expression, awaited if it is a promise."""
        # As a JSON string, since BiDi serializes values in another format.
        reply = await self._browser.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression}) ?? null))()",
            target={"context": self._context},
            awaitPromise=True,
            userActivation=True,
        )
        if reply["type"] == "exception":
            raise PageError(reply["exceptionDetails"]["text"])
        return json.loads(reply["result"]["value"])

    async def close(self) -> None:
        await self._browser.command("browsingContext.close", context=self._context)


class FirefoxPeer(PagePeer):
    stack = "Firefox"
    # Its H.264 is a plugin fetched at run time.
    codecs = ("VP8", "VP9", "AV1")

    def __init__(self, page: Page):
        self.page = page

    async def evaluate(self, expression):
        return await self.page.evaluate(expression)

    async def close(self):
        await self.call("close")
        await self.page.close()
