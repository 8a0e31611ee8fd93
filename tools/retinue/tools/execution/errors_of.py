"""Stable names of failures for telemetry: what went wrong, never where or with what."""

from __future__ import annotations

import errno
import re

from retinue.tools.errors import RetinueError

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,59}\Z")


def error_class_of(error: object) -> str:
    """`OSError:ENOENT`, `ToolError`, `ValueError`, …; `Error` when the name says nothing, `UnknownError` for none.

    Takes nothing from the message, the arguments or the traceback: no path and no code can be in the answer.
    """
    if isinstance(error, RetinueError):
        return type(error).__name__
    if isinstance(error, OSError) and (code := errno.errorcode.get(error.errno or 0)):
        return f"OSError:{code}"
    if isinstance(error, BaseException):
        name = type(error).__name__
        return name if _PLAIN_NAME.match(name) else "Error"
    return "UnknownError"
