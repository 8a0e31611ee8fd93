"""Edit: exact replacement of text in one file."""

from __future__ import annotations

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
from retinue.tools.files import disk, paths
from retinue.tools.files.change import ChangeRefused, early
from retinue.tools.files.codec import Text, decode, is_binary
from retinue.tools.files.edit.apply import Found, find, splice
from retinue.tools.files.edit.constants import EditRefusal
from retinue.tools.files.hunks import Hunk, hunks
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread


class EditInput(ToolInput):
    file_path: str = Field(description="The file to change")
    old_string: str = Field(description="The text to replace; empty to create a file")
    new_string: str = Field(description="The text to put in its place; must differ from old_string")
    replace_all: bool = Field(False, description="Replace every occurrence instead of exactly one")


class EditOutput(ToolData):
    """`line` is where the first change begins, counted from 1. `hunks` show what changed in a file that was there."""

    file_path: str
    created: bool
    replacements: int
    line: int
    added: int
    removed: int
    hunks: tuple[Hunk, ...] = ()


@dataclass(frozen=True, slots=True)
class _Plan:
    """An edit that is possible on the file as it is now."""

    before: disk.Snapshot | None
    after: bytes
    replacements: int
    line: int
    partial: bool
    old_text: str = ""


class Edit(Tool[EditInput, EditOutput]):
    name = "Edit"
    group = "files"
    search_hint = "change text in a file"

    def description(self) -> str:
        return "Replace text in one file exactly"

    def traits(self, args: EditInput) -> Traits:
        return Traits()

    def subject(self, args: EditInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.file_path, ctx), write=True)

    def classifier_input(self, args: EditInput) -> str:
        return f"{args.file_path}: {args.old_string!r} becomes {args.new_string!r}"

    def title(self, args: EditInput) -> str:
        return f"{'Edit' if args.old_string else 'Create'} {one_line(args.file_path)}"

    def backfill_observable_input(self, args: EditInput, ctx: ToolContext) -> EditInput:
        return args.model_copy(update={"file_path": paths.observable(args.file_path, ctx)})

    async def validate_input(self, args: EditInput, ctx: ToolContext) -> Validation:
        try:
            _check_words(args)
        except ChangeRefused as refused:
            return Refused(str(refused), refused.code)
        return await early(args.file_path, ctx, lambda place: in_thread(_plan, args, place, ctx))

    async def check_permissions(self, args: EditInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.file_path, ctx, write=True)

    async def call(self, args: EditInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[EditOutput]:
        _check_words(args)
        return ToolResult(await in_thread(_perform, args, paths.locate(args.file_path, ctx), ctx))

    def to_content(self, data: EditOutput) -> str:
        if data.created:
            return f"Created {data.file_path} ({data.added} lines)."
        if data.replacements > 1:
            return f"Changed {data.file_path}: {data.replacements} occurrences, the first at line {data.line}."
        return f"Changed {data.file_path} at line {data.line}."


def _check_words(args: EditInput) -> None:
    if args.old_string == args.new_string:
        raise ChangeRefused(
            "old_string and new_string are the same: there is nothing to change.", EditRefusal.SAME_TEXT
        )
    if args.file_path.casefold().endswith(".ipynb"):
        raise ChangeRefused(f"{args.file_path} is a notebook: use NotebookEdit.", EditRefusal.NOTEBOOK)


def _perform(args: EditInput, place: paths.Place, ctx: ToolContext) -> EditOutput:
    plan = _plan(args, place, ctx)
    after = disk.replace(place.real, plan.after, plan.before)
    ctx.files.put(place.real, after.seen(partial=plan.partial))
    old_lines, new_lines = args.old_string.count("\n") + 1, args.new_string.count("\n") + 1
    return EditOutput(
        file_path=str(place.named),
        created=plan.before is None,
        replacements=plan.replacements,
        line=plan.line,
        added=new_lines * plan.replacements,
        removed=old_lines * plan.replacements if args.old_string else 0,
        hunks=hunks(plan.old_text, decode(plan.after).visible()) if args.old_string else (),
    )


def _plan(args: EditInput, place: paths.Place, ctx: ToolContext) -> _Plan:
    try:
        before = disk.take(place.real)
    except disk.TooLarge as error:
        raise ChangeRefused(str(error), EditRefusal.TOO_LARGE) from None
    if not args.old_string:
        return _creation(args, place, before)
    if before is None:
        raise ChangeRefused(str(paths.missing(place, ctx)), EditRefusal.MISSING)
    partial = _fresh(place, before, ctx)
    if is_binary(before.data):
        raise ChangeRefused(f"{place.named} is a binary file.", EditRefusal.NOT_FOUND)
    text = decode(before.data)
    old, new = (value.replace("\r\n", "\n") for value in (args.old_string, args.new_string))
    starts = _matches(args, text, old, place)
    return _Plan(
        before=before,
        after=splice(text, starts, old, new),
        replacements=len(starts.starts),
        line=text.normal.count("\n", 0, starts.starts[0]) + 1,
        partial=partial,
        old_text=text.visible(),
    )


def _creation(args: EditInput, place: paths.Place, before: disk.Snapshot | None) -> _Plan:
    if before is not None and before.data:
        raise ChangeRefused(
            f"{place.named} exists and has content; an empty old_string only creates. "
            "Give the text to replace, or use Write to overwrite the whole file.",
            EditRefusal.EXISTS,
        )
    return _Plan(before, Text("", "utf-8").encode_new(args.new_string), replacements=1, line=1, partial=False)


def _fresh(place: paths.Place, before: disk.Snapshot, ctx: ToolContext) -> bool:
    """Whether the agent knows only a part of the file; ChangeRefused when it knows none, or an older one."""
    seen = ctx.files.get(place.real)
    if seen is None:
        raise ChangeRefused(f"{place.named} has not been read yet. Read it first.", EditRefusal.UNREAD)
    if seen.digest != disk.digest_of(before.data):
        raise ChangeRefused(
            f"{place.named} has changed since it was read. Read it again before changing it.", EditRefusal.CHANGED
        )
    return seen.partial


def _matches(args: EditInput, text: Text, old: str, place: paths.Place) -> Found:
    found = find(text.normal, old)
    if not found.starts:
        raise ChangeRefused(f"old_string was not found in {place.named}:\n{args.old_string}", EditRefusal.NOT_FOUND)
    if len(found.starts) > 1 and not args.replace_all:
        raise ChangeRefused(
            f"old_string occurs {len(found.starts)} times in {place.named}. Give more of its surroundings to name one, "
            f"or set replace_all.\n{args.old_string}",
            EditRefusal.AMBIGUOUS,
        )
    return found
