"""From the protocol's answers to entries with a file, a line and a column. Pure, but for reading the lines of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import JsonValue, TypeAdapter, ValidationError

from retinue.tools.errors import ToolError
from retinue.tools.lsp import protocol
from retinue.tools.lsp.positions import Encoding, from_units
from retinue.tools.lsp.uris import path_of
from retinue.tools.ports import LanguageEntry

T = TypeVar("T")

_DEEPEST = 100

LineOf = Callable[[Path, int], str]
"""The text of one line, counted from 0; empty where it cannot be read."""


class Reader:
    """Reads answers of a server that counts columns in `encoding`."""

    def __init__(self, encoding: Encoding, line_of: LineOf) -> None:
        self._encoding: Encoding = encoding
        self._line_of = line_of

    def locations(self, found: JsonValue) -> tuple[LanguageEntry, ...]:
        listed: JsonValue = [found] if isinstance(found, dict) else found
        entries = (
            self._entry(each.uri, each.range.start)
            if isinstance(each, protocol.Location)
            else self._entry(each.target_uri, each.target_selection_range.start)
            for each in _valid(_LOCATIONS, listed)
        )
        return _once(entries)

    def symbols(self, found: JsonValue, uri: str) -> tuple[LanguageEntry, ...]:
        return tuple(entry for each in _valid(_SYMBOLS, found) for entry in self._symbol(each, uri, 0))

    def items(self, found: JsonValue) -> tuple[LanguageEntry, ...]:
        return tuple(map(self._item, _valid(_ITEMS, found)))

    def callers(self, found: JsonValue) -> tuple[LanguageEntry, ...]:
        """Each place of a call, within the function that makes it."""
        entries: list[LanguageEntry] = []
        for each in _valid(_INCOMING, found):
            starts = [span.start for span in each.from_ranges] or [each.from_.selection_range.start]
            entries += [self._item(each.from_, start) for start in starts]
        return _once(entries)

    def callees(self, found: JsonValue) -> tuple[LanguageEntry, ...]:
        return _once(self._item(each.to) for each in _valid(_OUTGOING, found))

    def diagnostics(self, found: Iterable[protocol.Diagnostic], uri: str) -> tuple[LanguageEntry, ...]:
        return tuple(
            self._entry(
                uri,
                each.range.start,
                kind=_named(protocol.SEVERITIES, each.severity),
                name=each.message,
                detail=" ".join(str(part) for part in (each.source, each.code) if part),
            )
            for each in found
        )

    def _symbol(
        self, each: protocol.DocumentSymbol | protocol.SymbolInformation, uri: str, depth: int
    ) -> Iterable[LanguageEntry]:
        kind = _named(protocol.SYMBOL_KINDS, each.kind)
        if isinstance(each, protocol.SymbolInformation):
            start = each.location.range.start if each.location.range else _START
            yield self._entry(each.location.uri, start, name=each.name, kind=kind, detail=each.container_name or "")
            return
        yield self._entry(
            uri, each.selection_range.start, name=each.name, kind=kind, detail=each.detail or "", depth=depth
        )
        for child in (each.children or ()) if depth < _DEEPEST else ():
            yield from self._symbol(child, uri, depth + 1)

    def _item(self, each: protocol.CallHierarchyItem, start: protocol.Position | None = None) -> LanguageEntry:
        return self._entry(
            each.uri,
            start or each.selection_range.start,
            name=each.name,
            kind=_named(protocol.SYMBOL_KINDS, each.kind),
            detail=each.detail or "",
        )

    def _entry(
        self, uri: str, start: protocol.Position, *, name: str = "", kind: str = "", detail: str = "", depth: int = 0
    ) -> LanguageEntry:
        path = path_of(uri)
        line = self._line_of(path, start.line) if path is not None and self._encoding != "utf-32" else ""
        column = from_units(line, start.character, self._encoding) if line else start.character
        return LanguageEntry(
            file=os.fsencode(path).decode("utf-8", "replace") if path is not None else uri,
            line=start.line + 1,
            character=column + 1,
            name=name,
            kind=kind,
            detail=detail,
            depth=depth,
        )


def hover_text(found: JsonValue) -> str:
    if found is None:
        return ""
    contents = _valid(_HOVER, found).contents
    return "\n\n".join(map(_marked, contents if isinstance(contents, tuple) else (contents,))).strip()


def report_of(found: JsonValue) -> tuple[protocol.Diagnostic, ...]:
    return _valid(_REPORT, found or {}).items


def published_in(found: JsonValue) -> protocol.Published:
    return _valid(_PUBLISHED, found)


def items_in(found: JsonValue) -> list[JsonValue]:
    """The items of a call hierarchy as the server sent them: it wants them back unchanged."""
    return found if isinstance(found, list) else []


def _marked(each: protocol.Marked | str) -> str:
    if isinstance(each, str):
        return each
    return f"```{each.language}\n{each.value}\n```" if each.language else each.value


def _valid(adapter: TypeAdapter[T], found: JsonValue) -> T:
    try:
        return adapter.validate_python(found if found is not None else ())
    except (ValidationError, RecursionError):
        raise ToolError("The language server gave an answer that does not fit the protocol.") from None


def _once(entries: Iterable[LanguageEntry]) -> tuple[LanguageEntry, ...]:
    return tuple(dict.fromkeys(entries))


def _named(names: tuple[str, ...] | list[str], number: int) -> str:
    return names[number] if 0 < number < len(names) else "?"


_START = protocol.Position(line=0, character=0)
_LOCATIONS: TypeAdapter[protocol.Locations] = TypeAdapter(protocol.Locations)
_SYMBOLS: TypeAdapter[protocol.Symbols] = TypeAdapter(protocol.Symbols)
_ITEMS: TypeAdapter[tuple[protocol.CallHierarchyItem, ...]] = TypeAdapter(tuple[protocol.CallHierarchyItem, ...])
_INCOMING: TypeAdapter[tuple[protocol.IncomingCall, ...]] = TypeAdapter(tuple[protocol.IncomingCall, ...])
_OUTGOING: TypeAdapter[tuple[protocol.OutgoingCall, ...]] = TypeAdapter(tuple[protocol.OutgoingCall, ...])
_HOVER: TypeAdapter[protocol.Hover] = TypeAdapter(protocol.Hover)
_REPORT: TypeAdapter[protocol.Report] = TypeAdapter(protocol.Report)
_PUBLISHED: TypeAdapter[protocol.Published] = TypeAdapter(protocol.Published)
