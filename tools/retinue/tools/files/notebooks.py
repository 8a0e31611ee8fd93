"""Jupyter notebooks as the JSON text that they are: cells, where they stand, and how the file is written. Pure.

Only what is read or changed is looked at, so that what this product does not know of stays as it is, to the byte.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from retinue.tools.errors import ToolError

Json = dict[str, JsonValue]
_INDEX = re.compile(r"cell-([0-9]{1,6})\Z")
_INDENT = re.compile(r"\s*\{\r?\n([ \t]+)\"")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Notebook:
    """`spans` are where in the text each cell begins and ends; `opening` is behind the bracket of their list."""

    text: str
    content: Json
    cells: tuple[Json, ...]
    spans: tuple[tuple[int, int], ...]
    opening: int

    @property
    def language(self) -> str:
        metadata = _object(self.content.get("metadata"))
        named = _object(metadata.get("language_info")).get("name")
        found = named or _object(metadata.get("kernelspec")).get("language")
        return found if isinstance(found, str) else "python"

    @property
    def has_ids(self) -> bool:
        """Cells have ids from version 4.5 on."""
        major, minor = self.content.get("nbformat"), self.content.get("nbformat_minor")
        return isinstance(major, int) and isinstance(minor, int) and (major, minor) >= (4, 5)

    def index_of(self, cell_id: str) -> int | None:
        """By its id, else by the form `cell-N`, counted from 0; one behind the last is a place too."""
        for index, cell in enumerate(self.cells):
            if cell.get("id") == cell_id:
                return index
        match = _INDEX.match(cell_id)
        index = int(match[1]) if match else -1
        return index if 0 <= index <= len(self.cells) else None

    def replaced(self, index: int, cell: Json) -> str:
        start, end = self.spans[index]
        return self.text[:start] + self._written(cell, start) + self.text[end:]

    def inserted(self, index: int, cell: Json) -> str:
        """With what stands between the cells of this file, before the cell that is at `index` now, or at the end."""
        if not self.spans:
            closing = _after_space(self.text, self.opening)
            return self.text[: self.opening] + self._written(cell, None) + self.text[closing:]
        if index < len(self.spans):
            start = self.spans[index][0]
            return f"{self.text[:start]}{self._written(cell, start)}{self._between()}{self.text[start:]}"
        start, end = self.spans[-1]
        return f"{self.text[:end]}{self._between()}{self._written(cell, start)}{self.text[end:]}"

    def without(self, index: int) -> str:
        start, end = self.spans[index]
        if index + 1 < len(self.spans):
            return self.text[:start] + self.text[self.spans[index + 1][0] :]
        if index:
            return self.text[: self.spans[index - 1][1]] + self.text[end:]
        return self.text[: self.opening] + self.text[_after_space(self.text, end) :]

    def _between(self) -> str:
        start, end = self.spans[0]
        if len(self.spans) == 1:
            return f",{self.text[self.opening : start] or ' '}"
        return self.text[end : self.spans[1][0]]

    def _written(self, cell: Json, start: int | None) -> str:
        """As the rest of the file: indentation, line ends, and whether other than ASCII is escaped."""
        match = _INDENT.match(self.text)
        ascii_only = self.text.isascii() and "\\u" in self.text
        if match is None:
            return json.dumps(cell, ensure_ascii=ascii_only)
        newline = "\r\n" if "\r\n" in match[0] else "\n"
        lead = match[1] * 2 if start is None else _lead(self.text, start)
        text = json.dumps(cell, indent=match[1], ensure_ascii=ascii_only).replace("\n", newline + lead)
        return f"{newline}{lead}{text}{newline}{match[1]}" if start is None else text


def parse(text: str) -> Notebook:
    """ToolError when it is no notebook with a list of cells."""
    try:
        content = cast(JsonValue, json.loads(text))
    except (ValueError, RecursionError) as error:
        raise ToolError(f"The file is no notebook: it is not JSON ({error}).") from None
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance(cells, list):
        raise ToolError("The file is no notebook of format 4 or later: it has no list of cells.")
    if not all(isinstance(cell, dict) for cell in cells):
        raise ToolError("The file is no notebook: one of its cells is no object.")
    opening = _cells_at(text) + 1
    return Notebook(text, content, tuple(cast(list[Json], cells)), tuple(_spans(text, opening)), opening)


def name_of(cell: Json, index: int) -> str:
    found = cell.get("id")
    return found if isinstance(found, str) else f"cell-{index}"


def text_of(value: JsonValue) -> str:
    """Texts are one string, or a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def lines_like(before: JsonValue, text: str) -> JsonValue:
    """`text` in the form that `before` has; the usual one is a list of lines."""
    return text if isinstance(before, str) else [*re.findall(r"[^\n]*\n|[^\n]+", text)]


def _cells_at(text: str) -> int:
    """Where the list of cells begins, in text that is known to be such an object; of two keys the last one counts."""
    found = 0
    at = _after_space(text, _after_space(text, 0) + 1)
    while text[at] != "}":
        key, at = cast(tuple[str, int], _DECODER.raw_decode(text, at))
        value = _after_space(text, _after_space(text, at) + 1)
        if key == "cells":
            found = value
        at = _after_space(text, _DECODER.raw_decode(text, value)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return found


def _spans(text: str, opening: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    at = _after_space(text, opening)
    while text[at] != "]":
        end = _DECODER.raw_decode(text, at)[1]
        spans.append((at, end))
        at = _after_space(text, end)
        if text[at] == ",":
            at = _after_space(text, at + 1)
    return spans


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _lead(text: str, start: int) -> str:
    """What stands before this place in its line, when that is only space."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line if not line.strip() else ""


def _object(value: JsonValue) -> Json:
    return value if isinstance(value, dict) else {}
