"""Which hosts, ports and addresses a list of hosts lets through. Pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

PORTS = (80, 443)
_NAME = re.compile(r"(?=.{1,253}\Z)(?:(?!-)[a-z0-9_-]{1,63}(?<!-)\.)*(?!-)[a-z0-9_-]{1,63}(?<!-)\Z")
_TRANSLATED = tuple(ipaddress.ip_network(text) for text in ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"))
"""IPv6 addresses that stand for an IPv4 address, which may be any."""


@dataclass(frozen=True, slots=True)
class Place:
    host: str
    port: int


class Refused(Exception):
    """A request that the list does not let through; the text is for who sent it."""


def place(host: str, port: str, hosts: Sequence[str]) -> Place:
    """The place that a request names, `Refused` when it is not to be reached."""
    name = host.lower().removesuffix(".")
    if not _NAME.match(name) or name.replace(".", "").isdigit():
        raise Refused("a host is named by its name, as in example.org")
    if not any(_fits(name, pattern.lower()) for pattern in hosts):
        raise Refused(f"{name} is not on the list of hosts that this sandbox lets through")
    if port not in [str(allowed) for allowed in PORTS]:
        raise Refused(f"this sandbox lets through the ports {' and '.join(map(str, PORTS))} only")
    return Place(name, int(port))


def _fits(name: str, pattern: str) -> bool:
    """`*.example.org` is every name below example.org, and not that itself."""
    if pattern.startswith("*."):
        return len(pattern) > 2 and name.endswith(pattern[1:]) and name != pattern[1:]
    return name == pattern


def authority(text: str, default_port: str = "") -> tuple[str, str]:
    """Host and port of `host:port`."""
    host, colon, port = text.partition(":")
    if not host or (not colon and not default_port) or "@" in text:
        raise Refused("a request names its host and port, as in example.org:443")
    return host, port if colon else default_port


def absolute(target: str) -> tuple[str, str, str]:
    """Host, port and path of `http://host:port/path`."""
    scheme, mark, rest = target.partition("://")
    if not mark or scheme.lower() != "http":
        raise Refused("a request to a proxy names the whole address, as in http://example.org/")
    cut = next((at for at, letter in enumerate(rest) if letter in "/?#"), len(rest))
    host, port = authority(rest[:cut], "80")
    path = rest[cut:]
    return host, port, path if path.startswith("/") else f"/{path}"


def public(address: str) -> bool:
    """Whether an address is one of the open internet: not this machine's, not of a private or special network."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return public(str(found.ipv4_mapped))
        if found.is_site_local or any(found in network for network in _TRANSLATED):
            return False
    return found.is_global and not (found.is_multicast or found.is_reserved or found.is_unspecified)
