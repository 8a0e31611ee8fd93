"""File addresses of the protocol. Pure."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote, urlsplit


def uri_of(path: Path) -> str:
    return f"file://{quote(str(path).encode('utf-8', 'surrogateescape'), safe='/-._~!$&()+,;=@')}"


def path_of(uri: str) -> Path | None:
    """None for what is no local file: generated sources and the like have addresses of their own."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        return None
    path = unquote(parts.path, errors="surrogateescape")
    return None if "\0" in path else Path(path)
