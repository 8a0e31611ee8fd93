"""What to do with a conversation that a crash left open. Pure.

No call of an open message had started: it is withdrawn and asked for again. Otherwise what is complete is kept:
finished calls keep their results, calls that may be repeated run again, calls that never started run now, and any other
is reported as interrupted, and never run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retinue.agents.history import Conversation, OpenStep
from retinue.agents.model.messages import ToolUseBlock
from retinue.tools.base import AnyTool
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.synthetic import Cause, Closing, synthetic

ToolOf = Callable[[str], AnyTool | None]

_UNKNOWN = (
    "Interrupted, outcome unknown: this agent's process ended while the call ran, and it is not run again. "
    "Look at what it did before you repeat it."
)


@dataclass(frozen=True, slots=True)
class Rest:
    """No turn is open."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """A step is closed: decide what follows, as if nothing had happened."""


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Withdraw what came of the message, and make the same request again."""


@dataclass(frozen=True, slots=True)
class Complete:
    """Finish the step. `answered` are results to record as they are, `run` is to be run, in order."""

    close_message: bool
    answered: tuple[CallResult, ...]
    run: tuple[ToolUseBlock, ...]


Recovery = Rest | GoOn | AskAgain | Complete


def recovery(conversation: Conversation, tool_of: ToolOf) -> Recovery:
    step = conversation.open
    if step is None:
        return GoOn() if conversation.turn_open else Rest()
    if step.closed is None and not step.started:
        return AskAgain()
    return _complete(step, tool_of)


def _complete(step: OpenStep, tool_of: ToolOf) -> Complete:
    answered: list[CallResult] = []
    run: list[ToolUseBlock] = []
    failed = next((r for r in step.finished.values() if r.fails_group), None)
    closing = _sibling(failed.name, failed.call_id) if failed else None
    for call in step.calls():
        if call.id in step.finished:
            continue
        started = step.started.get(call.id)
        tool = tool_of(call.name)
        if started is None and closing is not None:
            answered.append(synthetic(call.id, call.name, closing))
        elif started is None or started.read_only or (tool is not None and tool.idempotent):
            run.append(call)
        else:
            unknown = _unknown(call, fails_group=tool is None or tool.fails_group)
            answered.append(unknown)
            if unknown.fails_group:
                closing = _sibling(call.name, call.id)
    return Complete(step.closed is None, tuple(answered), tuple(run))


def _sibling(name: str, call: str) -> Closing:
    return Closing(Cause.SIBLING, f"{name} ({call})")


def _unknown(call: ToolUseBlock, *, fails_group: bool) -> CallResult:
    """It fails its group: what follows was meant to run if this one went well, and nobody knows whether it did."""
    return CallResult(
        call_id=call.id,
        name=call.name,
        content=_UNKNOWN,
        is_error=True,
        ran=True,
        fails_group=fails_group,
        error_class=Cause.INTERRUPTED.value,
        title=call.name,
    )
