"""Limits of SendMessage."""

from __future__ import annotations

MAX_SUMMARY = 200
MAX_MESSAGE = 1_048_576
