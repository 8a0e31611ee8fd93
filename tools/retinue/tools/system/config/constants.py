"""Refusals of Config."""

from __future__ import annotations

UNKNOWN, ONLY_READ, NO_CHOICE = 1, 2, 3
