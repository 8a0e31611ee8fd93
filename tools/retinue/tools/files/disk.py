"""Reading and replacing one regular file. Everything here blocks and belongs into a thread."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from retinue.tools.errors import ToolError
from retinue.tools.files.state import Seen
from retinue.tools.files.swap import exchange

MAX_EDIT_BYTES = 1024 * 1024 * 1024
_TMPFILE: int = getattr(os, "O_TMPFILE", os.O_DIRECTORY)
"""Where it is unknown, a folder is opened for writing, which fails."""


class TooLarge(ToolError):
    """More than this tool takes into memory."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The bytes of a file and what identifies this version of it."""

    data: bytes
    stat: os.stat_result

    def seen(self, *, partial: bool, shown: str = "") -> Seen:
        return Seen(
            mtime_ns=self.stat.st_mtime_ns,
            size=self.stat.st_size,
            digest=digest_of(self.data),
            partial=partial,
            shown=shown,
        )


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def open_regular(path: Path) -> int:
    """A descriptor to read from. FileNotFoundError when it is not there, ToolError when it is not a regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ToolError(f"Cannot open {path}: {error.strerror}.") from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return descriptor
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory, not a file. Use Glob, or `ls` in the shell, to list it.")
    raise ToolError(f"{path} is not a regular file (a device, pipe or socket).")


def take(path: Path, *, limit: int = MAX_EDIT_BYTES) -> Snapshot | None:
    """The file as it is now; None when there is none."""
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_size > limit:
            raise TooLarge(f"{path} is too large to be changed by this tool ({found.st_size:,} bytes).")
        return Snapshot(file.read(), found)


def whole(file: BufferedReader, descriptor: int, limit: int, named: Path) -> Snapshot:
    """All of an open file. ToolError when it is larger than the limit."""
    found = os.fstat(descriptor)
    if found.st_size > limit:
        raise ToolError(f"{named} is {found.st_size:,} bytes; files of its kind are read up to {limit:,}.")
    return Snapshot(file.read(limit + 1), found)


def replace(path: Path, data: bytes, before: Snapshot | None) -> Snapshot:
    """Put `data` in the place of `before`, all or nothing, with its mode bits; None creates.

    ToolError when the file is no longer the one of `before`, and then it is left as it is. Where the kernel can
    exchange two files there is no moment between the last look and the change: the look comes after it, at the file
    that was taken out, and puts it back when it is another one. Other names of the same file (hard links) keep the old
    bytes: they may belong to a store that others share.
    """
    temporary = path.with_name(f".retinue-{os.urandom(8).hex()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        written = _unnamed(temporary, data, before) or _named(temporary, data, before)
        _place(path, temporary, before)
    except OSError as error:
        raise ToolError(f"Cannot write {path}: {error.strerror}.") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    return Snapshot(data, written)


def _unnamed(temporary: Path, data: bytes, before: Snapshot | None) -> os.stat_result | None:
    """Gets its name when it is whole: who is killed before leaves nothing behind. None where that cannot be done."""
    try:
        descriptor = os.open(temporary.parent, _TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    except OSError:
        return None
    try:
        written = _fill(descriptor, data, before)
        os.link(f"/proc/self/fd/{descriptor}", temporary)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return written


def _named(temporary: Path, data: bytes, before: Snapshot | None) -> os.stat_result:
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    try:
        return _fill(descriptor, data, before)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, data: bytes, before: Snapshot | None) -> os.stat_result:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
    if before is not None:
        if (before.stat.st_uid, before.stat.st_gid) != (os.geteuid(), os.getegid()):
            with suppress(PermissionError):
                os.fchown(descriptor, before.stat.st_uid, before.stat.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(before.stat.st_mode))
    os.fsync(descriptor)
    return os.fstat(descriptor)


def _place(path: Path, temporary: Path, before: Snapshot | None) -> None:
    if before is None:
        try:
            os.link(temporary, path, follow_symlinks=False)  # unlike a rename, this never replaces what appeared since
        except FileExistsError:
            raise ToolError(f"{path} was created by somebody else just now. Read it, then try again.") from None
        except OSError:
            _rename_if(path, temporary, lambda: not os.path.lexists(path))
        return
    try:
        swapped = _same(path, before.stat) and exchange(temporary, path)
    except FileNotFoundError:
        raise _changed(path) from None
    if not swapped:
        _rename_if(path, temporary, lambda: _same(path, before.stat))
    elif not _is(temporary, before):
        _put_back(path, temporary)
        raise _changed(path)


def _put_back(path: Path, temporary: Path) -> None:
    try:
        exchange(temporary, path)
    except FileNotFoundError:  # ours was deleted meanwhile
        os.rename(temporary, path)


def _rename_if(path: Path, temporary: Path, unchanged: Callable[[], bool]) -> None:
    if not unchanged():
        raise _changed(path)
    os.rename(temporary, path)


def _changed(path: Path) -> ToolError:
    return ToolError(f"{path} was changed by somebody else just now. Read it again, then try again.")


def _is(path: Path, before: Snapshot) -> bool:
    """Whether it is that file, with those bytes: a change within one tick of the clock leaves no other trace."""
    try:
        now = take(path)
    except ToolError:
        return False
    return now is not None and now.data == before.data and _identity(now.stat) == _identity(before.stat)


def _same(path: Path, before: os.stat_result) -> bool:
    try:
        now = os.lstat(path)
    except OSError:
        return False
    return (*_identity(now), now.st_mtime_ns) == (*_identity(before), before.st_mtime_ns)


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_dev, found.st_size
