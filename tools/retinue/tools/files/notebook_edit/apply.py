"""What a change does to the text of a notebook: one cell, and not a byte beside it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from retinue.tools.files.notebooks import Json, Notebook, lines_like, name_of, text_of

Mode = Literal["replace", "insert", "delete"]
CellType = Literal["code", "markdown"]


@dataclass(frozen=True, slots=True)
class Change:
    """`cell_id` None inserts at the start. `cell_type` None keeps the type, and is code for a new cell."""

    mode: Mode
    source: str = ""
    cell_id: str | None = None
    cell_type: CellType | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """`text` is the whole file. `mode` is what was done: a replacement behind the last cell is an insertion."""

    text: str
    mode: Mode
    cell_id: str
    cell_type: str
    old_source: str | None = None


def apply(book: Notebook, change: Change, new_id: Callable[[], str]) -> Changed | None:
    """None when there is no such cell."""
    index = -1 if change.cell_id is None else book.index_of(change.cell_id)
    if index is None:
        return None
    count = len(book.cells)
    if change.mode == "insert":
        return _insert(book, index + 1, change, new_id) if index < count else None
    if index == count and change.mode == "replace":
        return _insert(book, index, change, new_id)
    if not 0 <= index < count:
        return None
    return _delete(book, index) if change.mode == "delete" else _replace(book, index, change)


def _insert(book: Notebook, index: int, change: Change, new_id: Callable[[], str]) -> Changed:
    kind = change.cell_type or "code"
    taken = [cell.get("id") for cell in book.cells]
    named: Json = {}
    while book.has_ids and (not named or named["id"] in taken):
        named = {"id": new_id()}
    outputs: Json = {"execution_count": None} if kind == "code" else {}
    usual: JsonValue = book.cells[0].get("source") if book.cells else None
    cell: Json = {
        "cell_type": kind,
        **outputs,
        **named,
        "metadata": {},
        **({"outputs": []} if kind == "code" else {}),
        "source": lines_like(usual, change.source),
    }
    return Changed(book.inserted(index, cell), "insert", name_of(cell, index), kind)


def _replace(book: Notebook, index: int, change: Change) -> Changed:
    """What came out of the old source is no output of the new one."""
    old = book.cells[index]
    kind = change.cell_type or str(old.get("cell_type", "code"))
    cell: Json = {**old, "cell_type": kind, "source": lines_like(old.get("source"), change.source)}
    if kind == "code":
        cell = {**cell, "execution_count": None, "outputs": []}
        cell.pop("attachments", None)
    else:
        cell.pop("execution_count", None)
        cell.pop("outputs", None)
    return Changed(book.replaced(index, cell), "replace", name_of(old, index), kind, text_of(old.get("source")))


def _delete(book: Notebook, index: int) -> Changed:
    old = book.cells[index]
    kind = str(old.get("cell_type", "code"))
    return Changed(book.without(index), "delete", name_of(old, index), kind, text_of(old.get("source")))
