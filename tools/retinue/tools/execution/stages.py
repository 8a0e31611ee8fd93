"""What the pipeline asks between validation and permission, and after the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from retinue.tools.base import AnyTool, Decision, ToolContext, ToolData, ToolInput
from retinue.tools.execution.calls import CallResult


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a hook says before a call.

    decision       deny ends the call; ask makes the chain ask; allow skips a question, and beats no deny or ask rule
    updated_input  replaces the input as a whole; it is validated like the model's own
    notes          told to the model along with the result
    """

    decision: Decision | None = None
    updated_input: Mapping[str, JsonValue] | None = None
    notes: tuple[str, ...] = ()


class OpinionPort(Protocol):
    """The hooks before a call (PreToolUse). All are asked at once, beside the classifier."""

    async def opinion(self, tool: AnyTool, args: ToolInput, ctx: ToolContext) -> Opinion | None:
        """`args` is what observers see: with absolute paths and the like. None: no opinion."""
        ...


class ClassifierPort(Protocol):
    """Guesses whether the user would allow a call. Asked early, heard only where otherwise somebody would be asked."""

    async def classify(self, tool: AnyTool, text: str, ctx: ToolContext) -> Decision | None:
        """`text` is the tool's `classifier_input`, never empty. None: it cannot say."""
        ...


@dataclass(frozen=True, slots=True)
class Afterthought:
    """What a hook says after a call. `notes` are told to the model; `content` replaces what it sees of the result."""

    notes: tuple[str, ...] = ()
    content: str | None = None


class AfterPort(Protocol):
    """The hooks after a call that ran. They cannot undo it."""

    async def succeeded(
        self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult, data: ToolData
    ) -> Afterthought | None:
        """PostToolUse."""
        ...

    async def failed(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, result: CallResult) -> Afterthought | None:
        """PostToolUseFailure: it raised, or what it found is a failure by its own meaning."""
        ...
