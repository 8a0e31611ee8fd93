"""What crosses between the runner and a keeper. Plain dictionaries: both sides marshal them.

To the keeper: the request, then perhaps `HAND_OVER`, and the end of the stream when the command is called off. From
the keeper: `HANDED_OVER` in answer, unless the command was ending by then, and one report.
"""

from __future__ import annotations

from typing import Final, TypedDict

HAND_OVER: Final = b"H"
HANDED_OVER: Final = b"H"
"""No marshalled dictionary begins so. The keeper, which imports nothing, has its own copy of both."""


class KeeperRequest(TypedDict):
    """`argv` begins with the path of the program.

    `cwd_file` is where the command's last act writes its directory; empty when nobody asks. `background_s` is the limit
    from its start that a hand-over puts in the place of `timeout_s`; 0 for none. Without an `error_file`, what it
    prints as errors goes to its output. `guarded`: the program is only the guard of a sandbox, and the command leads
    another session inside of it.
    """

    parent: int
    argv: list[str]
    guarded: bool
    env: dict[str, str]
    cwd: str
    cwd_file: str
    timeout_s: float
    background_s: float
    output_file: str
    error_file: str
    input: bytes
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
