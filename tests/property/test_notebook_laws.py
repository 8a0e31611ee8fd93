"""A change of a notebook changes one cell, and not a byte beside it."""

from __future__ import annotations

import json
from typing import cast

from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import JsonValue

from retinue.tools.files.notebook_edit.apply import CellType, Change, Changed, Mode, apply
from retinue.tools.files.notebooks import Json, name_of, parse, text_of

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
sources = texts.flatmap(lambda text: st.sampled_from(cast("list[JsonValue]", [text, text.splitlines(keepends=True)])))


def cell(kind: str, source: JsonValue, metadata: Json, extra: Json) -> Json:
    return {**extra, "cell_type": kind, "metadata": metadata, "source": source}


cells = st.builds(
    cell,
    st.sampled_from(["code", "markdown", "raw"]),
    sources,
    st.dictionaries(texts, values, max_size=3),
    st.dictionaries(st.sampled_from(["execution_count", "outputs", "attachments", "x"]), values, max_size=2),
)


@st.composite
def notebooks(draw: st.DrawFn) -> str:
    """As any program may write them: indented by anything or not at all, any line end, escaped or not, odd spaces."""
    some = draw(st.lists(cells, max_size=5))
    with_ids = draw(st.booleans())
    listed: list[JsonValue] = [{**each, "id": f"id{n}"} if with_ids else each for n, each in enumerate(some)]
    head = draw(st.dictionaries(texts.filter(lambda key: key != "cells"), values, max_size=2))
    content: Json = {**head, "cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 5 if with_ids else 4}
    if draw(st.booleans()):
        content = dict(reversed(content.items()))
    indent = draw(st.sampled_from([None, 1, 2, 4, "\t"]))
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (",", ": "), (" ,", " : ")]))
    text = json.dumps(content, indent=indent, ensure_ascii=draw(st.booleans()), separators=separators)
    lines = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\n", " "])) + lines + draw(st.sampled_from(["", "\n", "\r\n\r\n"]))


def changes(count: int) -> st.SearchStrategy[Change]:
    return st.builds(
        Change,
        st.sampled_from(cast("list[Mode]", ["replace", "insert", "delete"])),
        texts,
        st.one_of(st.none(), st.integers(0, count).map(lambda n: f"cell-{n}")),
        st.sampled_from(cast("list[CellType | None]", ["code", "markdown", None])),
    )


@given(notebooks(), st.data())
def test_only_the_cell_that_was_named_is_another_one(text: str, draw: st.DataObject) -> None:
    book = parse(text)
    change = draw.draw(changes(len(book.cells)))
    changed = apply(book, change, lambda: "fresh")
    assume(changed is not None)
    assert changed is not None
    before, after = json.loads(text), json.loads(changed.text)
    index = -1 if change.cell_id is None else int(change.cell_id.removeprefix("cell-"))
    if changed.mode == "delete":
        del before["cells"][index]
    elif changed.mode == "replace":
        assert text_of(after["cells"][index]["source"]) == change.source
        before["cells"][index] = after["cells"][index]
    else:
        place = len(book.cells) if change.mode == "replace" else index + 1
        assert text_of(after["cells"][place]["source"]) == change.source
        assert name_of(after["cells"][place], place) == changed.cell_id
        before["cells"].insert(place, after["cells"][place])
    assert after == before
    assert list(after) == list(before)


@given(notebooks(), st.data())
def test_every_byte_outside_of_the_cell_stays(text: str, draw: st.DataObject) -> None:
    book = parse(text)
    assume(book.cells)
    index = draw.draw(st.integers(0, len(book.cells) - 1))
    start, end = book.spans[index]
    assert json.loads(text[start:end]) == book.cells[index]
    changed = apply(book, Change("replace", "new", f"cell-{index}"), lambda: "fresh")
    assert changed is not None
    assert changed.text.startswith(text[:start])
    assert changed.text.endswith(text[end:])


@given(notebooks(), st.data())
def test_inserting_and_deleting_again_gives_the_same_file(text: str, draw: st.DataObject) -> None:
    book = parse(text)
    assume(book.cells)
    index = draw.draw(st.integers(-1, len(book.cells) - 1))
    there = apply(book, Change("insert", "x", f"cell-{index}" if index >= 0 else None, "code"), lambda: "fresh")
    assert there is not None
    back = apply(parse(there.text), Change("delete", cell_id=f"cell-{index + 1}"), lambda: "fresh")
    assert back is not None
    assert back.text == text


def usual(*cells: Json, indent: int = 1, ascii_only: bool = False) -> str:
    content: Json = {"cells": [*cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=indent, ensure_ascii=ascii_only) + "\n"


def change(text: str, mode: Mode, **more: str | None) -> Changed:
    changed = apply(parse(text), Change(mode, **more), lambda: "fresh")  # type: ignore[arg-type]
    assert changed is not None
    return changed


CODE: Json = {
    "cell_type": "code",
    "execution_count": 1,
    "id": "a",
    "metadata": {"tags": ["x"]},
    "outputs": [{"output_type": "stream"}],
    "source": ["1\n", "2"],
}
TEXT: Json = {"cell_type": "markdown", "id": "b", "metadata": {}, "source": ["ä"]}


def test_a_file_as_jupyter_writes_it_is_written_like_jupyter_would() -> None:
    fresh: Json = {**CODE, "execution_count": None, "outputs": [], "source": ["new\n", "lines"]}
    assert change(usual(CODE, TEXT), "replace", source="new\nlines", cell_id="a").text == usual(fresh, TEXT)
    new: Json = {
        "cell_type": "code",
        "execution_count": None,
        "id": "fresh",
        "metadata": {},
        "outputs": [],
        "source": ["x"],
    }
    for start, where, end in (
        (usual(CODE, TEXT), "a", usual(CODE, new, TEXT)),
        (usual(CODE, TEXT), "b", usual(CODE, TEXT, new)),
        (usual(CODE, TEXT), None, usual(new, CODE, TEXT)),
        (usual(CODE), "a", usual(CODE, new)),
        (usual(), None, usual(new)),
        (usual(CODE, indent=4), "a", usual(CODE, new, indent=4)),
    ):
        assert change(start, "insert", source="x", cell_id=where, cell_type="code").text == end
    assert change(usual(CODE, TEXT), "delete", cell_id="a").text == usual(TEXT)
    assert change(usual(CODE, TEXT), "delete", cell_id="b").text == usual(CODE)
    assert change(usual(TEXT), "delete", cell_id="b").text == usual()


def test_letters_are_escaped_where_the_file_escapes_them() -> None:
    assert "\\u00df" in change(usual(TEXT, ascii_only=True), "replace", source="ß", cell_id="b").text
    assert "ß" in change(usual(TEXT), "replace", source="ß", cell_id="b").text


def test_a_cell_that_becomes_text_loses_its_outputs() -> None:
    after = json.loads(change(usual(CODE), "replace", source="# t", cell_id="a", cell_type="markdown").text)
    assert after["cells"] == [{"cell_type": "markdown", "id": "a", "metadata": {"tags": ["x"]}, "source": ["# t"]}]


def test_a_replacement_behind_the_last_cell_is_an_insertion() -> None:
    changed = change(usual(CODE), "replace", source="x", cell_id="cell-1")
    assert (changed.mode, changed.cell_id) == ("insert", "fresh")


def test_an_id_that_is_taken_is_not_given_again() -> None:
    ids = iter(["a", "b", "c"])
    changed = apply(parse(usual(CODE, TEXT)), Change("insert", "x", None, "code"), lambda: next(ids))
    assert changed is not None
    assert changed.cell_id == "c"


def test_a_cell_that_is_not_there_is_none() -> None:
    nowhere: list[tuple[Mode, str]] = [
        ("replace", "zzz"),
        ("delete", "cell-1"),
        ("insert", "cell-1"),
        ("delete", "cell-9999999"),
    ]
    for mode, where in nowhere:
        assert apply(parse(usual(CODE)), Change(mode, "x", where, "code"), lambda: "fresh") is None
