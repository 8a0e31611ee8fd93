"""Limits of Skill."""

from __future__ import annotations

DEFAULT_AGENT = "general-purpose"
COMMAND_MS = 120_000
MAX_ARGS_CHARS = 20_000
