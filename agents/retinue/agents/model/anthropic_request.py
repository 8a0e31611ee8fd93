"""A request as the Messages API wants it. Pure; knows the wire, not the client."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from pydantic import JsonValue

from retinue.agents.model.messages import (
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
)
from retinue.agents.model.port import ModelRequest
from retinue.tools.execution.calls import Media
from retinue.tools.ports import SearchQuery

Json = dict[str, JsonValue]
AnyBlock = TextBlock | ThinkingBlock | RedactedThinkingBlock | ToolUseBlock | ToolResultBlock

USER_ID_PREFIX = "retinue:"
SIDE_SUFFIX = "+side"
"""No agent's name ends so: a question beside the conversation of the agent before it."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_CACHED: Json = {"cache_control": {"type": "ephemeral"}}
_CACHEABLE = ("text", "tool_use", "tool_result")


def body_of(request: ModelRequest, model: str, loaded: Mapping[str, str] = _NOTHING) -> Json:
    """The body but for `stream`. Cache marks: after the built-in tools, the system prompt, and the last message.

    `loaded` has the media by their digests, in base64; one that is not there is named in words. There are references
    only to tools that are sent as deferred ones: the API refuses any other.
    """
    deferred = frozenset(tool.name for tool in request.tools if tool.deferred)
    body: Json = {
        "model": model,
        "max_tokens": request.max_tokens,
        "messages": [*_marked(_messages(request.messages, loaded, deferred))],
        "metadata": {"user_id": user_id(request.run, request.agent) + (SIDE_SUFFIX if request.side else "")},
    }
    if request.system:
        body["system"] = [{"type": "text", "text": clean(request.system), **_CACHED}]
    if request.search is not None:
        body["tools"] = [_search(request.search)]
    if request.tools:
        body["tools"] = [*_tools(request.tools)]
    return body


def _search(query: SearchQuery) -> Json:
    """The provider's own tool; it takes one of the two lists at most."""
    tool: Json = {"type": "web_search_20250305", "name": "web_search", "max_uses": query.max_uses}
    if query.allowed_domains:
        return {**tool, "allowed_domains": [*query.allowed_domains]}
    return {**tool, "blocked_domains": [*query.blocked_domains]} if query.blocked_domains else tool


def user_id(run: str, agent: str) -> str:
    return f"{USER_ID_PREFIX}{run}:{agent}"


def clean(text: str) -> str:
    """Without lone surrogates, which file names and tool output can hold and UTF-8 cannot."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _messages(messages: Iterable[Message], loaded: Mapping[str, str], deferred: Collection[str]) -> list[Json]:
    """Empty text is refused by the API, and so is a message without blocks: both are left out."""
    sent: list[Json] = []
    for message in messages:
        kept = (block for block in message.content if not (isinstance(block, TextBlock) and not block.text))
        blocks = [_block(block, loaded, deferred) for block in kept]
        if blocks:
            sent.append({"role": message.role, "content": [*blocks]})
    return sent


def _block(block: AnyBlock, loaded: Mapping[str, str], deferred: Collection[str]) -> Json:
    match block:
        case TextBlock():
            return {"type": "text", "text": clean(block.text)}
        case ThinkingBlock():
            return {"type": "thinking", "thinking": block.thinking, "signature": block.signature}
        case RedactedThinkingBlock():
            return {"type": "redacted_thinking", "data": block.data}
        case ToolUseBlock():
            sent = {} if block.malformed is not None else _clean_json(block.input)
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": sent}
        case ToolResultBlock():
            names = [name for name in block.tools if name in deferred]
            content = _references(names) if names else _content(block, loaded)
            result: Json = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
            return {**result, "is_error": True} if block.is_error else result


def _references(names: Iterable[str]) -> JsonValue:
    return [{"type": "tool_reference", "tool_name": name} for name in names]


def _content(block: ToolResultBlock, loaded: Mapping[str, str]) -> JsonValue:
    """Plain text where that is all; the API takes nothing else with an error."""
    text = clean(block.content)
    if block.is_error or not block.media:
        return text
    said: list[JsonValue] = [{"type": "text", "text": text}] if text else []
    return [*said, *(_medium(medium, loaded.get(medium.digest)) for medium in block.media)]


def _medium(medium: Media, data: str | None) -> JsonValue:
    if data is None:
        return {"type": "text", "text": f"[{medium.media_type} of {medium.size:,} bytes: not shown any more]"}
    kind = "image" if medium.media_type.startswith("image/") else "document"
    return {"type": kind, "source": {"type": "base64", "media_type": medium.media_type, "data": data}}


def _clean_json(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(key): _clean_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_clean_json(item) for item in value]
    return value


def _marked(messages: list[Json]) -> list[Json]:
    """The last block that may carry a mark gets it, if it is in the last message."""
    if not messages:
        return messages
    content = messages[-1]["content"]
    assert isinstance(content, list)
    for place in reversed(range(len(content))):
        block = content[place]
        if isinstance(block, dict) and block["type"] in _CACHEABLE:
            marked: list[JsonValue] = [*content[:place], {**block, **_CACHED}, *content[place + 1 :]]
            return [*messages[:-1], {**messages[-1], "content": marked}]
    return messages


def _tools(tools: Sequence[ToolSpec]) -> list[Json]:
    """The mark goes after the last built-in one: a tool more from a server then changes nothing before it.

    Never to a deferred one, which is no part of what is cached; and a request whose tools all are is refused, so then
    none of them is.
    """
    some_at_hand = not all(tool.deferred for tool in tools)
    sent = [_tool(tool, deferred=tool.deferred and some_at_hand) for tool in tools]
    at_hand = [n for n, tool in enumerate(sent) if "defer_loading" not in tool]
    place = max((n for n in at_hand if tools[n].builtin), default=at_hand[-1])
    sent[place] = {**sent[place], **_CACHED}
    return sent


def _tool(tool: ToolSpec, *, deferred: bool) -> Json:
    sent: Json = {"name": tool.name, "description": tool.description, "input_schema": tool.input_schema}
    if tool.strict:
        sent["strict"] = True
    return {**sent, "defer_loading": True} if deferred else sent
