"""Calls of tools by an agent's code: through the same pipeline, into the ledger beside the call that runs the code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from retinue.agents.journal import Journal
from retinue.agents.records import InnerFinished, InnerStarted
from retinue.tools.base import AnyTool, Traits
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.inner import InnerCalls, outer_of
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.permissions.chain import PermissionPolicy
from retinue.tools.permissions.code import code_rights
from retinue.tools.registry.pool import ToolPool
from retinue.tools.registry.table import WRAPPED_BY_REPL
from retinue.tools.results.observed import bounded

RUNS_CODE = "REPL"
_ASKS_OTHERS = frozenset({"Agent"})
"""Code cannot do by itself what these do."""


def wrapped(tools: Sequence[AnyTool]) -> tuple[AnyTool, ...]:
    """Those that code may call, as far as its agent may."""
    return tuple(tool for tool in tools if tool.name in WRAPPED_BY_REPL)


@dataclass(frozen=True, slots=True)
class InnerJournal:
    """Implements `JournalPort` for calls inside of a call."""

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


def calls_of_code(
    tools: Sequence[AnyTool], pool: ToolPool, pipeline: Pipeline, policy: PermissionPolicy, journal: Journal
) -> InnerCalls | None:
    """None where no tool runs code.

    tools     all that come with the product, whether or not this agent has them
    pool      what its code may call
    pipeline  of its own calls
    """
    runs = next((tool for tool in tools if tool.name == RUNS_CODE), None)
    if runs is None:
        return None
    beside = InnerJournal(journal)
    stands_for = tuple(tool for tool in wrapped(tools) if tool.name not in _ASKS_OTHERS)
    has_shell = pool.find("Bash") is not None
    return InnerCalls(
        pool,
        replace(pipeline, pool=pool, journal=beside),
        beside.ended,
        lambda: code_rights(policy, runs, stands_for, has_shell=has_shell),
    )
