"""Fetches one page: every address is checked after its name was resolved, and the checked address is connected to."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import httpx2

from retinue.tools.errors import ToolError
from retinue.tools.text import one_line
from retinue.tools.web.addresses import refusal
from retinue.tools.web.body import ACCEPTED, TooLarge, read_body
from retinue.tools.web.urls import Target, parse

MAX_BYTES = 10 * 1024 * 1024
TIMEOUT_S = 60.0
CONNECT_S = 10.0
MAX_REDIRECTS = 10
_MOST_ADDRESSES = 4
_REDIRECTS = frozenset((301, 302, 303, 307, 308))

HEADERS = {
    "User-Agent": "retinue (+an agent that reads a page for a person)",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "Accept-Encoding": ACCEPTED,
}

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host."""


@dataclass(frozen=True, slots=True)
class Page:
    """What the server sent, of any status but a redirect."""

    url: str
    code: int
    reason: str
    content_type: str
    charset: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The server names another host, which is not followed: it is for the model to ask for, and for rules to decide."""

    url: str
    to: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = MAX_BYTES
    timeout_s: float = TIMEOUT_S
    connect_s: float = CONNECT_S
    max_redirects: int = MAX_REDIRECTS


DEFAULT_LIMITS = Limits()


async def resolve(host: str, port: int) -> Sequence[str]:
    """Asks the system. ToolError when the name has no address."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise ToolError(f"There is no host {one_line(host)}, or its name could not be resolved.") from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def fetch(
    target: Target,
    *,
    local_hosts: frozenset[str] = frozenset(),
    resolver: Resolve = resolve,
    limits: Limits = DEFAULT_LIMITS,
    tls: ssl.SSLContext | None = None,
) -> Page | Elsewhere:
    """Follows redirects within the host. ToolError for what cannot be, or may not be, fetched."""
    try:
        async with asyncio.timeout(limits.timeout_s):
            return await _follow(target, local_hosts, resolver, limits, tls)
    except TimeoutError:
        raise ToolError(f"{target.host} did not answer in full within {limits.timeout_s:g} s.") from None


async def _follow(
    target: Target, local_hosts: frozenset[str], resolver: Resolve, limits: Limits, tls: ssl.SSLContext | None
) -> Page | Elsewhere:
    for _ in range(limits.max_redirects + 1):
        addresses = await checked_addresses(target, local_hosts, resolver)
        answer = await _first_that_connects(target, addresses, limits, tls)
        if isinstance(answer, Page):
            return answer
        following = parse(answer.to, local_hosts, base=target)
        if (following.host, following.port) != (target.host, target.port):
            return Elsewhere(target.url, following.url, answer.code, answer.reason)
        target = following
    raise ToolError(f"{target.host} redirects more than {limits.max_redirects} times.")


async def checked_addresses(target: Target, local_hosts: frozenset[str], resolver: Resolve) -> Sequence[str]:
    """One address that is refused refuses the host: an honest name does not point to both sides of a wall."""
    addresses = await resolver(target.host, target.port)
    if not addresses:
        raise ToolError(f"{target.host} has no address.")
    if target.is_local(local_hosts):
        return addresses
    for address in addresses:
        if (why := refusal(address)) is not None:
            raise ToolError(
                f"{target.host} leads to {one_line(address, 60)}, which is not fetched: {why}. "
                "A host of your own can be allowed under web.local_hosts."
            )
    return addresses


async def _first_that_connects(
    target: Target, addresses: Sequence[str], limits: Limits, tls: ssl.SSLContext | None
) -> Page | Elsewhere:
    timeout = httpx2.Timeout(limits.timeout_s, connect=limits.connect_s)
    tried: list[str] = []
    # Neither proxies nor credentials of the surroundings: a proxy would resolve the name again.
    async with httpx2.AsyncClient(trust_env=False, timeout=timeout, verify=tls or True) as client:
        for address in addresses[:_MOST_ADDRESSES]:
            try:
                return await _ask(client, target, address, limits.max_bytes)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                tried.append(_words(error))
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                raise ToolError(f"{target.host} could not be read: {_words(error)}.") from None
    raise ToolError(f"{target.host} could not be reached: {'; '.join(dict.fromkeys(tried))}.")


def _words(error: Exception) -> str:
    return one_line(str(error) or type(error).__name__)


async def _ask(client: httpx2.AsyncClient, target: Target, address: str, max_bytes: int) -> Page | Elsewhere:
    headers = {**HEADERS, "Host": target.authority}
    extensions = {"sni_hostname": target.host}
    request = client.build_request("GET", target.at(address), headers=headers, extensions=extensions)
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        where = response.headers.get("location")
        if response.status_code in _REDIRECTS and where:
            return Elsewhere(target.url, where, response.status_code, response.reason_phrase)
        if int(response.headers.get("content-length") or 0) > max_bytes:
            raise TooLarge(f"The page is larger than {max_bytes:,} bytes.")
        encoding = response.headers.get("content-encoding", "")
        body = await read_body(response.aiter_raw(64 * 1024), encoding, max_bytes)
        content_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Page(
            target.url, response.status_code, response.reason_phrase, content_type, response.charset_encoding, body
        )
    finally:
        await response.aclose()
