"""Limits of Grep."""

from __future__ import annotations

DEFAULT_HEAD = 250
MAX_COLUMNS = 500
MAX_PATTERN = 20_000
