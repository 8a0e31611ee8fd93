"""Exchanging two files under their names in one step of the kernel."""

from __future__ import annotations

import errno
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE
_UNABLE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)


def exchange(one: Path, other: Path) -> bool:
    """At every moment both names have a file. False where this system cannot do it; OSError when a name is gone."""
    swap = _function()
    if swap is None:
        return False
    number = swap(os.fsencode(one), os.fsencode(other))
    if number in _UNABLE:
        return False
    if number:
        raise OSError(number, os.strerror(number), str(other))
    return True


@cache
def _function() -> Callable[[bytes, bytes], int] | None:
    """Linux' renameat2; it answers with the number of its error."""
    import ctypes  # here, so that a process that only lists tools does not load it

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return None
    call.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    call.restype = ctypes.c_int

    def swap(one: bytes, other: bytes) -> int:
        return 0 if call(_HERE, one, _HERE, other, _EXCHANGE) == 0 else ctypes.get_errno()

    return swap
