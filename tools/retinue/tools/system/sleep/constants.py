"""Limits of Sleep."""

from __future__ import annotations

MAX_S = 3_600.0
