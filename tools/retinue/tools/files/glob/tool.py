"""Glob: files by name, newest first."""

from __future__ import annotations

import os
from pathlib import PurePosixPath

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
from retinue.tools.files import paths, ripgrep
from retinue.tools.files.glob.constants import MAX_FILES, MAX_PATTERN
from retinue.tools.files.glob.pattern import split
from retinue.tools.text import is_unicode, one_line
from retinue.tools.threads import in_thread

_BAD_PATH, _BAD_PATTERN = 2, 3
_EVERYTHING = ("--files", "--hidden", "--no-ignore", "--null")


class GlobInput(ToolInput):
    pattern: str = Field(description="The glob to match files against")
    path: str | None = Field(None, description="The directory to search; the working directory when left out")


class GlobOutput(ToolData):
    filenames: tuple[str, ...]
    total: int
    complete: bool


class Glob(Tool[GlobInput, GlobOutput]):
    name = "Glob"
    group = "files"
    search_hint = "find files by name"
    filters_reads = True

    def description(self) -> str:
        return "Find files by their names, newest first"

    def traits(self, args: GlobInput) -> Traits:
        return READS

    def subject(self, args: GlobInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(_start(args), ctx), write=False)

    def title(self, args: GlobInput) -> str:
        return f"Glob {one_line(args.pattern)}" + (f" in {one_line(args.path)}" if args.path else "")

    def backfill_observable_input(self, args: GlobInput, ctx: ToolContext) -> GlobInput:
        return args.model_copy(update={"path": paths.observable(args.path or ".", ctx)})

    async def validate_input(self, args: GlobInput, ctx: ToolContext) -> Validation:
        if not args.pattern or "\0" in args.pattern or not is_unicode(args.pattern):
            return Refused("The pattern is empty, or holds what is no character.", _BAD_PATTERN)
        if len(args.pattern) > MAX_PATTERN:
            return Refused(f"The pattern is longer than {MAX_PATTERN:,} characters.", _BAD_PATTERN)
        if ".." in PurePosixPath(split(args.pattern)[1]).parts:
            return Refused("The pattern has `..` behind a wildcard: name the directory in `path`.", _BAD_PATTERN)
        try:
            paths.locate(_start(args), ctx)
        except ToolError as error:
            return Refused(str(error), _BAD_PATH)
        return None

    async def check_permissions(self, args: GlobInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(_start(args), ctx, write=False)

    async def call(self, args: GlobInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[GlobOutput]:
        place = paths.locate(_start(args), ctx)
        if not await in_thread(os.path.isdir, place.real):
            raise ToolError(f"{place.named} is not a directory.")
        fixed, pattern = split(args.pattern)
        found = await ripgrep.search(
            [*_EVERYTHING, f"--glob={f'/{pattern}' if fixed else _literal(pattern)}", *ripgrep.without_vcs()],
            place.real,
            accept=self._accept(place, ctx),
            separator=b"\0",
            what="The search for files",
        )
        newest = (await in_thread(ripgrep.newest_first, found.entries, place.real))[:MAX_FILES]
        names = tuple(paths.shown(place.named / name, ctx) for name in newest)
        return ToolResult(GlobOutput(filenames=names, total=len(found.entries), complete=found.complete))

    def _accept(self, place: paths.Place, ctx: ToolContext) -> ripgrep.Accept:
        may_read = ctx.may_read
        if may_read is None:
            return lambda name: (name,)
        return lambda name: (name,) if may_read(self, place.named / name) else ()

    def to_content(self, data: GlobOutput) -> str:
        if not data.filenames:
            return "No files found"
        listing = "\n".join(map(paths.on_one_line, data.filenames))
        if data.total == len(data.filenames) and data.complete:
            return listing
        least = "" if data.complete else "at least "
        return (
            f"{listing}\n({len(data.filenames)} of {least}{data.total} files are shown, the newest. "
            "Use a narrower pattern or path.)"
        )


def _start(args: GlobInput) -> str:
    """Where the search starts: `path`, and what the pattern names before its first wildcard."""
    fixed = split(args.pattern)[0]
    return os.path.join(args.path or ".", fixed) if fixed else args.path or "."


def _literal(pattern: str) -> str:
    """For ripgrep a `!` in front would turn the meaning around."""
    return f"\\{pattern}" if pattern.startswith("!") else pattern
