"""Stable codes of what a change of a notebook is refused for; the shared ones have the numbers that Edit gives them."""

from __future__ import annotations

from enum import IntEnum


class NotebookRefusal(IntEnum):
    WRONG_FIELDS = 1
    FORBIDDEN_PATH = 2
    MISSING = 4
    NO_NOTEBOOK = 5
    UNREAD = 6
    CHANGED = 7
    NO_CELL = 8
    TOO_LARGE = 10
