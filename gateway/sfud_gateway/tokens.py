"""Join tokens: JSON Web Tokens (RFC 7519) that a tenant's own server signs."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import Any

import jwt

from sfud_gateway import strict
from sfud_gateway.config import Config, Tenant
from sfud_gateway.keys import Key
from sfud_gateway.refusals import refuse

LONGEST_TOKEN = 100_000  # bytes; `custom` alone may have 65,536
ROOM = r"[A-Za-z0-9._-]{1,64}"
IDENT = r"[A-Za-z0-9._:-]{1,128}"
IF_PRESENT = ("takeover", "refuse")


@dataclass(frozen=True)
class Grant:
    """The rights that a valid token gives."""

    tenant: str
    room: str  # a room, or a prefix that ends in `*`
    participant: str | None
    name: str | None
    role: str | None
    if_present: str
    custom: dict[str, Any] | None
    settings: dict[str, Any]
    create: bool
    issued: int  # Unix seconds
    expires: int
    digest: str = field(repr=False)  # of what is signed: identifies the token, does not reveal it

    def permits(self, room: str) -> bool:
        if self.room.endswith("*"):
            return room.startswith(self.room[:-1])
        return room == self.room


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def signed_digest_of(token: str) -> str:
    """Returns the digest of what is signed, which has one spelling alone.

    The signature itself has many that verify: spare bits of its last character, characters that
    base64 passes over, and with ES256 another signature that anybody can reckon from it.
    """
    return digest_of(token.rpartition(".")[0])


def tenant_and_key(config: Config, token: str) -> tuple[Tenant, Key]:
    """Returns the tenant and the key that the unverified token names."""
    claims = jwt.decode(token, options={"verify_signature": False})
    tenant = config.tenants.get(str(claims.get("iss")))
    if tenant is None:
        raise jwt.InvalidTokenError("no such issuer")
    kid = jwt.get_unverified_header(token).get("kid")
    if kid is None and len(tenant.keys) == 1:
        return tenant, next(iter(tenant.keys.values()))
    key = tenant.keys.get(str(kid))
    if key is None:
        raise jwt.InvalidTokenError("no such key")
    return tenant, key


def verify(config: Config, token: str) -> Grant:
    """Returns what a token grants; raises `Refused`, whose message has nothing of the token."""
    if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
        raise refuse("token-invalid", "this is no token")
    claims, tenant = claims_of(config, token)
    return grant_of(claims, tenant, signed_digest_of(token), config.token_seconds)


def claims_of(
    config: Config, token: str, may_have_expired: bool = False
) -> tuple[dict[str, Any], str]:
    """Returns what a token says, and its tenant, if the tenant's key has signed it."""
    options = {
        "require": ["exp", "iat", "iss"], "verify_aud": config.audience is not None,
        "verify_exp": not may_have_expired,
    }  # fmt: skip
    try:
        tenant, key = tenant_and_key(config, token)
        claims = jwt.decode(
            token, key.material, algorithms=[key.algorithm], issuer=tenant.name,
            audience=config.audience, leeway=config.leeway_seconds, options=options,
        )  # fmt: skip
        return claims, tenant.name
    except jwt.ExpiredSignatureError:
        raise refuse("token-expired", "the token has expired") from None
    except jwt.ImmatureSignatureError:
        raise refuse("token-not-yet-valid", "the token is not valid yet") from None
    except jwt.MissingRequiredClaimError as error:
        raise refuse("token-invalid", f"the token has no {error.claim}") from None
    except Exception:  # PyJWT lets other errors of malformed tokens through
        raise refuse("token-invalid", "the token is not signed by a known key") from None


def grant_of(claims: dict[str, Any], tenant: str, digest: str, longest: int) -> Grant:
    def claim(name: str, fits: Any, default: Any = None) -> Any:
        value = claims.get(name)
        if value is None:
            return default
        if not fits(value):
            raise refuse("token-invalid", f"the token's {name} is not as it should be")
        return value

    def matches(pattern: str) -> Any:
        return lambda it: isinstance(it, str) and re.fullmatch(pattern, it) is not None

    def is_object(most: int) -> Any:
        return lambda it: isinstance(it, dict) and len(json.dumps(it)) <= most

    strict.check(claims)
    issued, expires = int(claims["iat"]), int(claims["exp"])
    if expires - issued > longest:
        # A revocation is kept for that long, so a longer life would outlast it.
        raise refuse("token-invalid", f"the token is valid for more than {longest} s")
    room = claim("room", matches(rf"({ROOM})?\*|{ROOM}"))
    if room is None:
        raise refuse("token-invalid", "the token has no room")
    return Grant(
        tenant=tenant, room=room, participant=claim("sub", matches(IDENT)),
        name=claim("name", lambda it: isinstance(it, str) and len(it.encode()) <= 256),
        role=claim("role", matches(IDENT)),
        if_present=claim("ifPresent", lambda it: it in IF_PRESENT, "takeover"),
        custom=claim("custom", is_object(65_536)),
        settings=claim("settings", is_object(65_536), {}),
        create=claim("create", lambda it: isinstance(it, bool), True),
        issued=issued, expires=expires, digest=digest,
    )  # fmt: skip
