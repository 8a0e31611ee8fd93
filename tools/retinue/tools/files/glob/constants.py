"""Limits of Glob."""

from __future__ import annotations

MAX_FILES = 100
MAX_PATTERN = 4_000
