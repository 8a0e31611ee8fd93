"""Limits of TodoWrite."""

from __future__ import annotations

MAX_TODOS = 200
MAX_TEXT = 1_000
