"""The scripted model: an answer is a function of script and conversation, so a restarted agent goes on rightly.

Nothing about an agent's place is kept but a memo of its last request, which saves replaying the conversation each time,
and the count of failed attempts at the answer that is due.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from retinue.agents.model.breaks import reason_of_status
from retinue.agents.model.course import Course, Plan, Standing
from retinue.agents.model.incoming import incoming_of
from retinue.agents.model.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    Usage,
)
from retinue.agents.model.performance import (
    CHARS_PER_TOKEN,
    Began,
    Closed,
    Ended,
    Grew,
    Opened,
    Piece,
    Refused,
    Snapped,
    Timed,
    perform,
    text_of,
)
from retinue.agents.model.port import (
    BlockDone,
    BreakKind,
    Broken,
    MessageDone,
    MessageStarted,
    ModelRequest,
    StreamEvent,
    TextDelta,
    digest_of,
    prompt_of,
)
from retinue.agents.model.script import Fail, FailKind, Script, UsageOverride

Sleep = Callable[[float], Awaitable[None]]

_MEMOS = 512
_SNAPS: dict[FailKind, tuple[BreakKind, str]] = {
    "drop": ("dropped", "the connection was lost in mid-stream"),
    "stall": ("dropped", "nothing more came"),
    "close": ("truncated", "the stream ended before the message did"),
    "error": ("overloaded", "the server said in mid-stream that it is overloaded"),
}


class Unscripted(Exception):
    """The request has no answer: the script says nothing about this agent, or something else came than it expects."""

    def __init__(self, reason: BreakKind, message: str) -> None:
        super().__init__(reason, message)
        self.reason: BreakKind = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class _Memo:
    """What is known up to the last request of a conversation: `count` messages, the last of which is `last`."""

    count: int
    last: Message
    plan: Plan
    chars: int
    chars_before: int
    failed: int = 0


class ScriptedModel:
    """Plays one script for any number of agents at once. `where` is how people call the script."""

    def __init__(self, script: Script, where: str = "the script", sleep: Sleep = asyncio.sleep) -> None:
        self._script = script
        self._where = where
        self._sleep = sleep
        self._courses: dict[str, Course] = {}
        self._memos: OrderedDict[tuple[str, str, str], _Memo] = OrderedDict()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """As `ModelPort.stream`."""
        try:
            pieces = self.pieces(request)
        except Unscripted as error:
            yield Broken(reason=error.reason, message=error.message)
            return
        for timed in pieces:
            await self.wait(timed)
            if (event := _event(timed.piece, request.model)) is not None:
                yield event

    def pieces(self, request: ModelRequest) -> tuple[Timed, ...]:
        """The answer in the grain of the wire; counts as an attempt at it. Raises Unscripted."""
        if not request.messages:
            raise Unscripted("invalid_request", "a request needs at least one message")
        if request.side:
            return tuple(self._beside(request))
        key, memo = self._recall(request)
        plan = memo.plan
        if plan.unexpected:
            raise Unscripted("expectation", plan.unexpected)
        fail = self._due(plan.fail, max(memo.failed, request.attempt))
        if fail is not None:
            self._memos[key] = replace(memo, failed=memo.failed + 1)
        usage = _usage(memo, _prefix_chars(request), plan)
        return tuple(perform(plan, usage, plan.pace or self._script.pace, fail))

    def _beside(self, request: ModelRequest) -> Iterable[Timed]:
        """A function of the question alone."""
        if request.search is not None:
            raise Unscripted("invalid_request", f"{self._where}: a scripted model has no search of its own")
        question = prompt_of(request)
        turn = self._script.side_for(question)
        if turn is None:
            asked = " ".join(question.split())[-100:]
            what = f"{self._where} has no answer under side to the question that ends in {asked!r}; add one"
            raise Unscripted("not_found", what)
        prefix = (len(request.system) + len(question)) // CHARS_PER_TOKEN
        estimate = Usage(input=prefix, output=max(1, len(turn.say) // CHARS_PER_TOKEN))
        usage = estimate.model_copy(update=(turn.usage or UsageOverride()).model_dump(exclude_none=True))
        identifier = f"msg_side_{digest_of(request)}"
        plan = Plan(Standing(captured={}), (TextBlock(text=turn.say),), "end_turn", identifier)
        return perform(plan, usage, self._script.pace, None)

    async def wait(self, timed: Timed) -> None:
        """Keep the pace; a block that is complete lets others run, so that its call can start."""
        if timed.after_s or isinstance(timed.piece, Closed):
            await self._sleep(timed.after_s)

    def estimate(self, request: ModelRequest) -> int:
        """Tokens of the whole input, as the usage of an answer counts them."""
        return (_prefix_chars(request) + sum(map(_chars, request.messages))) // CHARS_PER_TOKEN

    def _due(self, fail: Fail | None, attempts: int) -> Fail | None:
        return fail if fail is not None and fail.kind != "malformed" and attempts < fail.times else None

    def _recall(self, request: ModelRequest) -> tuple[tuple[str, str, str], _Memo]:
        course = self._course(request.agent)
        messages = request.messages
        key = (request.run, request.agent, _opening(messages))
        memo = self._memos.get(key)
        if memo is None or not _continues(memo, messages):
            memo = None
        if memo is None or memo.count < len(messages):
            memo = _replayed(course, memo, messages)
        self._memos[key] = memo
        self._memos.move_to_end(key)
        if len(self._memos) > _MEMOS:
            self._memos.popitem(last=False)
        return key, memo

    def _course(self, agent: str) -> Course:
        course = self._courses.get(agent)
        if course is None:
            turns = self._script.turns_for(agent)
            if turns is None:
                names = ", ".join(self._script.agents)
                raise Unscripted(
                    "not_found", f'{self._where} has no turns for agent {agent}, only for {names}; add it, or "*"'
                )
            course = self._courses[agent] = Course(agent, turns, self._where)
        return course


def _prefix_chars(request: ModelRequest) -> int:
    return len(request.system) + sum(map(_tool_chars, request.tools))


def _tool_chars(tool: ToolSpec) -> int:
    """A parameter counts as much as a usual one; writing out every schema for every request would cost too much."""
    properties = tool.input_schema.get("properties")
    return len(tool.name) + len(tool.description) + 80 * (len(properties) if isinstance(properties, dict) else 1)


def _opening(messages: tuple[Message, ...]) -> str:
    """Tells conversations of one agent's name apart: a child's from the next child's."""
    first = messages[0].content[0] if messages and messages[0].content else None
    return first.text if isinstance(first, TextBlock) else ""


def _continues(memo: _Memo, messages: tuple[Message, ...]) -> bool:
    if memo.count > len(messages) or messages[memo.count - 1] != memo.last:
        return False
    return memo.count == len(messages) or isinstance(messages[memo.count], AssistantMessage)


def _replayed(course: Course, memo: _Memo | None, messages: tuple[Message, ...]) -> _Memo:
    """The memo of the whole conversation, from that of its beginning, after which the model spoke."""
    start = memo.count if memo else 0
    plan = memo.plan if memo else None
    standing: Standing = course.start
    chars, chars_before = (memo.chars, memo.chars_before) if memo else (0, 0)
    asked: AssistantMessage | None = None
    answers: list[Message] = []
    for message in messages[start:]:
        if isinstance(message, AssistantMessage):
            plan = plan or course.plan(standing, incoming_of(asked, answers))
            standing, asked, answers, plan = course.after(plan, message), message, [], None
            chars_before = chars
        else:
            answers.append(message)
        chars += _chars(message)
    plan = plan or course.plan(standing, incoming_of(asked, answers))
    return _Memo(len(messages), messages[-1], plan, chars, chars_before)


def _chars(message: Message) -> int:
    return sum(map(_block_chars, message.content))


def _block_chars(block: AssistantBlock | ToolResultBlock) -> int:
    if isinstance(block, ToolResultBlock):
        return len(block.content)
    if isinstance(block, ToolUseBlock) and block.malformed is not None:
        return len("{}")  # what goes back to a model
    return len(text_of(block))


def _usage(memo: _Memo, prefix: int, plan: Plan) -> Usage:
    """What an earlier request of the conversation had is read from the cache, the rest is new."""
    whole = (prefix + memo.chars) // CHARS_PER_TOKEN
    cached = (prefix + memo.chars_before) // CHARS_PER_TOKEN if memo.chars_before else 0
    output = sum(len(text_of(block)) for block in plan.blocks) // CHARS_PER_TOKEN
    override = plan.usage or UsageOverride()
    estimate = Usage(input=whole - cached, output=max(1, output), cache_read=cached)
    return estimate.model_copy(update=override.model_dump(exclude_none=True))


def _event(piece: Piece, model: str) -> StreamEvent | None:
    match piece:
        case Began():
            return MessageStarted(message_id=piece.message_id, model=model)
        case Grew():
            return TextDelta(text=piece.text) if isinstance(piece.block, TextBlock) else None
        case Closed():
            return BlockDone(index=piece.index, block=piece.block)
        case Ended():
            return MessageDone(stop_reason=piece.stop_reason, usage=piece.usage)
        case Refused():
            text = f"the script refuses with status {piece.status}"
            return Broken(reason=reason_of_status(piece.status), message=text, retry_after_s=piece.retry_after_s)
        case Snapped():
            reason, text = _SNAPS[piece.how]
            return Broken(reason=reason, message=f"{text} (script)")
        case Opened():
            return None
