"""What changed in a folder since it was last looked at. Looking blocks, comparing is pure."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

Stamp = tuple[int, int, int]
"""Time of change, size and inode: what tells one version of a file from the next."""

CREATED, CHANGED, DELETED = 1, 2, 3
MAX_ENTRIES = 50_000
CONFIGURATION = frozenset((".json", ".jsonc", ".toml", ".yaml", ".yml", ".cfg", ".ini", ".xml", ".mod", ".txt"))
_PASSED_OVER = frozenset(("node_modules", "__pycache__", "venv"))


@dataclass(frozen=True, slots=True)
class Look:
    """`complete` is false when there were too many files to look at them all."""

    stamps: Mapping[str, Stamp] = field(default_factory=dict[str, Stamp])
    complete: bool = True


def stamp_of(path: str | Path) -> Stamp | None:
    """None for what is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def look(root: Path, suffixes: AbstractSet[str], most: int = MAX_ENTRIES) -> Look:
    """Files with those suffixes, and those that configure a server, outside of hidden and installed folders."""
    stamps: dict[str, Stamp] = {}
    wanted = suffixes | CONFIGURATION
    for count, entry in enumerate(_files(str(root))):
        if count >= most:
            return Look(stamps, complete=False)
        if os.path.splitext(entry.name)[1].lower() in wanted:
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            stamps[entry.path] = (found.st_mtime_ns, found.st_size, found.st_ino)
    return Look(stamps)


def changes(before: Look, after: Look) -> list[tuple[str, int]]:
    """Each path with what happened to it. What an incomplete look did not come to is not taken for deleted."""
    found = [
        (path, CREATED if path not in before.stamps else CHANGED)
        for path, stamp in after.stamps.items()
        if before.stamps.get(path) != stamp
    ]
    if after.complete:
        found += [(path, DELETED) for path in before.stamps if path not in after.stamps]
    return found


def _files(root: str) -> Iterator[os.DirEntry[str]]:
    waiting = [root]
    while waiting:
        try:
            entries = sorted(os.scandir(waiting.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(".") and entry.name not in _PASSED_OVER:
                    waiting.append(entry.path)
            else:
                yield entry
