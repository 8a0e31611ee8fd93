"""What crosses between the runner and a keeper. Plain dictionaries: both sides marshal them."""

from __future__ import annotations

from typing import TypedDict


class KeeperRequest(TypedDict):
    """`argv` begins with the path of the program.

    `cwd_file` is where the command's last act writes its directory; empty when nobody asks.
    """

    parent: int
    argv: list[str]
    env: dict[str, str]
    cwd: str
    cwd_file: str
    timeout_s: float
    output_file: str
    max_file_bytes: int
    keep_fds: list[int]


class KeeperReport(TypedDict):
    """`reason` says why the command was ended from outside; empty when it ended by itself."""

    exit: int
    reason: str
    killed: int
    bytes: int
    failure: str
    cwd: str
