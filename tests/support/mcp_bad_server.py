"""A program that is no good MCP server. Its one argument says in which way."""

from __future__ import annotations

import sys
import time


def babbles() -> None:
    """Writes what is no message, and never answers."""
    for _ in range(1_000):
        sys.stdout.write("hello, I am no server\n")
    sys.stdout.flush()
    time.sleep(600)


def leaves() -> None:
    sys.stderr.write("no database\n")
    sys.exit(4)


if __name__ == "__main__":
    {"babbles": babbles, "leaves": leaves}[sys.argv[1]]()
