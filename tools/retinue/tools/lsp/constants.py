"""Limits of LSP."""

from __future__ import annotations

MOST_ENTRIES = 200
MAX_HOVER_CHARS = 10_000
