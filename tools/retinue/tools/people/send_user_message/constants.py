"""Limits of SendUserMessage."""

from __future__ import annotations

MAX_MESSAGE = 50_000
MAX_ATTACHMENTS = 20
MAX_FILE_BYTES = 100 * 1024 * 1024

EMPTY, NO_FILE, TOO_LARGE, OUTSIDE = 1, 2, 3, 4

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp"})
