"""A stretch of a conversation replaced by a note of the agent: what goes, what stays, how much that frees. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.agents.model.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserBlock,
    UserMessage,
)
from retinue.agents.records import HistorySnipped
from retinue.agents.tokens import estimate_tokens
from retinue.tools.text import counted


def exchanges(messages: Sequence[Message]) -> list[int]:
    """Where they begin, the oldest first: each is a message of the agent with the results of its calls."""
    return [index for index, message in enumerate(messages) if isinstance(message, AssistantMessage)]


def snipped(messages: Sequence[Message], record: HistorySnipped) -> tuple[list[Message], int]:
    """The messages without the stretch, and about how many tokens fewer. What others said in it stays."""
    begins = exchanges(messages)
    first, behind = begins[-record.oldest], begins[-record.newest] + 2
    before, gone = messages[first - 1], messages[first:behind]
    kept: list[UserBlock] = [block for m in gone if isinstance(m, UserMessage) for block in m.content if _stays(block)]
    number = record.oldest - record.newest + 1
    were = "was" if number == 1 else "were"
    note = TextBlock(text=f"[Here {were} {counted(number, 'exchange')}, replaced by this note of yours: {record.note}]")
    joined = UserMessage.model_construct(content=(*before.content, note, *kept))
    freed = sum(map(_tokens, gone)) - sum(map(_size, kept)) - _size(note)
    return [*messages[: first - 1], joined, *messages[behind:]], max(0, freed)


def _stays(block: UserBlock) -> bool:
    return not isinstance(block, ToolResultBlock)


def _tokens(message: Message) -> int:
    return sum(map(_size, message.content))


def _size(block: object) -> int:
    match block:
        case TextBlock(text=text) | ThinkingBlock(thinking=text):
            return estimate_tokens(text)
        case ToolUseBlock():
            return estimate_tokens(str(block.input))
        case ToolResultBlock():
            return estimate_tokens(block.content) + sum(media.tokens for media in block.media)
        case _:
            return 0
