"""Grep: contents of files, through ripgrep."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import ConfigDict, Field

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
from retinue.tools.files.grep.constants import DEFAULT_HEAD, MAX_COLUMNS, MAX_PATTERN
from retinue.tools.files.grep.output import Counts, Lines
from retinue.tools.text import is_unicode, one_line
from retinue.tools.threads import in_thread

_BAD_PATH, _BAD_PATTERN = 2, 3

Mode = Literal["content", "files_with_matches", "count"]


class GrepInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    pattern: str = Field(description="The regular expression to search for")
    path: str | None = Field(None, description="A file or directory; the working directory when left out")
    glob: str | None = Field(None, description="Only files whose name matches, such as `*.js` or `*.{ts,tsx}`")
    type: str | None = Field(None, description="Only files of this type, such as js, py, rust, go")
    output_mode: Mode = Field("files_with_matches", description="What to show")
    ignore_case: bool = Field(False, alias="-i", description="Upper and lower case are the same")
    line_numbers: bool = Field(True, alias="-n", description="Number the lines (content)")
    only_matching: bool = Field(False, alias="-o", description="Only the matched parts of lines (content)")
    after: int | None = Field(None, alias="-A", ge=0, description="Lines to show after each match (content)")
    before: int | None = Field(None, alias="-B", ge=0, description="Lines to show before each match (content)")
    around: int | None = Field(None, alias="-C", ge=0, description="Lines to show around each match (content)")
    context: int | None = Field(None, ge=0, description="The same as -C")
    head_limit: int = Field(DEFAULT_HEAD, ge=0, description="How many entries to show; 0 for all")
    offset: int = Field(0, ge=0, description="How many entries to skip")
    multiline: bool = Field(False, description="Let the pattern, and `.`, cross line ends")


class GrepOutput(ToolData):
    """`entries` are lines, names, or `name:count`; the totals are over all files, and only known when counting."""

    mode: Mode
    entries: tuple[str, ...]
    skipped: int
    more: bool
    total_files: int | None = None
    total_lines: int | None = None
    diagnostics: str = ""
    any_match: bool = False


class Grep(Tool[GrepInput, GrepOutput]):
    name = "Grep"
    group = "files"
    search_hint = "search in files"
    filters_reads = True
    max_result_chars = 20_000

    def description(self) -> str:
        return "Search the contents of files by a regular expression"

    def traits(self, args: GrepInput) -> Traits:
        return READS

    def subject(self, args: GrepInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.path or ".", ctx), write=False)

    def title(self, args: GrepInput) -> str:
        return f"Grep {one_line(args.pattern)}" + (f" in {one_line(args.path)}" if args.path else "")

    def backfill_observable_input(self, args: GrepInput, ctx: ToolContext) -> GrepInput:
        return args.model_copy(update={"path": paths.observable(args.path or ".", ctx)})

    async def validate_input(self, args: GrepInput, ctx: ToolContext) -> Validation:
        if not args.pattern or any(
            "\0" in text or not is_unicode(text) for text in (args.pattern, args.glob or "", args.type or "")
        ):
            return Refused("The pattern is empty, or pattern, glob or type hold what is no character.", _BAD_PATTERN)
        if max(len(args.pattern), len(args.glob or ""), len(args.type or "")) > MAX_PATTERN:
            return Refused(f"The pattern, glob or type is longer than {MAX_PATTERN:,} characters.", _BAD_PATTERN)
        try:
            paths.locate(args.path or ".", ctx)
        except ToolError as error:
            return Refused(str(error), _BAD_PATH)
        return None

    async def check_permissions(self, args: GrepInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.path or ".", ctx, write=False)

    async def call(self, args: GrepInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[GrepOutput]:
        place = paths.locate(args.path or ".", ctx)
        if not await in_thread(os.path.exists, place.real):
            raise paths.missing(place, ctx)
        cwd, target = _target(place, ctx)
        names = args.output_mode == "files_with_matches"
        found = await ripgrep.search(
            [*arguments(args), f"--regexp={args.pattern}", "--", target],
            cwd,
            accept=self._accept(args, cwd, ctx),
            separator=b"\0" if names else b"\n",
            enough=args.offset + args.head_limit if args.head_limit and args.output_mode == "content" else None,
            what="The search",
        )
        if names:
            newest = await in_thread(ripgrep.newest_first, found.entries, cwd)
            found = replace(found, entries=tuple(newest))
        return ToolResult(_page(args, found))

    def _accept(self, args: GrepInput, cwd: Path, ctx: ToolContext) -> ripgrep.Accept:
        may_read = ctx.may_read

        @cache
        def readable(name: str) -> bool:
            return may_read is None or may_read(self, cwd / name)

        match args.output_mode:
            case "files_with_matches":
                return lambda name: (name,) if readable(name) else ()
            case "count":
                return Counts(readable)
            case "content":
                return Lines(readable, numbered=args.line_numbers)

    def to_content(self, data: GrepOutput) -> str:
        text = _listing(data)
        return f"{text}\n\n(Not everything could be searched:\n{data.diagnostics})" if data.diagnostics else text


def arguments(args: GrepInput) -> list[str]:
    """ripgrep's options for what was asked; the order of results is stable, so that `offset` can page."""
    options = ["--hidden", "--color=never", "--no-heading", "--with-filename", "--null"]
    match args.output_mode:
        case "files_with_matches":
            options.append("--files-with-matches")
        case "count":
            options.append("--count")
        case "content":
            options += ["--sort=path", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview", *_content_options(args)]
    if args.ignore_case:
        options.append("--ignore-case")
    if args.multiline:
        options += ["--multiline", "--multiline-dotall"]
    if args.type:
        options.append(f"--type={args.type}")
    options += [f"--glob={glob}" for glob in globs(args.glob or "")]
    return options + ripgrep.without_vcs()


def _content_options(args: GrepInput) -> list[str]:
    options = ["--line-number"]
    if args.only_matching:
        options.append("--only-matching")
    around = args.around if args.around is not None else args.context
    before = args.before if args.before is not None else around
    after = args.after if args.after is not None else around
    return options + [f"--{name}-context={n}" for name, n in (("before", before), ("after", after)) if n]


def globs(text: str) -> list[str]:
    """Several globs may stand in one text, divided by spaces, or by commas outside of braces."""
    result: list[str] = []
    depth, current = 0, ""
    for character in text:
        depth += (character == "{") - (character == "}")
        if character.isspace() or (character == "," and depth <= 0):
            result.append(current)
            current = ""
        else:
            current += character
    return [glob for glob in (*result, current) if glob]


def _target(place: paths.Place, ctx: ToolContext) -> tuple[Path, str]:
    """Results are named relative to the working directory when they lie below it."""
    if place.named.is_relative_to(ctx.cwd):
        below = place.named.relative_to(ctx.cwd)
        return ctx.cwd, f"./{below}" if below.parts else "./"
    return Path("/"), str(place.named)


def _page(args: GrepInput, found: ripgrep.Found) -> GrepOutput:
    entries = sorted(found.entries) if args.output_mode == "count" else list(found.entries)
    entries = [paths.on_one_line(entry.removeprefix("./")) for entry in entries]
    last = args.offset + args.head_limit if args.head_limit else len(entries)
    counting = args.output_mode == "count"
    return GrepOutput(
        mode=args.output_mode,
        entries=tuple(entries[args.offset : last]),
        skipped=args.offset,
        more=len(entries) > last or not found.complete,
        total_files=len(entries) if counting else None,
        total_lines=sum(int(entry.rpartition(":")[2]) for entry in entries) if counting else None,
        diagnostics="\n".join(found.diagnostics.splitlines()[:10]),
        any_match=bool(entries),
    )


def _listing(data: GrepOutput) -> str:
    if not data.any_match:
        return "No matches found" if data.mode == "content" else "No files found"
    lines = list(data.entries) or ["No entries at this offset"]
    if data.more:
        nxt = data.skipped + len(data.entries)
        lines.append(f"(More is there: read on with offset {nxt}, or raise head_limit.)")
    if data.total_lines is not None:
        lines.append(f"Found {data.total_lines} matching lines in {data.total_files} files.")
    return "\n".join(lines)
