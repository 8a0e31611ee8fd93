"""Stable codes of what a write is refused for; the shared ones have the numbers that Edit gives them."""

from __future__ import annotations

from enum import IntEnum


class WriteRefusal(IntEnum):
    FORBIDDEN_PATH = 2
    PARTIAL = 5
    UNREAD = 6
    CHANGED = 7
