"""Which results of a search count. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

from retinue.tools.ports import SearchHit, SearchQuery
from retinue.tools.web.domains import covers


def chosen(hits: Iterable[SearchHit], query: SearchQuery) -> tuple[SearchHit, ...]:
    """Web addresses of the domains that were asked for, each once, in their order; not every service heeds domains."""
    kept: dict[str, SearchHit] = {}
    for hit in hits:
        host = host_of(hit.url)
        if not host or any(covers(domain, host) for domain in query.blocked_domains):
            continue
        if query.allowed_domains and not any(covers(domain, host) for domain in query.allowed_domains):
            continue
        kept.setdefault(hit.url, hit)
    return tuple(kept.values())


def host_of(url: str) -> str:
    """Empty for what is no web address."""
    try:
        parts = urlsplit(url)
        return (parts.hostname or "") if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""
