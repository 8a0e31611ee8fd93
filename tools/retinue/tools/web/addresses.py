"""Which network addresses may be reached on an agent's behalf. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_WIRE_SERVER = IPv4Address("168.63.129.16")
"""A public address at which one cloud's machines ask for their own secrets."""
_TRANSLATED = IPv6Network("64:ff9b::/96")
"""How networks that have IPv6 alone reach IPv4: the last 32 bits are the address that a gateway connects to."""
_DISGUISES = tuple(IPv6Network(text) for text in ("64:ff9b:1::/48", "::/96", "2002::/16", "2001::/32"))
"""Local translation, compatible addresses and tunnels: they lead to some other address, and no web host needs them."""


def refusal(text: str) -> str | None:
    """Why this address is not to be reached; None for one that anybody on the Internet may reach."""
    try:
        address = ip_address(text)
    except ValueError:
        return "it is no network address"
    return _refusal_4(address) if isinstance(address, IPv4Address) else _refusal_6(address)


def _refusal_4(address: IPv4Address) -> str | None:
    if address == _WIRE_SERVER:
        return "it is the metadata service of a cloud"
    if address.is_loopback:
        return "it is this machine"
    if address.is_link_local:
        return "it is link-local, where the metadata services of clouds are"
    if address.is_multicast:
        return "it is a multicast address"
    return None if address.is_global else "it is private or reserved"


def _refusal_6(address: IPv6Address) -> str | None:
    if address.scope_id is not None:
        return "it is bound to one network interface"
    if address.ipv4_mapped is not None:
        return _refusal_4(address.ipv4_mapped)
    if address.is_loopback or address.is_unspecified:
        return "it is this machine"
    if address in _TRANSLATED:
        return _refusal_4(IPv4Address(int(address) & 0xFFFF_FFFF))
    if any(address in network for network in _DISGUISES):
        return "it stands for another address"
    if address.is_link_local or address.is_site_local:
        return "it is link-local"
    if address.is_multicast:
        return "it is a multicast address"
    return None if address.is_global else "it is private or reserved"
