"""How many tokens a text is, roughly, without asking anybody. Pure."""

from __future__ import annotations

_BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """At least 1. Bytes, not characters: scripts that need more bytes need more tokens as well."""
    return len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN + 1
