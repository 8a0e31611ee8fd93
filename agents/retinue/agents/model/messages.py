"""A conversation as the Messages API has it: roles and blocks. One set of types from the stream to the ledger."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from retinue.tools.execution.calls import Media


class Wire(BaseModel):
    """Base of what crosses processes or goes to disk."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class TextBlock(Wire):
    type: Literal["text"] = "text"
    text: str


class ThinkingBlock(Wire):
    """Goes back verbatim, signature included."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""


class RedactedThinkingBlock(Wire):
    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class ToolUseBlock(Wire):
    """`malformed` keeps input text that was not JSON; such a call is answered with an error, and sent back as {}."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: dict[str, JsonValue] = {}
    malformed: str | None = None


class ToolResultBlock(Wire):
    """`media` are references: their bytes lie in the run's files, and are loaded by who sends them.

    `tools` are deferred tools that the result brings: a provider that knows references is sent these, not the text.
    """

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: str
    is_error: bool = False
    media: tuple[Media, ...] = ()
    tools: tuple[str, ...] = ()


AssistantBlock = Annotated[
    TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock, Field(discriminator="type")
]
UserBlock = Annotated[TextBlock | ToolResultBlock, Field(discriminator="type")]


class UserMessage(Wire):
    role: Literal["user"] = "user"
    content: tuple[UserBlock, ...]


class AssistantMessage(Wire):
    role: Literal["assistant"] = "assistant"
    content: tuple[AssistantBlock, ...]


Message = Annotated[UserMessage | AssistantMessage, Field(discriminator="role")]


class ToolSpec(Wire):
    """One tool.

    builtin   it belongs to the part of the tools that stays the same whatever servers bring, and stands first
    deferred  the provider keeps it from the model until a result refers to it
    strict    the provider holds the model to the schema
    """

    name: str
    description: str
    input_schema: dict[str, JsonValue]
    builtin: bool = True
    deferred: bool = False
    strict: bool = False


class Usage(Wire):
    """Tokens. `input` excludes what was read from or written to the cache; the whole input is the sum of three."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
        )

    @property
    def total(self) -> int:
        return self.input + self.output + self.cache_read + self.cache_write
