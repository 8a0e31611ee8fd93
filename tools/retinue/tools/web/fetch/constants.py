"""Limits of WebFetch."""

from __future__ import annotations

CACHE_S = 15 * 60
CACHE_ENTRIES = 100
CACHE_CHARS = 20_000_000
PAGE_CHARS = 100_000
ERROR_CHARS = 2_000
ANSWER_TOKENS = 4_096
