"""How a tool shows its calls. What a tool does not say is answered cautiously: its title, and its result as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from retinue.tools.base import Tool, ToolData, ToolInput
from retinue.tools.render.blocks import Blocks, Heading, Line, Text

In = TypeVar("In", bound=ToolInput)
Out = TypeVar("Out", bound=ToolData)


class Renderer(Generic[In, Out]):
    """Five ways to look at a call. `render.py` beside a tool holds one subclass of it, named `Render`.

    The input is what observers see: completed by the tool's `backfill_observable_input`. Text of files and programs
    goes into blocks as it is; whoever shows blocks makes it harmless.
    """

    def __init__(self, tool: Tool[In, Out]) -> None:
        self.tool = tool

    def use(self, args: In) -> Blocks:
        """What is being done: shown while it runs, and above what became of it."""
        return (Heading(self.tool.title(args)),)

    def result(self, args: In, data: Out) -> Blocks:
        """What became of it, below `use`. `data` is what the tool found; it is never an error of the call itself."""
        del args
        return (Text(self.tool.to_content(data)),)

    def rejected(self, args: In, reason: str) -> Blocks:
        """It was not allowed."""
        del args
        return (Line(f"denied: {reason}" if reason else "denied", "bad"),)

    def error(self, args: In | None, text: str) -> Blocks:
        """It failed, or the call itself was wrong: then `args` may be None."""
        del args
        return (Text(text, "bad"),)

    def grouped(self, calls: Sequence[In]) -> Blocks:
        """One line for several calls in a row that all went well; nothing when they are better shown one by one."""
        del calls
        return ()
