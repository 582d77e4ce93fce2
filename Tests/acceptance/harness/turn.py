"""A TURN server: coturn with the configuration of docs/turn.md, on loopback."""

import asyncio
import base64
import hashlib
import re
import subprocess
from pathlib import Path

import aioice.turn

from harness import process
from harness.gateway import TURN_SECRET
from harness.process import until
from harness.sfud import REPOSITORY, free_ports, is_free

#: Where clients reach it, and where it relays from: so sfud sees who came through it.
LISTENS, RELAYS = "127.0.0.1", "127.0.0.2"
PAGE = REPOSITORY / "docs/turn.md"


def documented(language: str, word: str) -> str:
    """Returns the example of the page in that language that has a word in it."""
    examples = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [example] = [one for one in examples if word in one]
    return example


def certify(directory: Path) -> None:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "1", "-subj", "/CN=turn", "-addext", f"subjectAltName=IP:{LISTENS}",
         "-keyout", directory / "turn-key.pem", "-out", directory / "turn-cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip


def pin(directory: Path) -> str:
    """Returns the certificate's public key as Chromium's
    `--ignore-certificate-errors-spki-list` names it."""
    key = subprocess.run(
        ["openssl", "x509", "-in", directory / "turn-cert.pem", "-pubkey", "-noout"],
        check=True, capture_output=True,
    ).stdout  # fmt: skip
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "der"],
        input=key, check=True, capture_output=True,
    ).stdout  # fmt: skip
    return base64.b64encode(hashlib.sha256(der).digest()).decode()


class Turn:
    """A running coturn; the directory has its certificate."""

    def __init__(self, directory: Path):
        self.directory = directory
        self.log = directory / "turn.log"
        self.port, self.tls_port = free_ports(), free_ports()

    def urls(self) -> dict[str, str]:
        """Returns its URLs by how they reach it, as browsers name that."""
        return {
            "udp": f"turn:{LISTENS}:{self.port}?transport=udp",
            "tcp": f"turn:{LISTENS}:{self.port}?transport=tcp",
            "tls": f"turns:{LISTENS}:{self.tls_port}?transport=tcp",
        }

    def configuration(self) -> str:
        """Returns the page's configuration with the values of this machine."""
        values = {
            "listening-ip": LISTENS,
            "relay-ip": RELAYS,
            "listening-port": self.port,
            "tls-listening-port": self.tls_port,
            "cert": self.directory / "turn-cert.pem",
            "pkey": self.directory / "turn-key.pem",
            "static-auth-secret": TURN_SECRET,
            "allowed-peer-ip": LISTENS,
        }
        text = documented("ini", "use-auth-secret")
        for name, value in values.items():
            text, count = re.subn(rf"(?m)^{name}=.*$", f"{name}={value}", text)
            assert count == 1, f"docs/turn.md says {name} {count} times"
        own = {"userdb": self.directory / "turndb", "log-file": "stdout", "pidfile": "/dev/null"}
        lines = [f"{name}={value}" for name, value in own.items()]
        return "\n".join([text, *lines, "allow-loopback-peers", "verbose", ""])

    async def start(self) -> "Turn":
        file = self.directory / "turnserver.conf"
        file.write_text(self.configuration())
        self.process = await process.start("turnserver", "-c", file, output=self.log)

        async def listens():
            assert self.process.returncode is None, self.log.read_text()
            return not is_free(self.port) and not is_free(self.tls_port)

        await until(listens, "coturn listens")
        return self

    async def close(self) -> None:
        await process.kill(self.process)

    async def allocate(self, username: str, password: str) -> "Allocation":
        """Returns a relayed address, allocated over UDP."""
        allocation = Allocation(
            (LISTENS, self.port), username, password, lifetime=600, channel_refresh_time=500
        )
        await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: allocation, remote_addr=(LISTENS, self.port)
        )
        await allocation.connect()
        return allocation


class Allocation(aioice.turn.TurnClientUdpProtocol):
    """A relayed address of a client that is no browser."""

    async def extend(self) -> None:
        """Asks for more time, as clients do before theirs runs out."""
        request = aioice.stun.Message(
            message_method=aioice.stun.Method.REFRESH,
            message_class=aioice.stun.Class.REQUEST,
        )
        request.attributes["LIFETIME"] = self.lifetime
        await self.request_with_retry(request)
