#!/usr/bin/env python3
"""Invitations: tokens that let somebody join a room in a role until a time.

The server signs them and need not store them: `BASE64URL(JSON) "." BASE64URL(HMAC-SHA256 of that
text)`. Anybody with the token may use it, so it belongs into the fragment of a link
(`https://host/?room=standup#TOKEN`), which browsers never send.

    ./invitations.py --secret-file secret --room standup --role viewer --name Ann --hours 8
"""

import argparse
import base64
import hashlib
import hmac
import json
import sys
import time
from pathlib import Path

from sfud_ipc import Refused

ROLES = ("moderator", "participant", "viewer")
SHORTEST_SECRET = 16  # bytes
HOURS = 24
# Distinguishes these signatures from others made with the same secret.
PURPOSE = b"sfud signalling invitation 1\n"


class Invitations:
    """Makes and reads tokens with one secret."""

    def __init__(self, secret: bytes):
        self._secret = secret

    def token(
        self, role: str, room: str | None = None, name: str | None = None, hours: float = HOURS
    ) -> str:
        content = {"role": role, "expires": int(time.time() + hours * 3_600)}
        content |= {"room": room} if room else {}
        content |= {"name": name} if name else {}
        text = _encoded(json.dumps(content, separators=(",", ":")).encode())
        return f"{text}.{_encoded(self._signature(text))}"

    def read(self, token: str, room: str) -> tuple[str, str | None]:
        """Returns the role in `room`, and the name, if it is no free choice.

        Raises `Refused` for a token that is invalid, expired, or for another room.
        """
        text, _, signature = token.partition(".")
        if not hmac.compare_digest(
            _encoded(self._signature(text)).encode(), signature.encode()
        ):
            raise Refused("bad-invitation", "this invitation is not of this server")
        content = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        if content["expires"] <= time.time():
            raise Refused("invitation-expired", "this invitation has expired")
        if content.get("room", room) != room:
            raise Refused("other-room", "this invitation is for another room")
        return content["role"], content.get("name")

    def _signature(self, text: str) -> bytes:
        return hmac.new(self._secret, PURPOSE + text.encode(), hashlib.sha256).digest()


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def secret_of(path: str) -> bytes:
    """Returns the secret in a file; ends the process if there is none, or a short one."""
    try:
        secret = Path(path).read_bytes().strip()
        if len(secret) < SHORTEST_SECRET:
            raise ValueError(f"{path}: a secret has at least {SHORTEST_SECRET} bytes")
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        sys.exit(66)
    return secret


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Prints an invitation.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--secret-file", required=True, help="the server's --secret-file")
    parser.add_argument("--room", help="the only room; any, if left out")
    parser.add_argument("--role", default="participant", choices=ROLES)
    parser.add_argument("--name", help="the guest's name; anybody's choice, if left out")
    parser.add_argument("--hours", type=float, default=HOURS, help="how long it holds")
    options = parser.parse_args()
    invitations = Invitations(secret_of(options.secret_file))
    print(invitations.token(options.role, options.room, options.name, options.hours))


if __name__ == "__main__":
    main()
