"""Stable codes of what an edit is refused for."""

from __future__ import annotations

from enum import IntEnum


class EditRefusal(IntEnum):
    SAME_TEXT = 1
    FORBIDDEN_PATH = 2
    EXISTS = 3
    MISSING = 4
    NOTEBOOK = 5
    UNREAD = 6
    CHANGED = 7
    NOT_FOUND = 8
    AMBIGUOUS = 9
    TOO_LARGE = 10
