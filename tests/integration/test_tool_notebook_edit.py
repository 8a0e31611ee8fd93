"""NotebookEdit on real files."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.tools.base import PathSubject, Refused, ToolContext, Traits
from retinue.tools.errors import ToolError
from retinue.tools.files import disk
from retinue.tools.files.notebook_edit.tool import NotebookEdit, NotebookEditInput
from retinue.tools.files.read.tool import Read, ReadInput
from retinue.tools.files.state import FileState
from retinue.tools.render.blocks import Diff, DiffLine, Heading, Line
from retinue.tools.shell.runner import KeeperShell

BOOK: dict[str, JsonValue] = {
    "cells": [
        {"cell_type": "code", "execution_count": 1, "id": "a", "metadata": {}, "outputs": [{}], "source": ["1"]},
        {"cell_type": "markdown", "id": "b", "metadata": {"k": 1}, "source": ["# ü"]},
    ],
    "metadata": {"language_info": {"name": "julia"}, "custom": [1.0, 1e300]},
    "nbformat": 4,
    "nbformat_minor": 5,
}


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    return ToolContext(agent="a~1", cwd=tmp_path, root=tmp_path, files=FileState(), shell=KeeperShell())


@pytest.fixture
async def book(ctx: ToolContext) -> Path:
    file = ctx.root / "a.ipynb"
    file.write_text(json.dumps(BOOK, indent=1, ensure_ascii=False) + "\n")
    await read(ctx)
    return file


async def read(ctx: ToolContext, **more: object) -> None:
    await Read().call(ReadInput.model_validate({"file_path": "a.ipynb", **more}), ctx, lambda _: None)


async def edit(ctx: ToolContext, **given: object) -> str:
    tool = NotebookEdit()
    args = NotebookEditInput.model_validate({"notebook_path": "a.ipynb", "new_source": "", **given})
    verdict = await tool.validate_input(args, ctx)
    if isinstance(verdict, Refused):
        raise ToolError(f"{verdict.code}: {verdict.message}")
    return tool.to_content((await tool.call(args, ctx, lambda _: None)).data)


async def test_a_cell_is_replaced_and_all_else_stays(ctx: ToolContext, book: Path) -> None:
    book.chmod(0o640)
    before = book.read_text()
    assert await edit(ctx, cell_id="b", new_source="# neu") == f"Replaced markdown cell b of {book}."
    assert book.read_text() == before.replace("# ü", "# neu")
    assert stat.S_IMODE(book.stat().st_mode) == 0o640
    assert await edit(ctx, cell_id="a", new_source="2") == f"Replaced code cell a of {book}."
    cell = json.loads(book.read_text())["cells"][0]
    assert (cell["source"], cell["outputs"], cell["execution_count"]) == (["2"], [], None)


async def test_cells_are_inserted_and_deleted(ctx: ToolContext, book: Path) -> None:
    await edit(ctx, cell_id="a", new_source="x = 1\ny", cell_type="code", edit_mode="insert")
    await edit(ctx, new_source="top", cell_type="markdown", edit_mode="insert")
    cells = json.loads(book.read_text())["cells"]
    assert [cell["source"] for cell in cells] == [["top"], ["1"], ["x = 1\n", "y"], ["# ü"]]
    assert len({cell["id"] for cell in cells}) == 4
    await edit(ctx, cell_id=cells[2]["id"], edit_mode="delete")
    await edit(ctx, cell_id="cell-0", edit_mode="delete")
    assert [cell["id"] for cell in json.loads(book.read_text())["cells"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"cell_id": "b", "edit_mode": "insert"}, "1: To insert a cell, cell_type must say"),
        ({"edit_mode": "delete"}, "1: To delete a cell, cell_id must name it"),
        ({}, "1: To replace a cell, cell_id must name it"),
        ({"cell_id": "b", "new_source": "\udc80"}, "1: new_source contains half of a surrogate"),
        ({"notebook_path": ".git/a.ipynb", "cell_id": "b"}, r"2: .*inside \.git"),
        ({"notebook_path": "b.ipynb", "cell_id": "b"}, "4: File does not exist"),
        ({"notebook_path": "a.py", "cell_id": "b"}, "5: a.py is no notebook: use Edit"),
        ({"notebook_path": "unread.ipynb", "cell_id": "b"}, "6: .*has not been read yet"),
        ({"cell_id": "zzz"}, "8: .* has no cell zzz; it has 2 cells"),
    ],
)
async def test_a_change_that_cannot_be_is_refused_with_its_code(
    ctx: ToolContext, book: Path, args: dict[str, str], message: str
) -> None:
    (ctx.root / "unread.ipynb").write_text("{}")
    before = book.read_bytes()
    with pytest.raises(ToolError, match=message):
        await edit(ctx, **args)
    assert book.read_bytes() == before


async def test_a_notebook_that_changed_since_or_is_none_is_refused(ctx: ToolContext, book: Path) -> None:
    book.write_text("{}")
    with pytest.raises(ToolError, match=r"7: .*has changed since it was read"):
        await edit(ctx, cell_id="b")
    book.write_text("no JSON")
    snapshot = disk.take(book)
    assert snapshot is not None
    ctx.files.put(book, snapshot.seen(partial=False))
    with pytest.raises(ToolError, match=r"5: .*is not JSON"):
        await edit(ctx, cell_id="b")


async def test_a_part_that_was_read_is_enough(ctx: ToolContext, book: Path) -> None:
    await read(ctx, offset=2, limit=1)
    await edit(ctx, cell_id="b", new_source="new")
    seen = ctx.files.get(book)
    assert seen is not None
    assert seen.partial


async def test_outside_of_the_workspace_is_asked_for_and_rules_see_a_write(ctx: ToolContext) -> None:
    tool = NotebookEdit()
    args = NotebookEditInput.model_validate({"notebook_path": "../x.ipynb", "cell_id": "a", "new_source": ""})
    decision = await tool.check_permissions(args, ctx)
    assert decision is not None
    assert decision.behavior == "ask"
    assert tool.subject(args, ctx) == PathSubject(ctx.root.parent / "x.ipynb", write=True)
    assert tool.traits(args) == Traits()


async def test_people_see_what_changed_in_the_cell(ctx: ToolContext, book: Path) -> None:
    tool = NotebookEdit()
    args = NotebookEditInput.model_validate({"notebook_path": "a.ipynb", "cell_id": "b", "new_source": "# neu\nmore"})
    data = (await tool.call(args, ctx, lambda _: None)).data
    shown = tool.renderer()
    assert shown.use(args) == (Heading("NotebookEdit", "a.ipynb (replace b)"),)
    assert shown.result(args, data) == (
        Line("Replaced markdown cell b"),
        Diff(((DiffLine("-", 1, "# ü"), DiffLine("+", 1, "# neu"), DiffLine("+", 2, "more")),), "cell.md"),
    )
    assert shown.grouped([args, args]) == (Heading("NotebookEdit", "2 cells of a.ipynb"),)
    observed = tool.backfill_observable_input(args, ctx)
    assert (observed.notebook_path, args.notebook_path) == (str(book), "a.ipynb")
