"""An agent's conversation as a fold over its records: the same live, after a crash, and in a replay. Pure.

One record costs the same at the first turn and at the thousandth. Pairs hold by construction: results are read off the
calls of the assistant message, one each, in its order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from retinue.agents.background.state import BackgroundTasks
from retinue.agents.mail.mailbox import Mailbox
from retinue.agents.model.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UserBlock,
    UserMessage,
)
from retinue.agents.records import (
    AgentRecord,
    AgentWaits,
    BackgroundEnded,
    BackgroundStarted,
    BlockComplete,
    HistorySnipped,
    HooksRan,
    InnerFinished,
    InnerStarted,
    MailStored,
    MessageClosed,
    MessageWithdrawn,
    PromptRefused,
    RequestSent,
    SideAnswered,
    StateKept,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.agents.snipped import snipped
from retinue.agents.tokens import estimate_tokens
from retinue.agents.turn import Spoken
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult
from retinue.tools.files.state import Seen

Phase = Literal["idle", "asking", "acting", "between"]
"""No turn is open; a request has no whole message yet; calls have no results yet; a step is closed, the turn is not."""

_LOST = "No result was recorded for this call; its outcome is unknown. Look at what it did before you repeat it."
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_MOST_NAME = 128


@dataclass(slots=True)
class OpenStep:
    """The step in flight. `withdrawn` counts the messages that were taken back before this one."""

    turn: int
    step: int
    blocks: dict[int, AssistantBlock] = field(default_factory=dict[int, AssistantBlock])
    closed: MessageClosed | None = None
    started: dict[str, ToolStarted] = field(default_factory=dict[str, ToolStarted])
    finished: dict[str, CallResult] = field(default_factory=dict[str, CallResult])
    withdrawn: int = 0

    def ordered(self) -> list[AssistantBlock]:
        return [self.blocks[index] for index in sorted(self.blocks)]

    def calls(self) -> list[ToolUseBlock]:
        return [block for block in self.ordered() if isinstance(block, ToolUseBlock)]

    @property
    def changed_something(self) -> bool:
        """A call began that was not read-only."""
        return any(not started.read_only for started in self.started.values())


class Conversation:
    """
    open             the step in flight
    spoken           the last closed one of the open turn
    last_usage       of the last request
    kept             what is kept beside the conversation, by name
    snips            about how many tokens each call of Snip freed, by its key
    halted           why a hook wants the turn to end; None: none does
    changed_beside   something in the background may have changed files since the last step was closed
    announced        deferred tools that the model has heard of
    loaded           deferred tools whose definitions it has, in the order in which it got them
    """

    def __init__(self, mailbox: Mailbox | None = None) -> None:
        self.mailbox = mailbox or Mailbox()
        self.background = BackgroundTasks()
        self.changed_beside = False
        self.halted: str | None = None
        self.announced: dict[str, None] = {}
        self.loaded: dict[str, None] = {}
        self.turn = 0
        self.step = 0
        self.turn_open = False
        self.open: OpenStep | None = None
        self.spoken = Spoken(None)
        self.in_a_row = 0
        self.usage = Usage()
        self.last_usage = Usage()
        self.context_tokens = 0
        self.seen: dict[str, Seen] = {}
        self.last_text = ""
        self.last_turn: TurnClosed | None = None
        self.snips: dict[str, int] = {}
        self.kept: dict[str, StateKept] = {}
        self._messages: list[Message] = []
        self._ids: set[str] = set()

    @classmethod
    def of(cls, records: Iterable[AgentRecord]) -> Conversation:
        conversation = cls()
        for record in records:
            conversation.apply(record)
        return conversation

    # --- questions ---

    @property
    def phase(self) -> Phase:
        if self.open is not None:
            return "acting" if self.open.closed is not None else "asking"
        return "between" if self.turn_open else "idle"

    @property
    def requests(self) -> int:
        return self.step

    def messages(self) -> tuple[Message, ...]:
        """What the next request carries: alternating roles, every call with its result."""
        return tuple(self._messages)

    def acceptable(self, block: AssistantBlock) -> AssistantBlock:
        """A call with an id of its own, and a name that may be sent back, whatever the model made up."""
        if not isinstance(block, ToolUseBlock):
            return block
        name = _UNFIT.sub("_", block.name)[:_MOST_NAME] or "unnamed"
        stem = identifier = _UNFIT.sub("_", block.id)[:_MOST_NAME] or "call"
        number = len(self._ids)
        while identifier in self._ids:
            identifier = f"{stem}-{number}"
            number += 1
        if (identifier, name) == (block.id, block.name):
            return block
        return block.model_copy(update={"id": identifier, "name": name})

    # --- the fold ---

    def apply(self, record: AgentRecord) -> None:
        """Raises InvariantBroken for a record that this state cannot take."""
        match record:
            case BlockComplete():
                self._block(record)
            case ToolStarted():
                self._call_of(record.step, record.call_id).started[record.call_id] = record
            case ToolFinished():
                self._finish(record)
            case MessageClosed():
                self._close_message(record)
            case MessageWithdrawn():
                self._withdraw(record)
            case StepClosed():
                self._close_step(record)
            case MailStored() | RequestSent() | TurnClosed() | PromptRefused():
                self._frame(record)
            case InnerStarted() | InnerFinished() | SideAnswered():
                self._inside(record)
            case BackgroundStarted() | BackgroundEnded() | HistorySnipped() | StateKept() | HooksRan() | AgentWaits():
                self._beside(record)
            case _:
                assert_never(record)

    def _inside(self, record: InnerStarted | InnerFinished | SideAnswered) -> None:
        """The outer call is what the model hears of; what files the inner ones saw counts all the same, and so does
        what a question to a small model used.
        """
        if isinstance(record, SideAnswered):
            self.usage += record.usage
            return
        self._call_of(record.step, record.outer)
        if isinstance(record, InnerFinished):
            self.seen.update(record.result.seen)

    def _beside(
        self, record: BackgroundStarted | BackgroundEnded | HistorySnipped | StateKept | HooksRan | AgentWaits
    ) -> None:
        """What belongs to no message."""
        if isinstance(record, HistorySnipped):
            self._messages, freed = snipped(self._messages, record)
            self.snips[record.key] = freed
            self.context_tokens = max(0, self.context_tokens - freed)
        elif isinstance(record, StateKept):
            self.kept[record.name] = record
        elif isinstance(record, HooksRan):
            self.halted = self.halted or record.halts
        elif not isinstance(record, AgentWaits):
            self.background.apply(record)
            self.changed_beside = True

    def _frame(self, record: MailStored | RequestSent | TurnClosed | PromptRefused) -> None:
        if isinstance(record, RequestSent):
            self._ask(record)
        elif isinstance(record, TurnClosed):
            self._close_turn(record)
        self.mailbox.apply(record)

    def _ask(self, record: RequestSent) -> None:
        due = self.turn if self.turn_open else self.turn + 1
        if self.open is not None or (record.turn, record.step) != (due, self.step + 1):
            raise InvariantBroken(f"request {record.turn}/{record.step} while {self.phase} at {self.turn}/{self.step}")
        if not self.turn_open:
            self.in_a_row, self.last_text, self.spoken = 0, "", Spoken(None)
        self.turn, self.step, self.turn_open = record.turn, record.step, True
        self.last_usage = Usage()
        self.open = OpenStep(record.turn, record.step)
        self.announced |= dict.fromkeys(record.announced)
        for name in record.withdrawn:
            self.announced.pop(name, None)
        self._append_user(tuple(block for block in record.input if block.text))

    def _block(self, record: BlockComplete) -> None:
        step = self._step_of(record.step)
        if step.closed is not None or record.index in step.blocks:
            raise InvariantBroken(f"block {record.index} of step {record.step} is one too many")
        step.blocks[record.index] = record.block
        if isinstance(record.block, ToolUseBlock):
            self._ids.add(record.block.id)

    def _finish(self, record: ToolFinished) -> None:
        call = record.result.call_id
        step = self._call_of(record.step, call)
        if call in step.finished:
            raise InvariantBroken(f"{call} has a second result")
        step.finished[call] = record.result
        self.seen.update(record.result.seen)
        self.mailbox.apply(record)

    def _close_message(self, record: MessageClosed) -> None:
        step = self._step_of(record.step)
        if step.closed is not None:
            raise InvariantBroken(f"the message of step {record.step} is closed twice")
        step.closed = record
        self.usage += record.usage
        self.last_usage = record.usage
        if record.usage.total:
            self.context_tokens = record.usage.total

    def _withdraw(self, record: MessageWithdrawn) -> None:
        step = self._step_of(record.step)
        if step.closed is not None:
            raise InvariantBroken(f"the message of step {record.step} is closed and cannot be withdrawn")
        self._ids.difference_update(call.id for call in step.calls())
        step.blocks.clear()
        step.started.clear()
        step.finished.clear()
        step.withdrawn += 1

    def _close_step(self, record: StepClosed) -> None:
        step = self._step_of(record.step)
        if step.closed is None:
            raise InvariantBroken(f"step {record.step} ends before its message")
        calls = step.calls()
        stop = step.closed.stop_reason
        self.spoken = Spoken(stop, len(calls), sum(call.malformed is not None for call in calls))
        self.in_a_row = self.in_a_row + 1 if stop in ("max_tokens", "pause_turn") else 0
        self.open = None
        self.changed_beside = bool(self.background.running())
        blocks = _sendable(step.ordered())
        if stop == "refusal" and not calls:
            return
        self._append_assistant(blocks)
        self.last_text = _said(blocks) or self.last_text
        self._append_results(calls, _as_shown(step.finished, record.shortened))

    def _append_assistant(self, blocks: tuple[AssistantBlock, ...]) -> None:
        """A paused message and what it went on with are one."""
        if not blocks:
            return
        last = self._messages[-1] if self._messages else None
        if isinstance(last, AssistantMessage):
            self._messages[-1] = AssistantMessage.model_construct(content=(*last.content, *blocks))
        else:
            self._messages.append(AssistantMessage.model_construct(content=blocks))

    def _append_results(self, calls: Sequence[ToolUseBlock], finished: dict[str, CallResult]) -> None:
        results: list[UserBlock] = []
        texts: list[UserBlock] = []
        for call in calls:
            result = finished.get(call.id)
            content = result.content if result else _LOST
            error = result.is_error if result else True
            media = result.media if result and not error else ()
            tools = result.loaded if result and not error else ()
            self.loaded |= dict.fromkeys(tools)
            results.append(
                ToolResultBlock.model_construct(
                    tool_use_id=call.id, content=content, is_error=error, media=media, tools=tools
                )
            )
            texts.extend(TextBlock(text=text) for text in (result.new_messages if result else ()) if text)
        self._append_user((*results, *texts))

    def _append_user(self, blocks: tuple[UserBlock, ...]) -> None:
        if not blocks:
            return
        for block in blocks:
            self.context_tokens += estimate_tokens(block.text if isinstance(block, TextBlock) else block.content)
            if isinstance(block, ToolResultBlock):
                self.context_tokens += sum(media.tokens for media in block.media)
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            self._messages[-1] = UserMessage.model_construct(content=(*last.content, *blocks))
        else:
            self._messages.append(UserMessage.model_construct(content=blocks))

    def _close_turn(self, record: TurnClosed) -> None:
        if self.open is not None and (self.open.blocks or self.open.closed):
            raise InvariantBroken(f"turn {record.turn} ends in the middle of step {self.open.step}")
        self.open = None
        self.turn, self.turn_open, self.halted = record.turn, False, None
        self.last_turn = record

    def _step_of(self, step: int) -> OpenStep:
        if self.open is None or self.open.step != step:
            raise InvariantBroken(f"a record of step {step} while {self.phase} at {self.turn}/{self.step}")
        return self.open

    def _call_of(self, step: int, call: str) -> OpenStep:
        found = self._step_of(step)
        if not any(isinstance(block, ToolUseBlock) and block.id == call for block in found.blocks.values()):
            raise InvariantBroken(f"{call} is no call of step {step}")
        return found


def _as_shown(finished: dict[str, CallResult], shortened: dict[str, str]) -> dict[str, CallResult]:
    return {
        call: result.model_copy(update={"content": shortened[call]}) if call in shortened else result
        for call, result in finished.items()
    }


def _sendable(blocks: Iterable[AssistantBlock]) -> tuple[AssistantBlock, ...]:
    """Without empty texts; nothing at all when only thoughts are left, which may not stand alone."""
    kept = tuple(block for block in blocks if not isinstance(block, TextBlock) or block.text.strip())
    return kept if any(isinstance(block, TextBlock | ToolUseBlock) for block in kept) else ()


def _said(blocks: Iterable[AssistantBlock]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock)).strip()


def unpaired(messages: Sequence[Message]) -> list[str]:
    """What is wrong with a list of messages, for checks: roles that do not alternate, calls and results that miss."""
    wrong: list[str] = []
    due: list[str] = []
    for index, message in enumerate(messages):
        if message.role != ("user" if index % 2 == 0 else "assistant"):
            wrong.append(f"message {index} is of the {message.role}")
        answered = [block.tool_use_id for block in message.content if isinstance(block, ToolResultBlock)]
        if answered != due:
            wrong.append(f"message {index} answers {answered}, due is {due}")
        if not all(isinstance(block, ToolResultBlock) for block in message.content[: len(answered)]):
            wrong.append(f"message {index} has text before its results")
        due = [block.id for block in message.content if isinstance(block, ToolUseBlock)]
    return [*wrong, f"no results of {due}"] if due else wrong
