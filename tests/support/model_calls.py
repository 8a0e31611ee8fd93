"""What a run's models did, read off its ledger: requests, calls by outcome, tokens, and what broke."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.history import Conversation, unpaired
from retinue.agents.model.messages import ToolUseBlock, Usage
from retinue.agents.records import (
    BlockComplete,
    MessageClosed,
    MessageWithdrawn,
    RequestSent,
    ToolFinished,
    TurnClosed,
)
from retinue.orchestrator.ledger.frames import Record
from retinue.orchestrator.ledger.history import mail_recipient
from retinue.orchestrator.ledger.parse import parse_agent_record, parse_team_record
from retinue.orchestrator.ledger.reader import read_all
from retinue.orchestrator.ledger.records import TEAM_WRITER, MemberAdded, PhaseChanged, TeamRecord
from retinue.tools.execution.calls import CallResult

OUTCOMES = ("valid", "tool failed", "refused", "denied", "schema error", "unknown tool", "malformed JSON")
WRONG = frozenset({"schema error", "unknown tool", "malformed JSON"})


@dataclass
class ModelCount:
    requests: int = 0
    turns: int = 0
    calls: Counter[str] = field(default_factory=Counter[str])
    usage: Usage = field(default_factory=Usage)


@dataclass
class Account:
    """`broken`: streams without a whole message. `unanswered`: requests after which no message came."""

    models: defaultdict[str, ModelCount] = field(default_factory=lambda: defaultdict[str, ModelCount](ModelCount))
    broken: list[str] = field(default_factory=list[str])
    unanswered: list[str] = field(default_factory=list[str])
    without_usage: list[str] = field(default_factory=list[str])
    wrong_calls: list[str] = field(default_factory=list[str])
    silent_errors: list[str] = field(default_factory=list[str])
    unpaired: list[str] = field(default_factory=list[str])
    malformed_for_a_tool: int = 0
    phase: str = "running"
    detail: str = ""

    @property
    def requests(self) -> int:
        return sum(count.requests for count in self.models.values())


def outcome_of(call: ToolUseBlock, result: CallResult) -> str:
    if call.malformed is not None:
        return "malformed JSON"
    if result.denied:
        return "denied"
    named = {"NoSuchTool": "unknown tool", "InputValidationError": "schema error"}.get(result.error_class)
    if named is not None:
        return named
    if not result.is_error:
        return "valid"
    return "tool failed" if result.ran else "refused"


def account_of(ledger: Path) -> Account:
    reading = _Reading()
    for record in read_all(ledger):
        reading.take(record)
    account = reading.account
    account.unanswered = [f"{agent} step {step}" for agent, step in sorted(reading.waiting)]
    account.unpaired = _unpaired(reading.conversations.items())
    return account


class _Reading:
    """`waiting`: requests (agent, step) that have no message yet."""

    def __init__(self) -> None:
        self.account = Account()
        self.waiting: set[tuple[str, int]] = set()
        self.conversations: defaultdict[str, Conversation] = defaultdict(Conversation)
        self._models: dict[str, str] = {}
        self._calls: dict[tuple[str, str], ToolUseBlock] = {}

    def take(self, record: Record) -> None:
        if record.writer == TEAM_WRITER:
            self._team(parse_team_record(record.kind, record.body))
        agent = mail_recipient(record) or record.writer
        typed = parse_agent_record(record.kind, record.body)
        if typed is None or agent == TEAM_WRITER:
            return
        self.conversations[agent].apply(typed)
        count = self.account.models[self._models[agent]]
        match typed:
            case RequestSent() | MessageClosed() | MessageWithdrawn():
                self._request(agent, typed, count)
            case BlockComplete(block=ToolUseBlock() as call):
                self._calls[(agent, call.id)] = call
            case ToolFinished():
                self._result(agent, typed, count)
            case TurnClosed(reason=end, detail=detail):
                count.turns += 1
                if end in ("model_error", "expectation"):
                    self.account.broken.append(f"{agent}: {end}: {detail}")
            case _:
                pass

    def _team(self, record: TeamRecord | None) -> None:
        match record:
            case MemberAdded(boot=boot):
                self._models[boot.agent] = boot.model
            case PhaseChanged(phase=phase, detail=detail):
                self.account.phase, self.account.detail = phase, detail
            case _:
                pass

    def _request(self, agent: str, record: RequestSent | MessageClosed | MessageWithdrawn, count: ModelCount) -> None:
        where = f"{agent} step {record.step}"
        match record:
            case RequestSent():
                count.requests += 1
                self.waiting.add((agent, record.step))
            case MessageClosed(stop_reason=reason, usage=usage):
                self.waiting.discard((agent, record.step))
                count.usage += usage
                if not (usage.input or usage.cache_read) or not usage.output:
                    self.account.without_usage.append(f"{where}: {usage}")
                if reason is None:
                    self.account.broken.append(f"{where}: the stream broke after a call had started")
            case MessageWithdrawn(reason=why):
                self.account.broken.append(f"{where}: {why}")

    def _result(self, agent: str, record: ToolFinished, count: ModelCount) -> None:
        result = record.result
        outcome = outcome_of(self._calls[(agent, result.call_id)], result)
        count.calls[outcome] += 1
        self.account.malformed_for_a_tool += outcome == "malformed JSON" and result.error_class != "NoSuchTool"
        if outcome in WRONG:
            text = " ".join(result.content.split())
            self.account.wrong_calls.append(f"{agent} step {record.step}: {outcome}: {text[:150]}")
        if outcome in WRONG and (not result.is_error or result.ran or not result.content):
            self.account.silent_errors.append(f"{agent} step {record.step}: {result}")


def _unpaired(conversations: Iterable[tuple[str, Conversation]]) -> list[str]:
    """The last message of a conversation may be the user's: the results that no further request carried."""
    return [f"{agent}: {wrong}" for agent, each in conversations for wrong in unpaired(each.messages())]
