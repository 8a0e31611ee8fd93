"""Limits of Glob."""

from __future__ import annotations

MAX_FILES = 100
