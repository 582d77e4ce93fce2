"""HTTP, TLS, signals: the gateway's process."""

import asyncio
import logging
import signal
import ssl
import time
from pathlib import Path
from typing import Any

from aiohttp import web

from sfud_gateway import config as configuration
from sfud_gateway.config import Address, Config
from sfud_gateway.core import Gateway
from sfud_gateway.keys import ConfigError
from sfud_gateway.metrics import Metrics
from sfud_gateway.store import Store
from sfud_gateway.viewers import Viewers
from sfud_gateway.websocket import WebSockets
from sfud_gateway.whip import LONGEST_SDP, Ingest

log = logging.getLogger("server")

FIRST_SECONDS = 10  # from the start of a connection to the end of its first request's header


def load_certificate(context: ssl.SSLContext, config: Config) -> None:
    """Loads the certificate into the context in use; a pair that does not fit changes nothing."""
    assert config.certificate and config.key
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            config.certificate, config.key
        )
        context.load_cert_chain(config.certificate, config.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{config.certificate}: {error}") from None


class Silence:
    """Ends connections that send no request: before the first one aiohttp waits for ever."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.since: dict[Any, float] = {}  # by connection
        self.heard: set[Any] = set()

    @web.middleware
    async def hear(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.heard.add(request.protocol)
        return await handler(request)

    async def watch(self, runner: web.AppRunner) -> None:
        while True:
            await asyncio.sleep(min(1, self.seconds))
            if runner.server is None:
                return
            connections, now = runner.server.connections, time.monotonic()
            self.heard.intersection_update(connections)
            self.since = {
                it: self.since.get(it, now) for it in connections if it not in self.heard
            }
            for connection, began in self.since.items():
                if now - began >= self.seconds and connection.transport:
                    connection.transport.abort()


class Server:
    def __init__(self, path: Path, config: Config):
        self.path = path
        self.metrics = Metrics()
        self.store = Store(config.state)
        self.gateway = Gateway(config, self.store, self.metrics)
        self.sockets = WebSockets(self.gateway)
        self.ingest = Ingest(self.gateway, Viewers(self.gateway))
        self.silence = Silence(min(FIRST_SECONDS, config.join_seconds))
        self.context: ssl.SSLContext | None = None
        if config.certificate:
            self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self.context.minimum_version = ssl.TLSVersion.TLSv1_2
            load_certificate(self.context, config)

    # Handlers of the service itself.

    async def healthz(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        if self.gateway.is_stopping:
            return web.Response(status=503, text="stopping\n")
        if not self.gateway.is_ready:
            return web.Response(status=503, text="sfud cannot be reached\n")
        return web.Response(text="ready\n")

    async def show_metrics(self, request: web.Request) -> web.Response:
        headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        return web.Response(body=self.metrics.text(), headers=headers)

    def public(self) -> web.Application:
        application = web.Application(client_max_size=LONGEST_SDP, middlewares=[self.silence.hear])
        application.add_routes([
            web.get("/ws", self.sockets.handle),
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            *self.ingest.routes(),
        ])
        return application

    def admin(self) -> web.Application:
        application = web.Application()
        application.add_routes([
            web.get("/healthz", self.healthz),
            web.get("/readyz", self.readyz),
            web.get("/metrics", self.show_metrics),
        ])
        return application

    # Signals.

    def reload(self) -> None:
        """Takes over the configuration file; a mistake in it changes nothing."""
        old = self.gateway.config
        try:
            new = configuration.load(self.path)
            if self.context and new.certificate:
                load_certificate(self.context, new)
        except ConfigError as error:
            log.error("the configuration is not reloaded: %s", error)
            self.metrics.reloads.labels("failed").inc()
            return
        if names := old.needs_restart(new):
            log.warning("these keys take effect with the next start: %s", ", ".join(names))
        self.gateway.config = new
        self.metrics.reloads.labels("done").inc()
        log.warning("the configuration is reloaded")

    async def listen(
        self, application: web.Application, address: Address, tls: ssl.SSLContext | None
    ) -> tuple[web.AppRunner, str]:
        runner = web.AppRunner(application, access_log=None)  # paths have secrets
        await runner.setup()
        site = web.TCPSite(
            runner, address.host, address.port, ssl_context=tls, shutdown_timeout=2, backlog=1024
        )
        await site.start()
        host, port = runner.addresses[0][:2]
        host = f"[{host}]" if ":" in host else host
        return runner, f"{'https' if tls else 'http'}://{host}:{port}"

    async def run(self) -> None:
        config, loop = self.gateway.config, asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        core = asyncio.create_task(self.gateway.run())
        runners = []
        watch: asyncio.Task | None = None
        try:
            runner, url = await self.listen(self.public(), config.listen, self.context)
            runners.append(runner)
            watch = asyncio.create_task(self.silence.watch(runner))
            ready = f"ready {url}"
            if config.admin:
                runner, url = await self.listen(self.admin(), config.admin, None)
                runners.append(runner)
                ready += f" admin={url}"
            print(ready, flush=True)
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([stopping, core], return_when=asyncio.FIRST_COMPLETED)
            if core.done():
                core.result()  # its failure is the process's
        finally:
            self.gateway.is_stopping = True
            if watch:
                watch.cancel()
            await self.sockets.close()
            for runner in runners:
                await runner.cleanup()
            core.cancel()
            await asyncio.gather(core, return_exceptions=True)
            self.store.close()
