"""What the pipeline asks between validation and permission, and after the call. This slice has no opinions yet."""

from __future__ import annotations

from typing import Protocol

from retinue.tools.base import AnyTool, Decision, ToolContext, ToolInput
from retinue.tools.execution.calls import CallResult


class OpinionPort(Protocol):
    """A pre-tool hook, or the shell's classifier. They are asked side by side, before the permission chain."""

    async def opinion(self, tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Decision | None:
        """None: no opinion. `deny` ends the call, `ask` makes the chain ask; `allow` never beats the chain."""
        ...


class AfterPort(Protocol):
    """The hooks after a call that ran: they see its result, as a success or as a failure, and cannot undo it."""

    async def after(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult) -> None: ...
