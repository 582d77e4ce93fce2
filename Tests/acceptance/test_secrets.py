"""Keys that remain in the daemon's memory after use (RFC 3711 §9.1).

A core dump, or a process that may read its memory, must not reveal earlier media.
"""

import asyncio
import re
from pathlib import Path

import pytest
from aiortc import rtcdtlstransport
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from harness import expect
from harness.looks import ALICE
from harness.process import until

#: Labels of the encryption keys (RFC 3711 §4.3.2).
LABELS = {"RTP": 0, "RTCP": 3}
#: One profile of each kind that sfud has.
PROFILES = [
    rtcdtlstransport.SRTP_AEAD_AES_128_GCM,
    rtcdtlstransport.SRTP_AES128_CM_SHA1_80,
]


def session_key(master: bytes, salt: bytes, label: int) -> bytes:
    """Derives a key by RFC 3711 §4.3.1 and §4.3.3; the salt of GCM is padded (RFC 7714 §11)."""
    start = int.from_bytes(salt.ljust(14, b"\0"), "big") ^ (label << 48)
    counter = (start << 16).to_bytes(16, "big")
    stream = Cipher(algorithms.AES(master), modes.CTR(counter)).encryptor()
    return stream.update(bytes(len(master)))


def keys(name: str, peer) -> dict[str, bytes]:
    """Returns all keys between aiortc and sfud, by name."""
    secret, masters = peer.secrets()
    found = {f"{name}'s master secret": secret}
    for side, (master, salt) in masters.items():
        found[f"{name}'s master key {side}"] = master
        for label, number in LABELS.items():
            found[f"{name}'s {label} key {side}"] = session_key(master, salt, number)
    return found


def memory(pid: int):
    """Returns every writable region of the process's memory."""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end, rights = re.match(r"(\w+)-(\w+) (\S+)", line).groups()
            if "w" not in rights:
                continue
            at, last = int(begin, 16), int(end, 16)
            memory.seek(at)
            piece = bytearray()
            while at + len(piece) < last:
                part = memory.read(last - at - len(piece))
                if not part:
                    break
                piece += part
            yield piece


def kept(pid: int, secrets: dict[str, bytes]) -> set[str]:
    """Returns the names of the keys that are somewhere in the process's memory."""
    found = set()
    for piece in memory(pid):
        found |= {name for name, secret in secrets.items() if secret in piece}
    return found


@pytest.mark.parametrize(
    "profile",
    # Each takes half a minute, most of it for a core dump.
    [pytest.param(one, marks=[pytest.mark.slow] * (one is not PROFILES[0]),
                  id=one.openssl_profile.decode()) for one in PROFILES],
)  # fmt: skip
async def test_f9_f13_keys_go_from_memory_with_who_had_them(
    sfud, room, peers, monkeypatch, profile
):
    monkeypatch.setattr(rtcdtlstransport, "SRTP_PROFILES", [profile])
    alice = await room.join("alice", await peers("aiortc"), **ALICE)
    bob = await room.join("bob", await peers("aiortc"), slots=1)
    seen = await bob.subscribe(alice.stream)
    await expect.moving(bob.peer, seen.video, ALICE["hue"], seen.since)
    hers, his = keys("alice", alice.peer), keys("bob", bob.peer)
    # No key occurs twice.
    assert len(set((hers | his).values())) == len(hers | his) == 14
    try:
        used = kept(sfud.process.pid, hers | his)
    except PermissionError:
        pytest.skip("processes may not be looked into")
    print("while they talk:", sorted(used))
    # This proves that the search finds existing keys. The secret of the handshake is not kept.
    assert {f"{name}'s master key down" for name in ("alice", "bob")} <= set(used)
    assert not any("master secret" in name for name in used)

    await alice.leave()

    async def forgotten():
        return not kept(sfud.process.pid, hers)

    await until(forgotten, "none of alice's keys", 5)
    assert kept(sfud.process.pid, his)
    await bob.leave()
    await asyncio.sleep(0.5)
    assert not kept(sfud.process.pid, hers | his)


async def test_f13_there_are_no_core_dumps(sfud):
    limits = Path(f"/proc/{sfud.process.pid}/limits").read_text()
    (core,) = [line for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core.split()[4] in ("0", "1")
