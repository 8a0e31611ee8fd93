"""Which files a server holds open, and what it must be told so that it sees them as they are now on disk."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.files import disk
from retinue.tools.files.codec import decode, is_binary
from retinue.tools.lsp.uris import uri_of
from retinue.tools.lsp.watch import Stamp, stamp_of

MAX_DOCUMENT_BYTES = 10 * 1024 * 1024
MAX_OPEN = 50
DID_OPEN = "textDocument/didOpen"

Notification = tuple[str, JsonValue]


@dataclass(slots=True)
class _Open:
    version: int
    stamp: Stamp
    text: str


class Documents:
    """Everything here blocks and belongs into a thread; one call at a time."""

    def __init__(self, languages: Mapping[str, str], most: int = MAX_OPEN) -> None:
        self._languages = languages
        self._most = most
        self._open: OrderedDict[Path, _Open] = OrderedDict()
        self._refused: dict[Path, str] = {}

    def lines(self, file: Path) -> list[str]:
        """ToolError for a file that could not be opened."""
        if file not in self._open:
            raise ToolError(self._refused.get(file, f"{file} is not open."))
        return self._open[file].text.split("\n")

    def catch_up(self, file: Path, changed: Iterable[Path] = ()) -> list[Notification]:
        """What to tell the server before it is asked about `file`: first what became of all that is open.

        Files that changed on disk are opened too: many servers look at the disk only after a while. Of what cannot be
        opened nothing is told; `lines` says why.
        """
        self._refused.clear()
        told = [news for path in list(self._open) for news in self._refresh(path)]
        for path in (*changed, file):
            if path not in self._open:
                told += self._opened(path)
        if file in self._open:
            self._open.move_to_end(file)
        while len(self._open) > self._most:
            oldest, _ = self._open.popitem(last=False)
            told.append(_closed(oldest))
        return told

    def _refresh(self, path: Path) -> list[Notification]:
        held = self._open[path]
        stamp = stamp_of(path)
        if stamp == held.stamp:
            return []
        try:
            stamp, text = _read(path)
        except ToolError:
            del self._open[path]
            return [_closed(path)]
        if text == held.text:
            held.stamp = stamp
            return []
        self._open[path] = _Open(held.version + 1, stamp, text)
        document: JsonValue = {"uri": uri_of(path), "version": held.version + 1}
        return [
            ("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}),
            ("textDocument/didSave", {"textDocument": {"uri": uri_of(path)}, "text": text}),
        ]

    def _opened(self, path: Path) -> list[Notification]:
        try:
            stamp, text = _read(path)
        except ToolError as error:
            self._refused[path] = str(error)
            return []
        self._open[path] = _Open(1, stamp, text)
        language = self._languages.get(path.suffix.lower(), "plaintext")
        document: JsonValue = {"uri": uri_of(path), "languageId": language, "version": 1, "text": text}
        return [(DID_OPEN, {"textDocument": document})]


def _closed(path: Path) -> Notification:
    return ("textDocument/didClose", {"textDocument": {"uri": uri_of(path)}})


def _read(path: Path) -> tuple[Stamp, str]:
    """ToolError for what is gone, too large or no text."""
    try:
        descriptor = disk.open_regular(path)
    except FileNotFoundError:
        raise ToolError(f"File does not exist: {path}.") from None
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_size > MAX_DOCUMENT_BYTES:
            raise ToolError(f"{path} is too large for a language server ({found.st_size:,} bytes).")
        data = file.read()
    if is_binary(data):
        raise ToolError(f"{path} is a binary file.")
    return (found.st_mtime_ns, found.st_size, found.st_ino), decode(data).visible()
