"""Defaults of Agent."""

from __future__ import annotations

DEFAULT_DEFINITION = "general-purpose"
