"""sfud-gateway-token: makes a join token by hand, for a first try and for tests."""

import argparse
import json
import sys
import time
from pathlib import Path

import jwt

ALGORITHMS = ("HS256", "RS256", "ES256")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="sfud-gateway-token",
        description="Prints a join token. In production your own server signs them.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--tenant", required=True, help="the tenant, as the configuration names it")
    add("--kid", help="the key's id; needed if the tenant has several")
    add("--key-file", type=Path, required=True, help="the secret, or a private key in PEM")
    add("--algorithm", default="HS256", choices=ALGORITHMS)
    add("--room", required=True, help="a room, or a prefix that ends in *")
    add("--participant", help="the participant's id; a random one if left out")
    add("--name", help="its display name")
    add("--role", help="its role")
    add("--if-present", choices=["takeover", "refuse"], help="when the id is in the room already")
    add("--settings", type=json.loads, help="settings of a room that it creates, in JSON")
    add("--custom", type=json.loads, help="an object to store with the participant, in JSON")
    add("--audience", help="the configuration's audience")
    add("--seconds", type=int, default=3_600, help="how long it is valid")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    now = int(time.time())
    claims = {
        "iss": options.tenant, "iat": now, "exp": now + options.seconds, "room": options.room,
        "sub": options.participant, "name": options.name, "role": options.role,
        "ifPresent": options.if_present, "settings": options.settings, "custom": options.custom,
        "aud": options.audience,
    }  # fmt: skip
    claims = {key: value for key, value in claims.items() if value is not None}
    try:
        key = options.key_file.read_bytes().strip()
        headers = {"kid": options.kid} if options.kid else None
        print(jwt.encode(claims, key, algorithm=options.algorithm, headers=headers))
    except (OSError, ValueError, jwt.PyJWTError) as error:
        print(f"{options.key_file}: {error}", file=sys.stderr)
        return 66
    return 0


if __name__ == "__main__":
    sys.exit(main())
