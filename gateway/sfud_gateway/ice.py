"""ICE servers for clients, with time-limited TURN credentials.

The scheme is that of draft-uberti-behave-turn-rest-00, which coturn calls `use-auth-secret`: the
username is the time of expiry and a name, the password its HMAC-SHA1 under the shared secret.
"""

import base64
import hashlib
import hmac
import time
from typing import Any

from sfud_gateway.config import Config


def credentials(secret: bytes, name: str, seconds: int) -> tuple[str, str]:
    username = f"{int(time.time()) + seconds}:{name}"
    mac = hmac.new(secret, username.encode(), hashlib.sha1).digest()
    return username, base64.b64encode(mac).decode()


def servers(config: Config, name: str) -> list[dict[str, Any]]:
    """Returns `RTCIceServer` dictionaries for a participant."""
    found: list[dict[str, Any]] = [{"urls": list(config.stun)}] if config.stun else []
    for turn in config.turn:
        username, credential = credentials(turn.secret, name, turn.seconds)
        found.append({"urls": list(turn.urls), "username": username, "credential": credential})
    return found


def links(config: Config, name: str) -> list[str]:
    """Returns the same as values of `Link` headers (RFC 9725 §4.6)."""
    found = []
    for server in servers(config, name):
        for url in server["urls"]:
            link = f'<{url}>; rel="ice-server"'
            if "username" in server:
                link += f'; username="{server["username"]}"'
                link += f'; credential="{server["credential"]}"; credential-type="password"'
            found.append(link)
    return found
