"""Permitted hosts of live streams: no browser can make the server connect to its own network."""

import asyncio
import ipaddress
import re
import socket

from sfud_ipc import Refused

RESOLVE_SECONDS = 5
# Nothing that two parsers could read differently: no user, no query, no backslash.
URL = re.compile(r"rtmps?://([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?/\S+")
NAT64 = ipaddress.ip_network("64:ff9b::/96")


async def check(url: str, hosts: frozenset[str]) -> None:
    """Raises `Refused` unless the URL's host is one of `hosts`, or, if none are listed, public.

    A public host has public addresses only. The answer is the same whatever the host is, so that it
    reveals no names and addresses.
    """
    match = URL.fullmatch(url)
    if match is None:
        raise Refused("bad-url", "this is no address like rtmp://server/app/key")
    host = match[1].strip("[]").lower()
    if not (host in hosts if hosts else await has_public_addresses(host)):
        raise Refused("not-permitted", "this server does not stream to that host")


async def has_public_addresses(host: str) -> bool:
    try:
        found = await asyncio.wait_for(
            asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM),
            RESOLVE_SECONDS,
        )
    except (OSError, UnicodeError, asyncio.TimeoutError):
        return False
    return bool(found) and all(is_public(entry[4][0]) for entry in found)


def is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        if address.is_site_local:
            return False
        carried = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            carried = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        address = carried or address
    return address.is_global and not address.is_multicast
