"""Splitting a glob into the directory where it starts and the rest. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

_SPECIAL = frozenset("*?[{")


def split(pattern: str) -> tuple[str, str]:
    """`/a/b/*.py` is (`/a/b`, `*.py`), `../x/**` is (`../x`, `**`); a pattern that stays below its start is whole."""
    if not (pattern.startswith("/") or ".." in PurePosixPath(pattern).parts):
        return "", pattern
    parts = PurePosixPath(pattern).parts
    fixed = 0
    while fixed < len(parts) - 1 and not _SPECIAL & set(parts[fixed]):
        fixed += 1
    return str(PurePosixPath(*parts[:fixed])) if fixed else "", "/".join(parts[fixed:])
