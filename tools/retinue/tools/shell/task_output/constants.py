"""Limits of TaskOutput."""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 600_000
MAX_RESULT_CHARS = 30_000
NOTE_CHARS = 1_000
