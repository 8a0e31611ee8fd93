"""Fails when a module is longer than it should be: the sign to look for a seam."""

from __future__ import annotations

import sys
from pathlib import Path

MOST_LINES = 400


def too_long(roots: list[str]) -> list[str]:
    found: list[str] = []
    for root in roots:
        for file in sorted(Path(root).rglob("*.py")):
            lines = len(file.read_text("utf-8").splitlines())
            if lines > MOST_LINES:
                found.append(f"{file}: {lines} lines; at most {MOST_LINES}")
    return found


if __name__ == "__main__":
    complaints = too_long(sys.argv[1:])
    sys.stderr.write("".join(f"{line}\n" for line in complaints))
    sys.exit(bool(complaints))
