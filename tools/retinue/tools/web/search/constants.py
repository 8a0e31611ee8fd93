"""Limits of WebSearch."""

from __future__ import annotations

MIN_QUERY_CHARS = 2
MOST_SEARCHES = 200
"""Calls of one agent's process; the next one is told so instead of searching."""
MOST_HITS = 30
MOST_DOMAINS = 50
MAX_TEXT_CHARS = 20_000
MAX_ANSWER_BYTES = 5 * 1024 * 1024
