"""Limits of REPL."""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 30_000
MAX_TIMEOUT_MS = 600_000
MAX_CODE = 100_000
MAX_RESULT_CHARS = 50_000
MAX_SHOWN_CHARS = 30_000
"""Of what was printed: its beginning and its end."""
MAX_OUTPUT_CHARS = 8_000_000
"""Of one call; code that prints more is stopped."""
MAX_RAW_BYTES = 1024 * 1024
"""Of what the process writes past our streams over its whole life, such as a word of the interpreter as it dies."""
MAX_MEMORY_KB = 4 * 1024 * 1024
START_S = 20.0
GRACE_S = 1.5
"""How long code that was told to stop may take to do so."""
EMPTY, NO_CHARACTER, TOO_LONG = 1, 2, 3
