"""Limits of Bash, and what exit code 1 of some commands means."""

from __future__ import annotations

DEFAULT_TIMEOUT_MS = 120_000
MAX_TIMEOUT_MS = 600_000
MAX_RESULT_CHARS = 30_000
NOTE_CHARS = 1_000
SO_FAR_CHARS = 4_000
GRACE_S = 5.0
"""How much later than its call a command that may go on in the background is stopped: if nobody took it over."""

EXIT_ONE_IS_NO_FAILURE = {
    "grep": "no match",
    "egrep": "no match",
    "fgrep": "no match",
    "rg": "no match",
    "git grep": "no match",
    "diff": "the files differ",
    "git diff": "there are differences",
    "find": "some places could not be searched",
    "test": "the condition is false",
    "[": "the condition is false",
}
