"""How much of a file one call shows."""

from __future__ import annotations

DEFAULT_LINES = 2_000
LINE_CHARS = 2_000
MAX_TOKENS = 25_000
CHARS_PER_TOKEN = 4
WHOLE_FILE_BYTES = 64 * 1024 * 1024

IMAGE_FILE_BYTES = 50 * 1024 * 1024
IMAGE_PIXELS = 50_000_000
IMAGE_EDGE = 2_000
"""The longest edge that models take however many images a request has."""
IMAGE_BYTES = 500_000
"""Above this an image is sent as JPEG."""
IMAGE_MOST_BYTES = 3_700_000
"""Models take 5 MB in base64."""

PDF_FILE_BYTES = 100 * 1024 * 1024
PDF_BYTES = 5_000_000
PDF_WHOLE_PAGES = 10
PDF_MOST_PAGES = 20
PDF_PAGE_TOKENS = 2_500
PDF_SECONDS = 45.0

NOTEBOOK_BYTES = 100 * 1024 * 1024
OUTPUT_CHARS = 10_000
"""Of all the outputs of one cell."""
NOTEBOOK_IMAGES = 20
