"""Limits of ToolSearch."""

from __future__ import annotations

DEFAULT_RESULTS = 5
MOST_RESULTS = 50
MAX_QUERY_CHARS = 2_000
MAX_PATTERN_CHARS = 200
PATTERN_S = 5.0
"""How long a search by a pattern may take; ripgrep needs milliseconds, whatever the pattern."""
