"""Calls of tools by an agent's code: through the same pipeline, into the ledger beside the call that runs the code."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.agents.journal import Journal
from retinue.agents.records import InnerFinished, InnerStarted
from retinue.tools.base import Traits
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.inner import outer_of
from retinue.tools.results.observed import bounded


@dataclass(frozen=True, slots=True)
class Beside:
    """Implements `InnerJournal` of the tools: in the step of the call that runs the code."""

    journal: Journal

    async def started(self, call: ToolCall, traits: Traits) -> None:
        step = self.journal.conversation.open
        if step is None:
            raise InvariantBroken(f"{call.id} starts outside of a step")
        shown = bounded(call) or {}
        values = shown.get("input")
        record = InnerStarted(
            turn=step.turn,
            step=step.step,
            outer=outer_of(call.id),
            call_id=call.id,
            tool=call.name,
            read_only=traits.read_only,
            input=values if isinstance(values, dict) else {},
        )
        await self.journal.write(record)
        if not traits.read_only:
            await self.journal.sync()

    async def ended(self, result: CallResult) -> None:
        step = self.journal.conversation.open
        if step is None:
            raise InvariantBroken(f"{result.call_id} ends outside of a step")
        outer = outer_of(result.call_id)
        await self.journal.write(InnerFinished(turn=step.turn, step=step.step, outer=outer, result=result))
