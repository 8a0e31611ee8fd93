"""ToolSearch: finds deferred tools, and loads their definitions."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from retinue.tools.base import (
    READS,
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.extension.tool_search.constants import (
    DEFAULT_RESULTS,
    MAX_PATTERN_CHARS,
    MAX_QUERY_CHARS,
    MOST_RESULTS,
)
from retinue.tools.extension.tool_search.query import Query, parse_query
from retinue.tools.ports import CatalogPort, DeferredTool
from retinue.tools.registry.search import Index, searched_text
from retinue.tools.text import for_model, one_line

_EMPTY, _LONG_PATTERN, _NO_CATALOG = 1, 2, 3


class ToolSearchInput(ToolInput):
    query: str = Field(max_length=MAX_QUERY_CHARS, description="select:A,B, or words, or +part words, or regex:PATTERN")
    max_results: int = Field(DEFAULT_RESULTS, ge=1, le=MOST_RESULTS, description="The most tools that are loaded")


class FoundTool(ToolData):
    name: str
    description: str


class ToolSearchOutput(ToolData):
    """`found` are deferred tools; `already` were no deferred ones; `total` counts all that fit, shown or not."""

    query: str
    found: tuple[FoundTool, ...] = ()
    already: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    total: int = 0
    remarks: tuple[str, ...] = ()


class ToolSearch(Tool[ToolSearchInput, ToolSearchOutput]):
    name = "ToolSearch"
    group = "extension"
    needs = ("catalog",)
    search_hint = "find and load further tools"
    needs_lease = False
    idempotent = True
    deadline_s = 60.0

    def description(self) -> str:
        return "Finds tools that are not loaded yet, and loads their definitions"

    def traits(self, args: ToolSearchInput) -> Traits:
        return READS

    def title(self, args: ToolSearchInput) -> str:
        return f"ToolSearch {one_line(args.query, 100)}"

    async def validate_input(self, args: ToolSearchInput, ctx: ToolContext) -> Validation:
        query = parse_query(args.query)
        if not (query.names or query.words or query.prefix or query.pattern):
            return Refused("The query is empty: write select:NAME, or words that say what the tool shall do.", _EMPTY)
        if len(query.pattern) > MAX_PATTERN_CHARS:
            return Refused(f"A pattern has at most {MAX_PATTERN_CHARS} characters.", _LONG_PATTERN)
        return None if ctx.catalog is not None else Refused("All tools are loaded: call them.", _NO_CATALOG)

    async def call(
        self, args: ToolSearchInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[ToolSearchOutput]:
        if ctx.catalog is None:
            raise ToolError("All tools are loaded: call them.")
        output = await _search(args, parse_query(args.query), ctx.catalog)
        # What is found may reach the model as references alone, so the rest is said beside the result.
        rest = (notes(output),) if output.found and notes(output) else ()
        return ToolResult(output, loaded=tuple(tool.name for tool in output.found), new_messages=rest)

    def to_content(self, data: ToolSearchOutput) -> str:
        lines = [f"- {for_model(tool.name)}: {for_model(one_line(tool.description, 160))}" for tool in data.found]
        return "\n".join(("Loaded, and to be called from your next message on:", *lines)) if lines else notes(data)


def notes(data: ToolSearchOutput) -> str:
    """What is to be said besides the tools that were found."""
    said: list[str] = []
    if data.already:
        said.append(f"You have these already: {', '.join(data.already)}.")
    if data.missing:
        said.append(f"There is no tool of this name: {', '.join(for_model(one_line(n, 80)) for n in data.missing)}.")
    if not data.found and not data.already and not data.missing:
        said.append("No tool fits. Try other words, or a part of a server's name with a plus.")
    if data.total > len(data.found):
        said.append(f"{data.total} tools fit; the best {len(data.found)} were loaded.")
    if data.remarks and (data.missing or not data.found):
        said += [for_model(remark) for remark in data.remarks]
    return "\n".join(said)


async def _search(args: ToolSearchInput, query: Query, catalog: CatalogPort) -> ToolSearchOutput:
    deferred = catalog.deferred()
    if query.kind == "select":
        return _selected(args, query.names, deferred, catalog)
    fitting = await _by_pattern(query, deferred) if query.kind == "pattern" else _by_words(query, deferred)
    return ToolSearchOutput(
        query=args.query,
        found=tuple(map(_found, fitting[: args.max_results])),
        total=len(fitting),
        remarks=catalog.remarks(),
    )


def _selected(
    args: ToolSearchInput, names: tuple[str, ...], deferred: Sequence[DeferredTool], catalog: CatalogPort
) -> ToolSearchOutput:
    """By the exact name, else by the only one that differs in nothing but upper and lower case."""
    by_name = {tool.name.lower(): tool for tool in deferred} | {tool.name: tool for tool in deferred}
    found = [tool for name in names if (tool := by_name.get(name) or by_name.get(name.lower())) is not None]
    rest = [name for name in names if name not in by_name and name.lower() not in by_name]
    already = tuple(name for name in rest if catalog.is_loaded(name))
    return ToolSearchOutput(
        query=args.query,
        found=tuple(map(_found, {tool.name: tool for tool in found}.values())),
        already=already,
        missing=tuple(name for name in rest if name not in already),
        total=len({tool.name for tool in found}),
        remarks=catalog.remarks(),
    )


def _by_words(query: Query, deferred: tuple[DeferredTool, ...]) -> tuple[DeferredTool, ...]:
    named = tuple(tool for tool in deferred if tool.name.lower() == query.words.lower())
    return named or Index(deferred).ranked(query.words, prefix=query.prefix)


async def _by_pattern(query: Query, deferred: Sequence[DeferredTool]) -> tuple[DeferredTool, ...]:
    from retinue.tools.extension.tool_search.pattern import matching

    places = await matching(query.pattern, [searched_text(tool) for tool in deferred])
    return tuple(deferred[place] for place in places)


def _found(tool: DeferredTool) -> FoundTool:
    return FoundTool(name=tool.name, description=tool.description)
