"""Limits of TeamCreate."""

from __future__ import annotations

MAX_NAME = 64
MAX_DESCRIPTION = 2_000

NO_NAME, RESERVED = 1, 2

TAKEN_NAMES = frozenset({"team-lead", "system", "main"})
