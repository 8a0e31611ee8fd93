"""Limits of Bash."""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
MAX_RESULT_CHARS = 30_000
NOTE_CHARS = 1_000
SO_FAR_CHARS = 4_000
GRACE_S = 5.0
"""How much later than its call a command that may go on in the background is stopped: if nobody took it over."""
