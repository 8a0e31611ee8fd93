"""Write: one whole file, all or nothing."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    PathSubject,
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
from retinue.tools.files.hunks import Hunk, hunks
from retinue.tools.files.write.constants import WriteRefusal
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread


class WriteInput(ToolInput):
    file_path: str = Field(description="The file to write")
    content: str = Field(description="Everything that the file shall hold")


class WriteOutput(ToolData):
    """`hunks` show what changed in a file that was there."""

    file_path: str
    created: bool
    bytes_written: int
    lines: int
    hunks: tuple[Hunk, ...] = ()


class Write(Tool[WriteInput, WriteOutput]):
    name = "Write"
    group = "files"
    search_hint = "create or overwrite a file"

    def description(self) -> str:
        return "Create a file, or replace all of it"

    def traits(self, args: WriteInput) -> Traits:
        return Traits()

    def subject(self, args: WriteInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.file_path, ctx), write=True)

    def classifier_input(self, args: WriteInput) -> str:
        return f"{args.file_path}: {args.content!r}"

    def title(self, args: WriteInput) -> str:
        return f"Write {one_line(args.file_path)}"

    def backfill_observable_input(self, args: WriteInput, ctx: ToolContext) -> WriteInput:
        return args.model_copy(update={"file_path": paths.observable(args.file_path, ctx)})

    async def validate_input(self, args: WriteInput, ctx: ToolContext) -> Validation:
        return await early(args.file_path, ctx, lambda place: in_thread(_before, place, ctx))

    async def check_permissions(self, args: WriteInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.file_path, ctx, write=True)

    async def call(self, args: WriteInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[WriteOutput]:
        return ToolResult(await in_thread(_perform, args, paths.locate(args.file_path, ctx), ctx))

    def to_content(self, data: WriteOutput) -> str:
        return f"{'Created' if data.created else 'Wrote'} {data.file_path} ({data.lines} lines)."


def _perform(args: WriteInput, place: paths.Place, ctx: ToolContext) -> WriteOutput:
    before = _before(place, ctx)
    after = disk.replace(place.real, _encoded(args.content, before), before)
    ctx.files.put(place.real, after.seen(partial=False))
    return WriteOutput(
        file_path=str(place.named),
        created=before is None,
        bytes_written=len(after.data),
        lines=len(args.content.splitlines()),
        hunks=_hunks(before, after),
    )


def _encoded(content: str, before: disk.Snapshot | None) -> bytes:
    """A mark at the start of a file says how it is encoded, and stays; without one it becomes UTF-8."""
    old = decode(before.data) if before is not None else Text("", "utf-8")
    if not old.bom:
        return Text("", "utf-8").encode_new(content)
    return old.bom + old.encode_new(content.removeprefix("\ufeff"))


def _hunks(before: disk.Snapshot | None, after: disk.Snapshot) -> tuple[Hunk, ...]:
    if before is None or is_binary(before.data):
        return ()
    return hunks(decode(before.data).visible(), decode(after.data).visible())


def _before(place: paths.Place, ctx: ToolContext) -> disk.Snapshot | None:
    """The file that is about to be replaced, when the agent knows all of it; ChangeRefused when it does not."""
    before = disk.take(place.real)
    if before is None or not before.data:
        return before
    seen = ctx.files.get(place.real)
    if seen is None:
        raise ChangeRefused(f"{place.named} exists and has not been read yet. Read it first.", WriteRefusal.UNREAD)
    if seen.partial:
        raise ChangeRefused(
            f"Only a part of {place.named} has been read. Read all of it first, or change the part with Edit.",
            WriteRefusal.PARTIAL,
        )
    if seen.digest != disk.digest_of(before.data):
        raise ChangeRefused(
            f"{place.named} has changed since it was read. Read it again before overwriting it.", WriteRefusal.CHANGED
        )
    return before
