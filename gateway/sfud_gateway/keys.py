"""Secrets and public keys, each in a file of its own."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

SHORTEST_SECRET = 32  # bytes: HS256 needs as many as its hash has (RFC 7518 §3.2)
SHORTEST_RSA = 2_048  # bits (RFC 7518 §3.3)
ALGORITHMS = ("HS256", "RS256", "ES256")


class ConfigError(Exception):
    """A mistake in the configuration, in words for the operator."""


@dataclass(frozen=True)
class Key:
    """A key that verifies tokens."""

    kid: str
    algorithm: str
    material: Any = field(repr=False)


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None


def secret_of(path: Path | None) -> bytes:
    if path is None:
        raise ConfigError("a secret file is missing")
    secret = read(path).strip()
    if len(secret) < SHORTEST_SECRET:
        raise ConfigError(f"{path}: a secret has at least {SHORTEST_SECRET} bytes")
    return secret


def key_of(kid: str, algorithm: str, path: Path | None, name: str) -> Key:
    if algorithm not in ALGORITHMS:
        raise ConfigError(f"{name}: the algorithm is one of {', '.join(ALGORITHMS)}")
    if path is None:
        raise ConfigError(f"{name}: a secret_file (HS256) or a public_key_file is missing")
    if algorithm == "HS256":
        return Key(kid, algorithm, secret_of(path))
    try:
        public = load_pem_public_key(read(path))
    except ValueError:
        raise ConfigError(f"{path}: is no public key in PEM") from None
    fits = (
        isinstance(public, rsa.RSAPublicKey) and public.key_size >= SHORTEST_RSA
        if algorithm == "RS256"
        else isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == "secp256r1"
    )
    if not fits:
        raise ConfigError(f"{path}: is no key for {algorithm}")
    return Key(kid, algorithm, public)
