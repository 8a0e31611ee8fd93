"""How much of a file one call shows."""

from __future__ import annotations

DEFAULT_LINES = 2_000
MAX_TOKENS = 25_000
CHARS_PER_TOKEN = 4
WHOLE_FILE_BYTES = 64 * 1024 * 1024

UNSUPPORTED = {
    ".png": "images",
    ".jpg": "images",
    ".jpeg": "images",
    ".gif": "images",
    ".webp": "images",
    ".bmp": "images",
    ".ico": "images",
    ".tiff": "images",
    ".pdf": "PDF files",
    ".ipynb": "notebooks",
}
