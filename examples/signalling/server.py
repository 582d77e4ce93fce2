#!/usr/bin/env python3
"""The reference signalling server: browsers on one side (WebSocket), sfud on the other (IPC).

It keeps no media state of its own. A browser's request becomes an IPC call on that browser's own
participant, and sfud's events go to the participants of their `audience`. README.md beside this
file has the messages.
"""

import argparse
import asyncio
import ipaddress
import logging
import secrets
import signal
import ssl
import sys
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import WSCloseCode, web

from browser import Browser
from hub import Hub
from invitations import Invitations, secret_of
from policy import roles
from sfud_ipc import default_path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "page"
CLIENT = HERE.parents[1] / "clients/js/src"  # the package that the page imports
LONGEST_MESSAGE = 300_000  # bytes; sfud takes an SDP of at most 256 kB
HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; connect-src 'self' ws: wss:; "
    "img-src 'self' data:; media-src 'self' blob:; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def names_this_machine(host: str) -> bool:
    """Whether a Host header names this machine.

    A name that resolves to it does not count: the name's owner can put a page of their own there
    (DNS rebinding).
    """
    return is_loopback(urlsplit(f"//{host}").hostname or "")


async def websocket(hub: Hub, is_local: bool, request: web.Request) -> web.StreamResponse:
    """Serves one browser; `is_local` says that the server listens on loopback alone."""
    if hub.is_open and is_local and not names_this_machine(request.host):
        raise web.HTTPForbidden(text="this demo is for this machine")
    origin = request.headers.get("Origin")
    if origin and urlsplit(origin).netloc != request.host:
        raise web.HTTPForbidden(text="this page is not ours")
    socket = web.WebSocketResponse(max_msg_size=LONGEST_MESSAGE, heartbeat=10)
    await socket.prepare(request)
    await Browser(hub, socket, request.transport).run()
    return socket


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(HEADERS)


def hub_of(options: argparse.Namespace) -> Hub:
    rights = ["record"] * options.allow_recording + ["stream"] * options.allow_streaming
    settings = {"roles": roles(rights), "maxParticipants": options.max_participants}
    if options.disconnected_seconds:
        settings["disconnectedSeconds"] = options.disconnected_seconds
    hub = Hub(options.ipc, settings, options.invitations, options.is_open)
    starts = {"record": "recording.start", "stream": "streaming.start"}
    hub.forbidden = {method for right, method in starts.items() if right not in rights}
    hub.streaming_hosts = frozenset(options.streaming_hosts)
    hub.elsewhere = options.elsewhere
    return hub


async def serve(options: argparse.Namespace) -> int:
    hub, is_local = hub_of(options), is_loopback(options.host)
    application = web.Application()
    application.on_response_prepare.append(add_headers)
    application.router.add_get("/", lambda request: web.FileResponse(PAGE / "index.html"))
    application.router.add_get("/ws", lambda request: websocket(hub, is_local, request))
    application.router.add_static("/client", CLIENT)
    application.router.add_static("/", PAGE)
    tls = None
    if options.cert:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(options.cert, options.key)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    ipc = asyncio.create_task(hub.ipc.run())
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    site = web.TCPSite(runner, options.host, options.port, ssl_context=tls, shutdown_timeout=1)
    await site.start()
    host, port = runner.addresses[0][:2]
    host = f"[{host}]" if ":" in host else host
    url = f"{'https' if tls else 'http'}://{host}:{port}/"
    # Anybody with the second address moderates; a fragment is in no request and in no referrer.
    print(f"ready {url} {url}#{options.invitations.token('moderator')}", flush=True)
    await stop.wait()
    leaving = [asyncio.ensure_future(hub.remove(session)) for session in hub.everybody()]
    if leaving:
        await asyncio.wait(leaving, timeout=2)
    for browser in list(hub.browsers):
        await browser.socket.close(code=WSCloseCode.SERVICE_RESTART)
    ipc.cancel()
    await runner.cleanup()
    return 0


def other_server(text: str) -> dict[str, str]:
    name, _, url = text.partition("=")
    if urlsplit(url).scheme not in ("http", "https"):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=URL")
    return {"name": name, "url": url}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n")[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on")
    add("--port", type=int, default=8080, help="port to listen on; 0 picks one")
    add("--ipc", default=default_path(), help="sfud's socket")
    add("--cert", help="TLS certificate file; browsers give cameras and microphones to localhost "
        "and to HTTPS pages only")  # fmt: skip
    add("--key", help="the certificate's private key file")
    add("--max-participants", type=int, help="most people in one room")
    add("--secret-file", help="signs invitations that outlive this process; invitations.py makes "
        "them. Without it the secret is random")  # fmt: skip
    add("--invited-only", action=argparse.BooleanOptionalAction, help="let in who has an "
        "invitation and nobody else; off by default on loopback without --secret-file")  # fmt: skip
    add("--allow-recording", action="store_true", help="moderators may record")
    add("--allow-streaming", action="store_true",
        help="moderators may stream live, to public addresses")  # fmt: skip
    add("--streaming-hosts", type=lambda text: text.lower().split(","), default=[],
        metavar="HOST,…", help="stream to these hosts alone, whatever they are")  # fmt: skip
    add("--disconnected-seconds", type=int, metavar="SECONDS", help="who is disconnected for as "
        "long leaves the room; sfud's default is 120")  # fmt: skip
    add("--elsewhere", type=other_server, action="append", default=[], metavar="NAME=URL",
        help="a server at another node of the cluster, where a page that has lost this one can "
        "go on; may be repeated")  # fmt: skip
    add("--log-level", default="info", choices=["debug", "info", "warning"])
    return parser.parse_args()


def main() -> int:
    options = arguments()
    level = options.log_level.upper()
    logging.basicConfig(level=level, format="%(levelname)s %(name)s: %(message)s")
    secret = secret_of(options.secret_file) if options.secret_file else secrets.token_bytes(32)
    options.invitations = Invitations(secret)
    local = is_loopback(options.host) and not options.secret_file
    options.is_open = local if options.invited_only is None else not options.invited_only
    try:
        return asyncio.run(serve(options))
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error.strerror}", file=sys.stderr)
        return 71


if __name__ == "__main__":
    sys.exit(main())
