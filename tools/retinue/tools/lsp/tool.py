"""LSP: what a language server knows about code."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from retinue.tools.base import (
    READS,
    Decision,
    OnProgress,
    PathSubject,
    Progress,
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
from retinue.tools.files import paths
from retinue.tools.lsp.constants import MAX_HOVER_CHARS, MOST_ENTRIES
from retinue.tools.ports import LanguageAnswer, LanguageEntry, LanguageOperation, LanguageQuestion
from retinue.tools.text import counted, for_model, one_line, printable

_NO_SERVER, _BAD_PATH, _NO_PLACE, _NO_QUERY = 1, 2, 3, 4
_NEED_NO_PLACE = frozenset(("documentSymbol", "workspaceSymbol", "diagnostics"))
NO_SERVERS = "No language server is set up here. Use Grep and Read instead."


class LSPInput(ToolInput):
    model_config = ConfigDict(alias_generator=to_camel, validate_by_name=True, validate_by_alias=True)

    operation: LanguageOperation = Field(description="What to ask")
    file_path: str = Field(description="The file that the question is about")
    line: int | None = Field(None, ge=1, description="The line, counted from 1; needed where a symbol is meant")
    character: int | None = Field(None, ge=1, description="The character in the line, counted from 1")
    query: str | None = Field(None, description="What symbols to look for (workspaceSymbol)")


class LSPOutput(ToolData):
    """`entries` name files as they are shown, relative to the working directory where they lie below it."""

    operation: LanguageOperation
    server: str
    entries: tuple[LanguageEntry, ...] = ()
    total: int = 0
    text: str = ""
    note: str = ""


class LSP(Tool[LSPInput, LSPOutput]):
    name = "LSP"
    group = "extension"
    needs = ("languages",)
    search_hint = "code intelligence: definition, references, type of a symbol, callers, compile errors, rename impact"
    should_defer = True

    def description(self) -> str:
        return "Asks a language server about code: definitions, uses, types, calls, errors"

    def traits(self, args: LSPInput) -> Traits:
        return READS

    def subject(self, args: LSPInput, ctx: ToolContext) -> Subject:
        return PathSubject(paths.absolute(args.file_path, ctx), write=False)

    def title(self, args: LSPInput) -> str:
        place = "" if args.operation in _NEED_NO_PLACE or args.line is None else f":{args.line}:{args.character or 1}"
        about = f" {one_line(args.query or '', 60)} in" if args.operation == "workspaceSymbol" else ""
        return f"LSP {args.operation}{about} {one_line(args.file_path)}{place}"

    def backfill_observable_input(self, args: LSPInput, ctx: ToolContext) -> LSPInput:
        return args.model_copy(update={"file_path": paths.observable(args.file_path, ctx)})

    async def validate_input(self, args: LSPInput, ctx: ToolContext) -> Validation:
        try:
            place = paths.locate(args.file_path, ctx)
        except ToolError as error:
            return Refused(str(error), _BAD_PATH)
        if not paths.is_inside(place.real, ctx):
            return Refused(f"{place.named} is outside of the workspace {ctx.root}.", _BAD_PATH)
        if args.operation not in _NEED_NO_PLACE and (args.line is None or args.character is None):
            return Refused(f"{args.operation} needs line and character, counted from 1.", _NO_PLACE)
        if args.operation == "workspaceSymbol" and not (args.query or "").strip():
            return Refused("workspaceSymbol needs a query: a part of the symbol's name.", _NO_QUERY)
        return None if ctx.languages is not None else Refused(NO_SERVERS, _NO_SERVER)

    async def check_permissions(self, args: LSPInput, ctx: ToolContext) -> Decision | None:
        return paths.outside(args.file_path, ctx, write=False)

    async def call(self, args: LSPInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[LSPOutput]:
        if ctx.languages is None:
            raise ToolError(NO_SERVERS)
        place = paths.locate(args.file_path, ctx)
        on_progress(Progress(f"asking the language server for {place.real.suffix or place.real.name}"))
        question = LanguageQuestion(
            operation=args.operation,
            file=place.real,
            line=args.line or 1,
            character=args.character or 1,
            query=args.query or "",
        )
        return ToolResult(_output(args.operation, await ctx.languages.ask(question), ctx))

    def to_content(self, data: LSPOutput) -> str:
        if data.operation == "hover":
            body = for_model(data.text) or "Nothing is known about this place."
        else:
            body = "\n".join(map(_line, data.entries)) or _nothing(data.operation)
        more = f"({counted(data.total, 'result')}, the first {len(data.entries)} are shown.)"
        parts = (body, more if data.total > len(data.entries) else "", f"({data.note})" if data.note else "")
        return "\n".join(part for part in parts if part)


def _output(operation: LanguageOperation, found: LanguageAnswer, ctx: ToolContext) -> LSPOutput:
    text = printable(found.text)
    cut = len(text) > MAX_HOVER_CHARS
    entries = (entry.model_copy(update={"file": _shown(entry.file, ctx)}) for entry in found.entries[:MOST_ENTRIES])
    return LSPOutput(
        operation=operation,
        server=found.server,
        entries=tuple(entries),
        total=len(found.entries),
        text=f"{text[:MAX_HOVER_CHARS]}\n[cut]" if cut else text,
        note=found.note,
    )


def _shown(file: str, ctx: ToolContext) -> str:
    """Servers name files by their real paths, the working directory may lead through links."""
    path = Path(file)
    cwd = ctx.cwd.resolve()
    return str(path.relative_to(cwd)) if path.is_relative_to(cwd) else file


def _line(entry: LanguageEntry) -> str:
    place = f"{one_line(entry.file, 500)}:{entry.line}:{entry.character}"
    what = " ".join(part for part in (entry.kind, one_line(entry.name, 500)) if part)
    detail = f" ({one_line(entry.detail)})" if entry.detail else ""
    text = f"{'  ' * min(entry.depth, 20)}{place}"
    return for_model(f"{text} {what}{detail}" if what else text)


def _nothing(operation: LanguageOperation) -> str:
    if operation == "diagnostics":
        return "No errors and no warnings."
    return (
        "Nothing was found. Is the place that of a symbol's name?" if operation not in _NEED_NO_PLACE else "No symbols."
    )
