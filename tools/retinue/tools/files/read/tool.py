"""Read: the lines of a text file, numbered."""

from __future__ import annotations

import os
from io import BufferedReader
from itertools import islice

from pydantic import Field

from retinue.tools.base import (
    READS,
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
from retinue.tools.files.codec import decode, is_binary
from retinue.tools.files.read.constants import DEFAULT_LINES, UNSUPPORTED, WHOLE_FILE_BYTES
from retinue.tools.files.read.window import Window, lines_of, numbered, window
from retinue.tools.files.state import Seen
from retinue.tools.prompts import prompt_beside
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread

_NO_PATH = 2


class ReadInput(ToolInput):
    file_path: str = Field(description="The file to read")
    offset: int | None = Field(None, ge=0, description="The first line to show, counted from 1")
    limit: int | None = Field(None, ge=1, description="How many lines to show")


class ReadOutput(ToolData):
    """`total_lines` is None for a file too large to be counted."""

    file_path: str
    content: str
    start_line: int
    num_lines: int
    total_lines: int | None
    cut: bool = False


class Read(Tool[ReadInput, ReadOutput]):
    name = "Read"
    group = "files"
    search_hint = "show a file"
    max_result_chars = None
    Input = ReadInput

    def description(self) -> str:
        return prompt_beside(__file__)

    def traits(self, args: ReadInput) -> Traits:
        return READS

    def subject(self, args: ReadInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.file_path, ctx), write=False)

    def title(self, args: ReadInput) -> str:
        return f"Read {one_line(args.file_path)}"

    async def validate_input(self, args: ReadInput, ctx: ToolContext) -> Validation:
        try:
            paths.locate(args.file_path, ctx)
        except ToolError as error:
            return Refused(str(error), _NO_PATH)
        return None

    async def check_permissions(self, args: ReadInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.file_path, ctx, write=False)

    async def call(self, args: ReadInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[ReadOutput]:
        return ToolResult(await in_thread(_perform, args, paths.locate(args.file_path, ctx), ctx))

    def to_content(self, data: ReadOutput) -> str:
        if data.num_lines:
            return data.content + _more(data)
        if data.total_lines == 0:
            return "<system-reminder>The file exists, but it is empty.</system-reminder>"
        length = "fewer lines" if data.total_lines is None else f"only {data.total_lines} lines"
        return (
            f"<system-reminder>The file exists, but it has {length}: nothing at line {data.start_line}."
            "</system-reminder>"
        )


def _more(data: ReadOutput) -> str:
    last = data.start_line + data.num_lines - 1
    if data.total_lines is not None and last >= data.total_lines:
        return ""
    of = "" if data.total_lines is None else f" of {data.total_lines}"
    view = "PARTIAL view: the file is too large for one result. " if data.cut else ""
    return (
        f"\n<system-reminder>{view}Lines {data.start_line} to {last}{of} are shown. "
        f"Read on with offset {last + 1}, or use Grep.</system-reminder>"
    )


def _perform(args: ReadInput, place: paths.Place, ctx: ToolContext) -> ReadOutput:
    kind = UNSUPPORTED.get(place.real.suffix.casefold())
    try:
        descriptor = disk.open_regular(place.real)
    except FileNotFoundError:
        raise paths.missing(place, ctx) from None
    with open(descriptor, "rb") as file:
        if kind is not None:
            raise ToolError(f"{place.named}: reading {kind} is not supported yet.")
        found = os.fstat(descriptor)
        if found.st_size > WHOLE_FILE_BYTES:
            view = _stream(file, args, place)
            total, seen = None, Seen(mtime_ns=found.st_mtime_ns, size=found.st_size, digest="", partial=True)
        else:
            snapshot = disk.Snapshot(file.read(), found)
            view = _view(snapshot.data, args, place)
            total, seen = view.total, snapshot.seen(partial=not view.whole)
    ctx.files.put(place.real, seen)
    return ReadOutput(
        file_path=str(place.named),
        content=numbered(view.lines, view.first),
        start_line=view.first,
        num_lines=len(view.lines),
        total_lines=total,
        cut=view.cut,
    )


def _view(data: bytes, args: ReadInput, place: paths.Place) -> Window:
    if is_binary(data):
        raise ToolError(f"{place.named} is a binary file; it cannot be shown as text.")
    return window(lines_of(decode(data).visible()), args.offset, args.limit)


def _stream(file: BufferedReader, args: ReadInput, place: paths.Place) -> Window:
    """Only the lines that were asked for, of a file that is not taken into memory."""
    if is_binary(file.peek(WHOLE_FILE_BYTES)):
        raise ToolError(f"{place.named} is a binary file; it cannot be shown as text.")
    first = max(args.offset or 1, 1)
    chosen = islice(file, first - 1, first - 1 + (args.limit or DEFAULT_LINES))
    lines = [line.rstrip(b"\n").removesuffix(b"\r").decode("utf-8", "replace") for line in chosen]
    view = window(lines, None, args.limit)
    return Window(view.lines, first, first + len(lines), view.cut)
