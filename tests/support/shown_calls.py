"""Calls through the pipeline, as somebody who looks on sees them."""

from __future__ import annotations

import io
from collections.abc import Iterable

from rich.console import Console

from retinue.tools.base import AnyTool, ToolContext
from retinue.tools.execution.calls import ToolCall
from retinue.tools.render.blocks import Blocks
from retinue.tools.render.calls import SeenCall, ToolOf, in_groups
from retinue.tools.render.plain import as_text
from retinue.tools.render.terminal import renderable
from support.calls import pipeline, run


def finder(tools: Iterable[AnyTool]) -> ToolOf:
    return {tool.name: tool for tool in tools}.get


async def seen(ctx: ToolContext, tool: AnyTool, **values: object) -> SeenCall:
    """Run one call; what a ledger then knows of it."""
    asked = ToolCall.model_validate({"id": "c1", "name": tool.name, "input": values})
    result = await run(pipeline(tool, folder=ctx.results_dir), asked, ctx)
    return SeenCall(tool.name, asked.input, result)


def text_of(calls: Iterable[SeenCall], tool_of: ToolOf, below: str = "") -> str:
    return "\n".join(as_text(blocks) for blocks in in_groups(calls, tool_of, below=below))


def ansi_of(blocks: Blocks, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, color_system="standard", force_terminal=True)
    console.print(renderable(blocks))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
