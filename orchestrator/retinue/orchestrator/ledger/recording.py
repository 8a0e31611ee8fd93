"""What the models of an earlier run answered, read from its ledger: the source of `replay:RUN`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from retinue.agents.identity import name_of
from retinue.agents.model.messages import AssistantBlock
from retinue.agents.model.replay import RecordedAnswer, RecordedSide
from retinue.agents.records import BlockComplete, MessageClosed, MessageWithdrawn, SideAnswered
from retinue.orchestrator.ledger.parse import parse_agent_record
from retinue.orchestrator.ledger.reader import read_all

_KINDS = ("block", "message_closed", "message_withdrawn", "side_answered")


class LedgerRecording:
    """Implements `Recording`, by agent name. Read once, when it is made; StateError when there is no ledger."""

    def __init__(self, ledger: Path) -> None:
        self._answers: defaultdict[str, list[RecordedAnswer]] = defaultdict(list)
        self._sides: defaultdict[str, list[RecordedSide]] = defaultdict(list)
        spoken: defaultdict[str, list[AssistantBlock]] = defaultdict(list)
        for frame in read_all(ledger, kinds=_KINDS):
            blocks = spoken[frame.writer]
            match parse_agent_record(frame.kind, frame.body):
                case BlockComplete(block=block):
                    blocks.append(block)
                case MessageWithdrawn():
                    blocks.clear()
                case MessageClosed() as closed:
                    answer = RecordedAnswer(tuple(blocks), closed.usage, closed.stop_reason)
                    self._answers[name_of(frame.writer)].append(answer)
                    blocks.clear()
                case SideAnswered() as said:
                    self._sides[name_of(frame.writer)].append(
                        RecordedSide(said.digest, said.text, said.usage, said.hits)
                    )
                case _:
                    pass

    def answers(self, agent: str) -> Sequence[RecordedAnswer]:
        return self._answers.get(agent, ())

    def sides(self, agent: str) -> Sequence[RecordedSide]:
        return self._sides.get(agent, ())
