"""Laws of what tools of the web decide."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncGenerator
from ipaddress import IPv4Address, IPv6Address

from hypothesis import given, settings
from hypothesis import strategies as st

from retinue.tools.errors import ToolError
from retinue.tools.web import domains
from retinue.tools.web.addresses import refusal
from retinue.tools.web.body import TooLarge, read_body
from retinue.tools.web.cache import TimedCache
from retinue.tools.web.urls import parse

labels = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
hosts = st.lists(labels, min_size=1, max_size=4).map(".".join)


@settings(deadline=None)
@given(host=hosts, below=hosts)
def test_a_star_and_a_dot_cover_all_that_is_below_and_nothing_else(host: str, below: str) -> None:
    assert domains.fits(f"*.{host}", f"{below}.{host}")
    assert not domains.fits(f"*.{host}", host)
    assert not domains.fits(f"*.{host}", f"{below}{host}") or f"{below}{host}".endswith(f".{host}")
    assert domains.fits(host, f"{host.upper()}.")
    assert not domains.fits(host, f"{host}.{below}") or f"{host}.{below}" == host


@settings(deadline=None)
@given(pattern=st.text("ab.*-", max_size=8), host=hosts)
def test_any_text_is_a_pattern_that_fits_or_does_not(pattern: str, host: str) -> None:
    fits = domains.fits(pattern, host)
    assert fits in (True, False)
    assert "*" in pattern or fits == (domains.normal(pattern) == host)


@settings(deadline=None)
@given(st.integers(0, 2**32 - 1).map(IPv4Address))
def test_an_address_in_the_clothes_of_ipv6_is_refused_whenever_it_is_refused_itself(address: IPv4Address) -> None:
    mapped = IPv6Address((0xFFFF << 32) | int(address))
    translated = IPv6Address((0x64FF9B << 96) | int(address))
    assert refusal(str(mapped)) == refusal(str(address)) == refusal(str(translated))
    assert address.is_global or refusal(str(address))


@settings(deadline=None)
@given(st.integers(0, 2**128 - 1).map(IPv6Address))
def test_no_address_of_ipv6_that_is_not_global_may_be_reached(address: IPv6Address) -> None:
    assert address.is_global or address.ipv4_mapped is not None or refusal(str(address))


@settings(deadline=None)
@given(st.text(max_size=60).map(lambda text: f"https://{text}"))
def test_what_is_parsed_is_parsed_again_to_the_same(text: str) -> None:
    try:
        target = parse(text)
    except ToolError:
        return
    assert parse(target.url) == target
    assert target.scheme == "https"
    assert "@" not in target.authority


@settings(deadline=None)
@given(data=st.binary(max_size=3_000), size=st.integers(1, 500), limit=st.integers(0, 3_000), how=st.integers(0, 2))
def test_what_is_unpacked_is_whole_or_too_large(data: bytes, size: int, limit: int, how: int) -> None:
    name, packed = (("", data), ("gzip", gzip.compress(data)), ("deflate", zlib.compress(data)))[how]

    async def pieces() -> AsyncGenerator[bytes]:
        for start in range(0, len(packed), size):
            yield packed[start : start + size]

    try:
        found = asyncio.run(read_body(pieces(), name, limit))
    except TooLarge:
        assert len(data) > limit
    else:
        assert found == data
        assert len(data) <= limit


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.text("x", max_size=8), st.integers(0, 5))))
def test_a_cache_is_never_too_large_and_never_gives_what_is_too_old(steps: list[tuple[str, str, int]]) -> None:
    now = 0.0
    held: TimedCache[str] = TimedCache(lambda: now, ttl_s=10, max_entries=3, max_size=12, size=len)
    stored: dict[str, tuple[float, str]] = {}
    for key, value, pause in steps:
        now += pause
        held.put(key, value)
        stored[key] = (now, value)
        found = {name: got for name in "abcdef" if (got := held.get(name)) is not None}
        assert len(held) <= 3
        assert sum(map(len, found.values())) <= 12
        assert all(stored[name][1] == got and now - stored[name][0] < 10 for name, got in found.items())
