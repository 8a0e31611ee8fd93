"""A tool of an MCP server: what the server says of it, and each call handed on over the port."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import JsonValue

from retinue.tools.base import (
    ALONE_S,
    AnyTool,
    AskFirst,
    OnProgress,
    Progress,
    RawInput,
    Tool,
    ToolContext,
    ToolData,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.mcp.constants import LARGEST_ASKED_CHARS, MAX_DESCRIPTION_CHARS, MAX_RESULT_CHARS
from retinue.tools.mcp.names import tool_name
from retinue.tools.mcp.ports import McpRequest, McpToolFacts
from retinue.tools.mcp.results import Part, mapped, text_of
from retinue.tools.mcp.schema import flattened
from retinue.tools.text import one_line, printable
from retinue.tools.threads import in_thread


class McpOutput(ToolData):
    parts: tuple[Part, ...] = ()


class McpTool(Tool[RawInput, McpOutput]):
    """Of a class of its own for each tool, made by `mcp_tool`: name and limits are those of a class."""

    group = "mcp"
    max_result_chars = MAX_RESULT_CHARS
    should_defer = True
    facts: McpToolFacts
    schema: dict[str, JsonValue]
    groups: str

    def description(self) -> str:
        return one_line(self.facts.title or self.facts.description or f"{self.facts.name} of {self.facts.server}", 79)

    def prompt(self) -> str:
        said = printable(self.facts.description)
        if len(said) > MAX_DESCRIPTION_CHARS:
            said = f"{said[:MAX_DESCRIPTION_CHARS]}… [cut]"
        return "\n\n".join(part for part in (said, self.groups) if part) or self.description()

    def json_schema(self) -> dict[str, JsonValue]:
        return self.schema

    def traits(self, args: RawInput) -> Traits:
        """Only what the server calls read-only is; without a hint it is alone in the workspace, and may destroy."""
        if self.facts.read_only:
            return Traits(read_only=True, concurrency_safe=True)
        return Traits(destructive=self.facts.destructive is not False)

    async def validate_input(self, args: RawInput, ctx: ToolContext) -> Validation:
        if self.facts.asks_a_person:
            return AskFirst(f"the server {one_line(self.facts.server)} wants a person to be asked at every call")
        return None

    def user_facing_name(self, args: RawInput | None = None) -> str:
        return f"{one_line(self.facts.server, 40)}: {one_line(self.facts.title or self.facts.name, 60)}"

    def title(self, args: RawInput) -> str:
        values = ", ".join(f"{one_line(k, 30)}: {one_line(str(v), 60)}" for k, v in args.as_object().items())
        return one_line(f"{self.user_facing_name()} ({values})" if values else self.user_facing_name())

    async def call(self, args: RawInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[McpOutput]:
        if ctx.mcp is None:
            raise ToolError("There are no MCP servers here.")
        request = McpRequest(
            server=self.facts.server,
            tool=self.facts.name,
            arguments=args.as_object(),
            key=ctx.key,
            timeout_s=self.facts.timeout_s,
        )
        answer = await ctx.mcp.call(request, lambda text: on_progress(Progress(printable(text))))
        result = await in_thread(mapped, answer.blocks, ctx.results_dir)
        return ToolResult(
            McpOutput(parts=tuple(result.parts)), is_error=answer.is_error, attachments=tuple(result.attachments)
        )

    def to_content(self, data: McpOutput) -> str:
        return text_of(data.parts) or "(The server answered nothing.)"


def mcp_tool(facts: McpToolFacts) -> AnyTool:
    """ValueError: no model could be told of a tool with such a schema."""
    schema, groups = flattened(facts.input_schema)
    asked = facts.max_chars if facts.max_chars is not None else MAX_RESULT_CHARS
    made = type(
        "McpToolOfServer",
        (McpTool,),
        {
            "__module__": __name__,
            "name": tool_name(facts.server, facts.name),
            "facts": facts,
            "schema": schema,
            "groups": groups,
            "search_hint": facts.search_hint,
            "should_defer": not facts.always_load,
            "max_result_chars": min(asked, LARGEST_ASKED_CHARS),
            "deadline_s": facts.timeout_s or ALONE_S,
        },
    )
    tool: AnyTool = made()
    return tool


def mcp_tools(facts: Iterable[McpToolFacts]) -> tuple[tuple[AnyTool, ...], tuple[str, ...]]:
    """The tools that can be offered, and a line for each that cannot."""
    tools: list[AnyTool] = []
    left: list[str] = []
    for each in facts:
        try:
            tools.append(mcp_tool(each))
        except ValueError as error:
            left.append(f"The tool {one_line(each.name, 80)} of {one_line(each.server, 80)} is left out: {error}.")
    return tuple(tools), tuple(left)
