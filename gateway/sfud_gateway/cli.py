"""The command line of sfud-gateway."""

import argparse
import asyncio
import logging
import sqlite3
import sys
from pathlib import Path

from sfud_gateway import __version__, config
from sfud_gateway.keys import ConfigError
from sfud_gateway.server import Server

EX_CONFIG, EX_OSERR = 78, 71


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sfud-gateway",
        description="Lets browsers, WHIP publishers and WHEP viewers into the rooms of sfud: join "
        "tokens, signalling by WebSocket, webhooks, TURN credentials.",
        epilog="SIGHUP reloads the configuration, SIGTERM stops; participants stay in their rooms "
        "meanwhile. Exit status: 78 for a mistake in the configuration, 71 for an address or a "
        "file that cannot be used.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--config", type=Path, default=Path("/etc/sfud/gateway.toml"), metavar="FILE",
        help="the configuration, in TOML")  # fmt: skip
    add("--check-config", action="store_true", help="check the configuration and exit")
    add("--log-level", default="info", choices=["debug", "info", "warning", "error"],
        help="least severity of messages on standard error")  # fmt: skip
    add("--version", action="version", version=f"sfud-gateway {__version__}")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    logging.basicConfig(
        level=options.log_level.upper(), format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        loaded = config.load(options.config)
        if options.check_config:
            return 0
        server = Server(options.config, loaded)
    except ConfigError as error:
        print(error, file=sys.stderr)
        return EX_CONFIG
    except (OSError, ValueError, sqlite3.Error) as error:
        print(f"{options.config}: state: {error}", file=sys.stderr)
        return EX_OSERR
    try:
        asyncio.run(server.run())
    except OSError as error:
        print(f"cannot listen: {error.strerror or error}", file=sys.stderr)
        return EX_OSERR
    return 0


if __name__ == "__main__":
    sys.exit(main())
