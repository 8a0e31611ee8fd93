"""Read: text with numbered lines, images, pages of a PDF, cells of a notebook."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from retinue.tools.base import (
    READS,
    Attachment,
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
from retinue.tools.files.read import text
from retinue.tools.files.read.constants import IMAGE_FILE_BYTES, NOTEBOOK_BYTES, PDF_FILE_BYTES
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread

_NO_PATH, _NO_PAGES = 2, 3

Kind = Literal["text", "image", "pdf", "notebook", "unchanged"]


class ReadInput(ToolInput):
    file_path: str = Field(description="The file to read")
    offset: int | None = Field(None, ge=0, description="The first line, or cell of a notebook, counted from 1")
    limit: int | None = Field(None, ge=1, description="How many lines, or cells, to show")
    pages: str | None = Field(None, description='Which pages of a PDF, such as "3" or "1-5"')

    @property
    def part(self) -> str:
        """What of the file is asked for."""
        return f"{max(self.offset or 1, 1)}+{self.limit or ''} {self.pages or ''}"


class ReadOutput(ToolData):
    """What is shown, from number `start_line` on: lines of a text, cells of a notebook, pages of a PDF.

    `total_lines` is None for a file too large to be counted. `note` are words about it beside the content.
    """

    kind: Kind = "text"
    file_path: str
    content: str = ""
    start_line: int = 1
    num_lines: int = 0
    total_lines: int | None = None
    cut: bool = False
    note: str = ""


class Read(Tool[ReadInput, ReadOutput]):
    name = "Read"
    group = "files"
    search_hint = "show a file, image, PDF or notebook"
    max_result_chars = None

    def description(self) -> str:
        return "Show a text file, an image, pages of a PDF, or a notebook"

    def traits(self, args: ReadInput) -> Traits:
        return READS

    def subject(self, args: ReadInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.file_path, ctx), write=False)

    def title(self, args: ReadInput) -> str:
        return f"Read {one_line(args.file_path)}"

    def backfill_observable_input(self, args: ReadInput, ctx: ToolContext) -> ReadInput:
        return args.model_copy(update={"file_path": paths.observable(args.file_path, ctx)})

    async def validate_input(self, args: ReadInput, ctx: ToolContext) -> Validation:
        try:
            paths.locate(args.file_path, ctx)
        except ToolError as error:
            return Refused(str(error), _NO_PATH)
        if args.pages is not None:
            from retinue.tools.files.read.pdf import page_range

            try:
                page_range(args.pages)
            except ToolError as error:
                return Refused(str(error), _NO_PAGES)
        return None

    async def check_permissions(self, args: ReadInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.file_path, ctx, write=False)

    async def call(self, args: ReadInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[ReadOutput]:
        place = paths.locate(args.file_path, ctx)
        found = await in_thread(_look, args, place, ctx)
        if isinstance(found, ToolResult):
            return found
        return await _pdf(found, args, place, ctx)

    def to_content(self, data: ReadOutput) -> str:
        match data.kind:
            case "unchanged":
                return (
                    f"<system-reminder>{data.file_path} has not changed since you read this part of it: the earlier "
                    "result still holds. If you do not have it any more, read it once more.</system-reminder>"
                )
            case "image" | "pdf":
                return data.note + (f"\n{data.content}" if data.content else "")
            case "notebook":
                return data.content + _more(data, "cells") if data.num_lines else _nothing(data, "cells")
            case "text":
                return data.content + _more(data, "lines") if data.num_lines else _nothing(data, "lines")


def _nothing(data: ReadOutput, what: str) -> str:
    if data.total_lines == 0:
        return f"<system-reminder>The file exists, but it {_EMPTY[what]}.</system-reminder>"
    length = f"fewer {what}" if data.total_lines is None else f"only {data.total_lines} {what}"
    return (
        f"<system-reminder>The file exists, but it has {length}: nothing at {what[:-1]} {data.start_line}."
        "</system-reminder>"
    )


_EMPTY = {"lines": "is empty", "cells": "has no cells"}


def _more(data: ReadOutput, what: str) -> str:
    last = data.start_line + data.num_lines - 1
    if data.total_lines is not None and last >= data.total_lines:
        return f"\n<system-reminder>{data.note}</system-reminder>" if data.note else ""
    of = "" if data.total_lines is None else f" of {data.total_lines}"
    view = "PARTIAL view: the file is too large for one result. " if data.cut else ""
    note = f" {data.note}" if data.note else ""
    return (
        f"\n<system-reminder>{view}{what.capitalize()} {data.start_line} to {last}{of} are shown. "
        f"Read on with offset {last + 1}, or use Grep.{note}</system-reminder>"
    )


def _look(args: ReadInput, place: paths.Place, ctx: ToolContext) -> ToolResult[ReadOutput] | disk.Snapshot:
    """All but a PDF, which is only taken into memory here."""
    try:
        descriptor = disk.open_regular(place.real)
    except FileNotFoundError:
        raise paths.missing(place, ctx) from None
    with open(descriptor, "rb") as file:
        kind = text.kind_by(file.peek(64), place.real.suffix)
        if args.pages is not None and kind != "pdf":
            raise ToolError(f"{place.named} is no PDF: `pages` is for PDF files only.")
        if kind == "text":
            return _text(text.read(file, descriptor, args.offset, args.limit, place), args, place, ctx)
        limit = {"pdf": PDF_FILE_BYTES, "notebook": NOTEBOOK_BYTES}.get(kind, IMAGE_FILE_BYTES)
        snapshot = disk.whole(file, descriptor, limit, place.named)
    if kind == "pdf":
        return snapshot
    if stub := _unchanged(snapshot, args, place, ctx):
        return stub
    return _image(snapshot, kind, args, place, ctx) if kind != "notebook" else _notebook(snapshot, args, place, ctx)


def _unchanged(
    snapshot: disk.Snapshot, args: ReadInput, place: paths.Place, ctx: ToolContext
) -> ToolResult[ReadOutput] | None:
    """Once: who asks again has lost what was shown, and gets it."""
    seen = ctx.files.get(place.real)
    if seen is None or seen.shown != args.part or seen.digest != disk.digest_of(snapshot.data):
        return None
    ctx.files.put(place.real, snapshot.seen(partial=seen.partial))
    return ToolResult(ReadOutput(kind="unchanged", file_path=str(place.named)))


def _text(view: text.View, args: ReadInput, place: paths.Place, ctx: ToolContext) -> ToolResult[ReadOutput]:
    if view.snapshot is not None:
        if stub := _unchanged(view.snapshot, args, place, ctx):
            return stub
        ctx.files.put(place.real, view.snapshot.seen(partial=not view.window.whole, shown=args.part))
    elif view.seen is not None:
        ctx.files.put(place.real, view.seen)
    long = view.window.shortened
    return ToolResult(
        ReadOutput(
            file_path=str(place.named),
            content=view.numbered,
            start_line=view.window.first,
            num_lines=len(view.window.lines),
            total_lines=view.window.total if view.snapshot is not None else None,
            cut=view.window.cut,
            note=f"{long} lines are too long and shown in part; give `offset` and `limit` to see them." if long else "",
        )
    )


def _image(
    snapshot: disk.Snapshot, media_type: str, args: ReadInput, place: paths.Place, ctx: ToolContext
) -> ToolResult[ReadOutput]:
    from retinue.tools.files.read.images import picture

    drawn = picture(snapshot.data, media_type)
    ctx.files.put(place.real, snapshot.seen(partial=True, shown=args.part))
    note = f"{place.named}: {media_type}, {drawn.original[0]} x {drawn.original[1]} pixels"
    if drawn.size != drawn.original:
        factor = drawn.original[0] / drawn.size[0]
        note += f", shown with {drawn.size[0]} x {drawn.size[1]} (multiply positions in it by {factor:.2f})"
    if drawn.frames > 1:
        note += f", the first of {drawn.frames} frames"
    return ToolResult(
        ReadOutput(kind="image", file_path=str(place.named), note=f"{note}."), attachments=(drawn.attachment(),)
    )


def _notebook(snapshot: disk.Snapshot, args: ReadInput, place: paths.Place, ctx: ToolContext) -> ToolResult[ReadOutput]:
    from retinue.tools.files.codec import decode
    from retinue.tools.files.notebooks import parse
    from retinue.tools.files.read.images import picture
    from retinue.tools.files.read.notebook import show

    def draw(data: bytes, media_type: str) -> Attachment:
        return picture(data, media_type).attachment()

    shown = show(parse(decode(snapshot.data).visible()), args.offset, args.limit, draw)
    ctx.files.put(place.real, snapshot.seen(partial=not shown.whole, shown=args.part))
    output = ReadOutput(
        kind="notebook",
        file_path=str(place.named),
        content=shown.text,
        start_line=shown.first,
        num_lines=shown.count,
        total_lines=shown.total,
        cut=shown.cut,
    )
    return ToolResult(output, attachments=shown.images)


async def _pdf(
    snapshot: disk.Snapshot, args: ReadInput, place: paths.Place, ctx: ToolContext
) -> ToolResult[ReadOutput]:
    from retinue.tools.files.read.pdf import page_range, read_pages

    if stub := _unchanged(snapshot, args, place, ctx):
        return stub
    found = await read_pages(snapshot.data, page_range(args.pages) if args.pages else None)
    ctx.files.put(place.real, snapshot.seen(partial=True, shown=args.part))
    attachment = found.attachment()
    pages = f"page {found.first}" if found.first == found.last else f"pages {found.first} to {found.last}"
    which = "the only page" if found.total == 1 else f"{pages} of {found.total}"
    how = "" if attachment else ", too large to be shown; its text"
    output = ReadOutput(
        kind="pdf",
        file_path=str(place.named),
        content=found.text or "",
        start_line=found.first,
        num_lines=found.last - found.first + 1,
        total_lines=found.total,
        note=f"{place.named}: PDF, {which}{how}.",
    )
    return ToolResult(output, attachments=(attachment,) if attachment else ())
