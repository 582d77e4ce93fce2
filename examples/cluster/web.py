"""The page's server: what it draws, and what its buttons do. It is for this machine alone."""

import logging
import sys
from urllib.parse import urlsplit

from aiohttp import web

from launch import SIGNALLING, CannotStart, Cluster
from picture import Pictures
from sfud_ipc import Refused

sys.path.append(str(SIGNALLING))
from server import HEADERS, PAGE, names_this_machine  # noqa: E402  (the demo's)

HERE = SIGNALLING.parent / "cluster" / "page"
HOST = "127.0.0.1"
ACTIONS = {"nats": ("stop", "start")}
NODE_ACTIONS = ("stop", "start", "drain", "undrain")

log = logging.getLogger("cluster")


def check(request: web.Request) -> None:
    """Refuses requests that pages of other sites make, in the browser of whoever runs this."""
    # A name that resolves to this machine may be another site's (DNS rebinding).
    if not names_this_machine(request.host):
        raise web.HTTPForbidden(text="this page is for this machine")
    # Browsers send these with each POST; curl does not, and nobody else's page is at work then.
    origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
    if request.method == "POST" and (
        (origin is not None and urlsplit(origin).netloc != request.host)
        or site not in (None, "same-origin")
    ):
        raise web.HTTPForbidden(text="this page is not ours")


class Page:
    """The web server; `listen` and `close`."""

    def __init__(self, cluster: Cluster):
        self.cluster, self.pictures = cluster, Pictures(cluster)
        application = web.Application(middlewares=[guard])
        application.on_response_prepare.append(add_headers)
        router = application.router
        router.add_get("/", lambda request: web.FileResponse(HERE / "index.html"))
        router.add_get("/picture", self._picture)
        router.add_post("/{name}/{action}", self._act)
        router.add_static("/demo", PAGE)
        router.add_static("/", HERE)
        self._runner = web.AppRunner(application, access_log=None)

    async def listen(self, port: int) -> str:
        """Returns the page's address."""
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, HOST, port, shutdown_timeout=1).start()
        except OSError as error:
            await self._runner.cleanup()
            raise CannotStart(
                f"The page cannot have port {port} ({error.strerror}). Choose another one:\n\n"
                f"    PORT={port + 1 if port < 65_535 else 8_080} examples/cluster/run"
            ) from None
        return f"http://{HOST}:{self._runner.addresses[0][1]}/"

    async def close(self) -> None:
        await self._runner.cleanup()

    async def _picture(self, request: web.Request) -> web.Response:
        return web.json_response(await self.pictures.latest())

    async def _act(self, request: web.Request) -> web.Response:
        name, action = request.match_info["name"], request.match_info["action"]
        known = NODE_ACTIONS if name in self.cluster.nodes else ACTIONS.get(name, ())
        if action not in known:
            raise web.HTTPNotFound(text="there is no such button")
        try:
            await self.cluster.act(name, action)
        except (CannotStart, Refused) as error:
            raise web.HTTPConflict(text=str(error)) from None
        return web.json_response({})


@web.middleware
async def guard(request: web.Request, handler) -> web.StreamResponse:
    check(request)
    return await handler(request)


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)
