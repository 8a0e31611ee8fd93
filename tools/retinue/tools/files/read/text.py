"""The kinds of files, and the lines of those that are text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BufferedReader
from itertools import islice

from retinue.tools.errors import ToolError
from retinue.tools.files import disk, paths
from retinue.tools.files.codec import decode, is_binary
from retinue.tools.files.read.constants import DEFAULT_LINES, WHOLE_FILE_BYTES
from retinue.tools.files.read.images import kind_of
from retinue.tools.files.read.window import Window, lines_of, numbered, window
from retinue.tools.files.state import Seen


@dataclass(frozen=True, slots=True)
class View:
    """`snapshot` is all of the file; of one that is not taken into memory whole there is only what was `seen`."""

    window: Window
    snapshot: disk.Snapshot | None = None
    seen: Seen | None = None

    @property
    def numbered(self) -> str:
        return numbered(self.window.lines, self.window.first)


def kind_by(head: bytes, suffix: str) -> str:
    """`text`, `pdf`, `notebook`, or the media type of an image: by the first bytes, because names lie. Pure."""
    if suffix.casefold() == ".ipynb":
        return "notebook"
    if head.startswith(b"%PDF-"):
        return "pdf"
    return kind_of(head) or "text"


def read(file: BufferedReader, descriptor: int, offset: int | None, limit: int | None, place: paths.Place) -> View:
    """ToolError for what is no text."""
    found = os.fstat(descriptor)
    if found.st_size > WHOLE_FILE_BYTES:
        seen = Seen(mtime_ns=found.st_mtime_ns, size=found.st_size, digest="", partial=True)
        return View(_stream(file, offset, limit, place), seen=seen)
    snapshot = disk.Snapshot(file.read(), found)
    if is_binary(snapshot.data):
        raise ToolError(_binary(place))
    return View(window(lines_of(decode(snapshot.data).visible()), offset, limit), snapshot)


def _stream(file: BufferedReader, offset: int | None, limit: int | None, place: paths.Place) -> Window:
    """Only the lines that were asked for."""
    if is_binary(file.peek(WHOLE_FILE_BYTES)):
        raise ToolError(_binary(place))
    first = max(offset or 1, 1)
    chosen = islice(file, first - 1, first - 1 + (limit or DEFAULT_LINES))
    lines = [line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "replace") for line in chosen]
    view = window(lines, None, limit)
    return Window(view.lines, first, first + len(lines), view.cut, view.shortened)


def _binary(place: paths.Place) -> str:
    return f"{place.named} is a binary file; it cannot be shown as text."
