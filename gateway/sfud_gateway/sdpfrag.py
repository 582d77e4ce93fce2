"""SDP fragments of trickle ICE (RFC 8840 §9), as WHIP uses them (RFC 9725 §4.3)."""

import re
from dataclasses import dataclass

from sfud_gateway.refusals import refuse


@dataclass(frozen=True)
class Credentials:
    ufrag: str
    password: str


# The lengths are those of RFC 8839 §5.4.
UFRAG = re.compile(r"^a=ice-ufrag:([A-Za-z0-9+/]{4,256})\r?$", re.MULTILINE)
PASSWORD = re.compile(r"^a=ice-pwd:([A-Za-z0-9+/]{22,256})\r?$", re.MULTILINE)


def credentials(sdp: str) -> Credentials | None:
    """Returns the first credentials of a description or a fragment: a bundle has one pair."""
    ufrag, password = UFRAG.search(sdp), PASSWORD.search(sdp)
    return Credentials(ufrag[1], password[1]) if ufrag and password else None


def check(fragment: str) -> None:
    """Raises `Refused` for what is no fragment: each line is a session or media attribute."""
    lines = [line for line in re.split(r"\r?\n", fragment) if line]
    if not lines or not all(re.fullmatch(r"[am]=[^\r\n]{1,4096}", line) for line in lines):
        raise refuse("invalid-params", "this is no SDP fragment")


def restarted(offer: str, new: Credentials) -> str:
    """Returns the offer with other ICE credentials and without candidates of the old ones."""
    text = UFRAG.sub(f"a=ice-ufrag:{new.ufrag}", offer)
    text = PASSWORD.sub(f"a=ice-pwd:{new.password}", text)
    lines = [line for line in re.split(r"\r?\n", text) if line]
    kept = [it for it in lines if not re.match(r"a=(candidate|end-of-candidates)", it)]
    return "\r\n".join(kept) + "\r\n"


def fragment(answer: str) -> str:
    """Returns the fragment of an answer: ICE attributes, and the m-lines with their mids."""
    wanted = r"a=(ice-lite|ice-options:|group:BUNDLE|mid:|ice-ufrag:|ice-pwd:|candidate:|end-of)"
    lines = re.split(r"\r?\n", answer)
    kept = [it for it in lines if it.startswith("m=") or re.match(wanted, it)]
    return "\r\n".join(kept) + "\r\n"
