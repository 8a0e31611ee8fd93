"""A URL as the model wrote it, taken apart once: the host that rules are asked about is the one connected to."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address

from retinue.tools.errors import ToolError
from retinue.tools.text import is_unicode, one_line
from retinue.tools.web.domains import normal

MAX_URL_CHARS = 2_000
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f\\]")
_NAME = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\Z")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """`host` is in the form that is sent: ASCII, lower case, an IPv6 address without brackets. `path` has the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"

    def at(self, address: str) -> str:
        """The same request to a checked address, which nobody resolves again."""
        return f"{self.scheme}://{f'[{address}]' if ':' in address else address}:{self.port}{self.path}"

    def is_local(self, local_hosts: AbstractSet[str]) -> bool:
        return not local_hosts.isdisjoint((self.host, f"{self.host}:{self.port}", self.authority))


def parse(text: str, local_hosts: AbstractSet[str] = frozenset(), *, base: Target | None = None) -> Target:
    """ToolError says what is wrong. `http` becomes `https`, except for local hosts, which are taken as written."""
    import httpx2  # here, so that a process that only lists tools does not load it

    if len(text) > MAX_URL_CHARS:
        raise ToolError(f"The URL is longer than {MAX_URL_CHARS:,} characters.")
    if _FORBIDDEN.search(text) or not is_unicode(text):
        raise ToolError("The URL holds a space, a backslash or a control character: write it percent-encoded.")
    try:
        url = httpx2.URL(text)
        url = httpx2.URL(base.url).join(url) if base is not None else url
        host = normal(url.raw_host.decode("ascii"))
        port = url.port
    except (httpx2.InvalidURL, ValueError):
        raise ToolError(f"{one_line(text)} is no URL: write it whole, as in https://example.com/page.") from None
    if url.scheme not in _DEFAULT_PORTS:
        raise ToolError(f"{one_line(text)} is no web address: it must start with https://.")
    if url.userinfo:
        raise ToolError("The URL holds a user name or password: pages behind a login are not fetched.")
    host = _checked_host(host)
    path = url.raw_path.decode("ascii")
    target = Target(url.scheme, host, _DEFAULT_PORTS[url.scheme] if port is None else port, path)
    if not 0 < target.port < 65_536:
        raise ToolError(f"{one_line(text)} names no port: ports are 1 to 65535.")
    return target if target.is_local(local_hosts) else _upgraded(target)


def _upgraded(target: Target) -> Target:
    if target.scheme == "https":
        return target
    return Target("https", target.host, 443 if target.port == 80 else target.port, target.path)


def _checked_host(host: str) -> str:
    """A name, or an address in its one usual form: `127.1`, `0x7f000001` and `2130706433` name this machine too."""
    if ":" in host:
        try:
            return str(IPv6Address("" if "%" in host else host))
        except AddressValueError:
            raise ToolError(f"{one_line(host)} is no IPv6 address that can be reached from everywhere.") from None
    if _NAME.match(host) is None:
        raise ToolError(f"{one_line(host) or 'An empty text'} is no name of a host.")
    if _NUMBER.match(host.rpartition(".")[2]):
        try:
            IPv4Address(host)
        except AddressValueError:
            raise ToolError(f"{host} is no IPv4 address in its usual form: write four decimal numbers.") from None
    return host
