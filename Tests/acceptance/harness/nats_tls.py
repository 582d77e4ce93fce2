"""A NATS server that is reached by TLS, and only with a certificate of its authority."""

import subprocess
from pathlib import Path

from harness.nats import Nats


class Authority:
    """Who signs certificates; its files are in a directory, named after it."""

    def __init__(self, directory: Path, name: str):
        self.directory = directory
        self.certificate = directory / f"{name}.pem"
        self.key = directory / f"{name}-key.pem"
        request(
            "-x509", "-days", "1", "-subj", f"/CN={name}",
            "-keyout", self.key, "-out", self.certificate,
        )  # fmt: skip

    def issue(self, name: str, address: str | None = None) -> tuple[Path, Path]:
        """Makes the certificate of a client, or of a server at an address; returns it and its
        key."""
        key, asked = self.directory / f"{name}-key.pem", self.directory / f"{name}.csr"
        made, extensions = self.directory / f"{name}.pem", self.directory / f"{name}.ext"
        request("-subj", f"/CN={name}", "-keyout", key, "-out", asked)
        place = f"subjectAltName=IP:{address}\n" if address else ""
        extensions.write_text(f"basicConstraints=CA:FALSE\n{place}")
        openssl(
            "x509", "-req", "-days", "1", "-in", asked, "-out", made, "-extfile", extensions,
            "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial",
        )  # fmt: skip
        return made, key


def openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def request(*arguments: str | Path) -> None:
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *arguments)


class TLSNats(Nats):
    """A server that asks clients for certificates."""

    def __init__(self, directory: Path):
        self.authority = Authority(directory, "authority")
        certificate, key = self.authority.issue("server", "127.0.0.1")
        super().__init__(
            directory, None, "--tlsverify", "--tlscacert", str(self.authority.certificate),
            "--tlscert", str(certificate), "--tlskey", str(key),
        )  # fmt: skip

    @property
    def url(self) -> str:
        return f"tls://127.0.0.1:{self.port}"

    def flags(self, name: str) -> tuple[str, ...]:
        """Flags of a node with a certificate of its own."""
        certificate, key = self.authority.issue(name)
        return ("--nats-ca", str(self.authority.certificate),
                "--nats-cert", str(certificate), "--nats-key", str(key))  # fmt: skip
