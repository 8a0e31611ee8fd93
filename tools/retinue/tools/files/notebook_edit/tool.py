"""NotebookEdit: one cell of a Jupyter notebook."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pydantic import Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    PathSubject,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.files import disk, paths
from retinue.tools.files.change import ChangeRefused, early
from retinue.tools.files.codec import decode
from retinue.tools.files.notebook_edit.apply import CellType, Change, Changed, Mode, apply
from retinue.tools.files.notebook_edit.constants import NotebookRefusal
from retinue.tools.files.notebooks import parse
from retinue.tools.files.read.constants import NOTEBOOK_BYTES
from retinue.tools.text import is_unicode, one_line
from retinue.tools.threads import in_thread


class NotebookEditInput(ToolInput):
    notebook_path: str = Field(description="The notebook to change")
    cell_id: str | None = Field(
        None, description="The cell, by its id or as cell-N; to insert, the cell before the new one, none for the start"
    )
    new_source: str = Field(description="The new text of the cell; ignored when deleting")
    cell_type: CellType | None = Field(None, description="code or markdown; needed to insert")
    edit_mode: Mode = Field("replace", description="What to do with the cell")


class NotebookEditOutput(ToolData):
    notebook_path: str
    cell_id: str
    cell_type: str
    language: str
    edit_mode: Mode
    new_source: str
    old_source: str | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """A change that is possible on the file as it is now."""

    before: disk.Snapshot
    after: bytes
    changed: Changed
    language: str
    partial: bool


class NotebookEdit(Tool[NotebookEditInput, NotebookEditOutput]):
    name = "NotebookEdit"
    group = "files"
    search_hint = "change a cell of a Jupyter notebook"

    def description(self) -> str:
        return "Replace, insert or delete one cell of a notebook"

    def traits(self, args: NotebookEditInput) -> Traits:
        return Traits()

    def subject(self, args: NotebookEditInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.notebook_path, ctx), write=True)

    def title(self, args: NotebookEditInput) -> str:
        what = f"{args.edit_mode} {one_line(args.cell_id)}" if args.cell_id else args.edit_mode
        return f"NotebookEdit {one_line(args.notebook_path)} ({what})"

    def backfill_observable_input(self, args: NotebookEditInput, ctx: ToolContext) -> NotebookEditInput:
        return args.model_copy(update={"notebook_path": paths.observable(args.notebook_path, ctx)})

    async def validate_input(self, args: NotebookEditInput, ctx: ToolContext) -> Validation:
        try:
            _check_words(args)
        except ChangeRefused as refused:
            return Refused(str(refused), refused.code)
        return await early(args.notebook_path, ctx, lambda place: in_thread(_plan, args, place, ctx))

    async def check_permissions(self, args: NotebookEditInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.notebook_path, ctx, write=True)

    async def call(
        self, args: NotebookEditInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[NotebookEditOutput]:
        _check_words(args)
        return ToolResult(await in_thread(_perform, args, paths.locate(args.notebook_path, ctx), ctx))

    def to_content(self, data: NotebookEditOutput) -> str:
        done = {"replace": "Replaced", "insert": "Inserted", "delete": "Deleted"}[data.edit_mode]
        return f"{done} {data.cell_type} cell {data.cell_id} of {data.notebook_path}."


def _check_words(args: NotebookEditInput) -> None:
    if not args.notebook_path.casefold().endswith(".ipynb"):
        raise ChangeRefused(f"{args.notebook_path} is no notebook: use Edit.", NotebookRefusal.NO_NOTEBOOK)
    if not is_unicode(args.new_source):
        raise ChangeRefused("new_source contains half of a surrogate pair.", NotebookRefusal.WRONG_FIELDS)
    if args.edit_mode == "insert" and args.cell_type is None:
        raise ChangeRefused("To insert a cell, cell_type must say what it is.", NotebookRefusal.WRONG_FIELDS)
    if args.edit_mode != "insert" and not args.cell_id:
        raise ChangeRefused(f"To {args.edit_mode} a cell, cell_id must name it.", NotebookRefusal.WRONG_FIELDS)


def _perform(args: NotebookEditInput, place: paths.Place, ctx: ToolContext) -> NotebookEditOutput:
    plan = _plan(args, place, ctx)
    after = disk.replace(place.real, plan.after, plan.before)
    ctx.files.put(place.real, after.seen(partial=plan.partial))
    return NotebookEditOutput(
        notebook_path=str(place.named),
        cell_id=plan.changed.cell_id,
        cell_type=plan.changed.cell_type,
        language=plan.language,
        edit_mode=plan.changed.mode,
        new_source="" if plan.changed.mode == "delete" else args.new_source,
        old_source=plan.changed.old_source,
    )


def _plan(args: NotebookEditInput, place: paths.Place, ctx: ToolContext) -> _Plan:
    before, partial = _before(place, ctx)
    text = decode(before.data)
    try:
        book = parse(text.raw)
    except ToolError as error:
        raise ChangeRefused(f"{place.named}: {error}", NotebookRefusal.NO_NOTEBOOK) from None
    change = Change(args.edit_mode, args.new_source, args.cell_id or None, args.cell_type)
    changed = apply(book, change, lambda: uuid.uuid4().hex[:8])
    if changed is None:
        raise ChangeRefused(
            f"{place.named} has no cell {args.cell_id}; it has {len(book.cells)} cells. Read it to see their ids.",
            NotebookRefusal.NO_CELL,
        )
    try:
        after = text.bom + text.encode(changed.text)
    except UnicodeEncodeError:
        raise ToolError(
            f"{place.named} is encoded as {text.encoding}, which lacks a character of new_source."
        ) from None
    return _Plan(before, after, changed, book.language, partial)


def _before(place: paths.Place, ctx: ToolContext) -> tuple[disk.Snapshot, bool]:
    """The notebook as it is now, and whether the agent has seen only a part; ChangeRefused when it knows another."""
    try:
        before = disk.take(place.real, limit=NOTEBOOK_BYTES)
    except disk.TooLarge as error:
        raise ChangeRefused(str(error), NotebookRefusal.TOO_LARGE) from None
    if before is None:
        raise ChangeRefused(str(paths.missing(place, ctx)), NotebookRefusal.MISSING)
    seen = ctx.files.get(place.real)
    if seen is None:
        raise ChangeRefused(f"{place.named} has not been read yet. Read it first.", NotebookRefusal.UNREAD)
    if seen.digest != disk.digest_of(before.data):
        raise ChangeRefused(
            f"{place.named} has changed since it was read. Read it again before changing it.", NotebookRefusal.CHANGED
        )
    return before, seen.partial
