"""A run's records told as lines: calls of one tool in a row as one line, and each call as its tool shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.agents.model.messages import ToolUseBlock
from retinue.agents.records import BlockComplete, MessageClosed, StepClosed, ToolFinished, ToolStarted, TurnClosed
from retinue.orchestrator.ledger.parse import AnyRecord, is_team_record
from retinue.orchestrator.ledger.records import MemberAdded
from retinue.orchestrator.view.lines import Line, line_of
from retinue.tools.base import AnyTool
from retinue.tools.execution.calls import CallResult
from retinue.tools.registry.builtin import builtin_tool
from retinue.tools.render.blocks import Blocks
from retinue.tools.render.calls import SeenCall, in_groups, shown
from retinue.tools.render.plain import first_line

ToolOf = Callable[[str], AnyTool | None]


@dataclass(frozen=True, slots=True)
class Told:
    """A line, and in full what it is about; empty where the line says all."""

    line: Line
    blocks: Blocks = ()


@dataclass(slots=True)
class _Writer:
    """What is known of one agent: where it works, the calls that have no result yet, and those that are held back."""

    below: str = ""
    asked: dict[str, ToolUseBlock] = field(default_factory=dict[str, ToolUseBlock])
    held: list[tuple[Line, SeenCall]] = field(default_factory=list[tuple[Line, SeenCall]])


class Narrator:
    """Takes records in order. A call that went well is held back, as the next one may belong to it, until another
    thing happens to its agent, a turn ends, the team does something, or `rest` is asked for.
    """

    def __init__(self, tool_of: ToolOf = builtin_tool) -> None:
        self._tool_of = tool_of
        self._writers: dict[str, _Writer] = {}

    def take(self, writer: str, at: float, record: AnyRecord) -> list[Told]:
        known = self._writers.setdefault(writer, _Writer())
        match record:
            case MemberAdded(boot=boot):
                self._writers.setdefault(boot.agent, _Writer()).below = boot.workspace.root
            case BlockComplete(block=ToolUseBlock() as block):
                known.asked[block.id] = block
                return []
            case ToolStarted() | MessageClosed() | StepClosed():
                return []
            case ToolFinished(result=result):
                return self._finished(known, writer, at, record, result)
            case _:
                pass
        line = line_of(writer, at, record)
        if isinstance(record, TurnClosed) or (line is not None and is_team_record(record)):
            return [*self.rest(), *([] if line is None else [Told(line)])]
        return [] if line is None else [*self._release(known), Told(line)]

    def rest(self) -> list[Told]:
        """What was held back, by all agents."""
        return sorted(
            (told for known in self._writers.values() for told in self._release(known)), key=lambda told: told.line.at
        )

    def _finished(self, known: _Writer, writer: str, at: float, record: ToolFinished, result: CallResult) -> list[Told]:
        line = line_of(writer, at, record)
        block = known.asked.pop(result.call_id, None)
        if line is None:
            return []
        call = SeenCall(result.name, block.input if block is not None else {}, result)
        if not call.went_well:
            return [*self._release(known), self._told(known, line, call)]
        before = self._release(known) if known.held and known.held[-1][1].name != call.name else []
        known.held.append((line, call))
        return before

    def _release(self, known: _Writer) -> list[Told]:
        held, known.held = known.held, []
        if len(held) > 1:
            (first, *others) = in_groups([call for _, call in held], self._tool_of, below=known.below)
            if not others:
                line = held[-1][0]
                return [Told(Line(line.at, line.who, first_line(first), line.tone), first)]
        return [self._told(known, line, call) for line, call in held]

    def _told(self, known: _Writer, line: Line, call: SeenCall) -> Told:
        return Told(line, shown(call, self._tool_of, below=known.below))
