"""Limits of Snip."""

from __future__ import annotations

MAX_NOTE = 2_000
EMPTY_STRETCH, EMPTY_NOTE = 1, 2
