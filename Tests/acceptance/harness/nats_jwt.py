"""A NATS server that lets in who has credentials of its account: a JWT and the seed of its key.

Keys and JWTs are made here as the tool `nsc` makes them. A key is text in base32: a prefix that
makes its first letter tell what it is, 32 bytes of Ed25519, and a CRC."""

import base64
import binascii
import json
import time
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ed25519

from harness.nats import Nats

#: Prefixes of public keys, by kind, and of seeds.
PREFIXES = {"account": 0, "operator": 14 << 3, "user": 20 << 3}
SEED = 18 << 3
#: Limits of accounts: as much of anything as they like. Without those of JetStream an account has
#: none, as the system's must not.
LIMITS = dict.fromkeys(["subs", "data", "payload", "imports", "exports", "conn", "leaf"], -1)
LIMITS |= {"wildcards": True}
JETSTREAM = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)


def encoded(key: bytes) -> str:
    checked = key + binascii.crc_hqx(key, 0).to_bytes(2, "little")
    return base64.b32encode(checked).decode().rstrip("=")


def part(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


class Key:
    """A new key of an operator, an account or a user."""

    def __init__(self, kind: str):
        self.kind = kind
        self._private = ed25519.Ed25519PrivateKey.generate()
        self.public = encoded(
            bytes([PREFIXES[kind]]) + self._private.public_key().public_bytes_raw()
        )

    @property
    def seed(self) -> str:
        prefix = PREFIXES[self.kind]
        # The kind comes after the five bits of the seed's own prefix.
        head = bytes([SEED | prefix >> 5, (prefix & 31) << 3])
        return encoded(head + self._private.private_bytes_raw())

    def issue(self, subject: "Key", **claims) -> str:
        """Returns a JWT that says these things of another key, or of this one."""
        now = int(time.time())
        content = {
            "jti": f"{subject.public}-{now}",
            "iat": now,
            "iss": self.public,
            "name": subject.kind,
            "sub": subject.public,
            "nats": {"type": subject.kind, "version": 2, **claims},
        }
        header = {"typ": "JWT", "alg": "ed25519-nkey"}
        text = ".".join(part(json.dumps(one).encode()) for one in (header, content))
        return f"{text}.{part(self._private.sign(text.encode()))}"


class Credentials:
    """A user's JWT and seed, and the file that has both, as `nsc` writes it."""

    def __init__(self, file: Path, jwt: str, seed: str):
        self.file = file
        self.jwt, self.seed = jwt, seed
        file.write_text(
            f"-----BEGIN NATS USER JWT-----\n{jwt}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
        file.chmod(0o600)

    @property
    def flags(self) -> tuple[str, str]:
        return "--nats-creds", str(self.file)


class JWTNats(Nats):
    """A server of an operator with one account for nodes, which it keeps in memory."""

    def __init__(self, directory: Path):
        operator, system, self.account = Key("operator"), Key("account"), Key("account")
        accounts = "".join(
            f"  {one.public}: {operator.issue(one, limits=limits)}\n"
            for one, limits in ((system, LIMITS), (self.account, LIMITS | JETSTREAM))
        )
        file = directory / "nats.conf"
        file.write_text(
            f"operator: {operator.issue(operator)}\nsystem_account: {system.public}\n"
            f"resolver: MEMORY\nresolver_preload: {{\n{accounts}}}\n"
        )
        super().__init__(directory, None, "-c", str(file))

    def user(self, name: str, account: Key | None = None) -> Credentials:
        """Makes credentials of a user of the nodes' account, or of another one."""
        user = Key("user")
        jwt = (account or self.account).issue(user, subs=-1, data=-1, payload=-1)
        return Credentials(self.directory / f"{name}.creds", jwt, user.seed)
