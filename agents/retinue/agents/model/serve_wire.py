"""The Messages API from the server's side: bodies in, server-sent events out. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue, ValidationError

from retinue.agents.model.anthropic_request import SIDE_SUFFIX, USER_ID_PREFIX
from retinue.agents.model.messages import AssistantMessage, Message, ToolSpec, ToolUseBlock, Usage, UserMessage
from retinue.agents.model.performance import Began, Closed, Ended, Grew, Opened, Piece
from retinue.agents.model.port import ModelRequest

Json = dict[str, JsonValue]

DEFAULT_AGENT = "default"
_BLOCK_KEYS = {
    "text": ("type", "text"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input"),
}
_DELTAS = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}


def request_of(body: bytes) -> tuple[ModelRequest, bool]:
    """The request, and whether its answer is to be streamed. Raises ValueError, for the client to read."""
    try:
        sent = cast(object, json.loads(body))
    except (ValueError, RecursionError):
        raise ValueError("the body is not JSON") from None
    if not isinstance(sent, dict):
        raise ValueError("the body is not a JSON object")
    fields = cast(Json, sent)
    run, agent = _asker(fields.get("metadata"))
    try:
        request = ModelRequest(
            run=run,
            agent=agent.removesuffix(SIDE_SUFFIX),
            side=agent.endswith(SIDE_SUFFIX),
            model=str(fields.get("model") or ""),
            system=_text(fields.get("system")),
            messages=tuple(_messages(fields.get("messages"))),
            tools=tuple(_tools(fields.get("tools"))),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    return request, fields.get("stream") is True


def _asker(metadata: JsonValue) -> tuple[str, str]:
    """Run and agent from `metadata.user_id`; a client that is not retinue is one agent of no run."""
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    if not isinstance(user, str) or not user.startswith(USER_ID_PREFIX):
        return "", DEFAULT_AGENT
    run, _, agent = user.removeprefix(USER_ID_PREFIX).rpartition(":")
    return run, agent or DEFAULT_AGENT


def _list(value: JsonValue, name: str) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError(f"{name}: must be a list of objects")
    return cast(list[Json], value)


def _text(value: JsonValue) -> str:
    """A string, or the text of its text blocks."""
    if isinstance(value, str) or value is None:
        return value or ""
    return "\n".join(str(block.get("text", "")) for block in _list(value, "content") if block.get("type") == "text")


def _messages(value: JsonValue) -> Iterable[Message]:
    for sent in _list(value, "messages"):
        content = sent.get("content")
        blocks: list[Json] = (
            [{"type": "text", "text": content}] if isinstance(content, str) else _list(content, "content")
        )
        if sent.get("role") == "assistant":
            kept = [{key: block[key] for key in _keys(block) if key in block} for block in blocks]
            yield AssistantMessage.model_validate({"content": kept})
        else:
            yield UserMessage.model_validate({"content": [_user_block(block) for block in blocks]})


def _keys(block: Json) -> tuple[str, ...]:
    kind = str(block.get("type"))
    if kind not in _BLOCK_KEYS:
        raise ValueError(f"content: the script does not know blocks of type {kind}")
    return _BLOCK_KEYS[kind]


def _user_block(block: Json) -> Json:
    if block.get("type") != "tool_result":
        return {key: block[key] for key in _keys(block) if key in block}
    return {
        "type": "tool_result",
        "tool_use_id": block.get("tool_use_id"),
        "content": _text(block.get("content")),
        "is_error": block.get("is_error") is True,
    }


def _tools(value: JsonValue) -> Iterable[ToolSpec]:
    for tool in _list(value, "tools"):
        yield ToolSpec.model_validate(
            {
                "name": tool.get("name"),
                "description": tool.get("description", ""),
                "input_schema": tool.get("input_schema", {}),
            }
        )


def sse(piece: Piece, model: str) -> bytes:
    """The piece as server-sent events; empty for one that is not an event."""
    return b"".join(
        f"event: {event['type']}\ndata: {json.dumps(event, separators=(',', ':'))}\n\n".encode()
        for event in _events(piece, model)
    )


def error_body(error_type: str, message: str) -> Json:
    return {"type": "error", "error": {"type": error_type, "message": message}}


def _events(piece: Piece, model: str) -> Iterable[Json]:
    match piece:
        case Began():
            yield {"type": "message_start", "message": _message(piece, model)}
        case Opened():
            yield {"type": "content_block_start", "index": piece.index, "content_block": _empty(piece)}
        case Grew():
            kind, key = _DELTAS[piece.block.type]
            yield {"type": "content_block_delta", "index": piece.index, "delta": {"type": kind, key: piece.text}}
        case Closed():
            if piece.block.type == "thinking":
                delta: Json = {"type": "signature_delta", "signature": piece.block.signature}
                yield {"type": "content_block_delta", "index": piece.index, "delta": delta}
            yield {"type": "content_block_stop", "index": piece.index}
        case Ended():
            usage: Json = {"output_tokens": piece.usage.output}
            yield {
                "type": "message_delta",
                "delta": {"stop_reason": piece.stop_reason, "stop_sequence": None},
                "usage": usage,
            }
            yield {"type": "message_stop"}
        case _:
            return


def _empty(piece: Opened) -> Json:
    block = piece.block
    if block.type == "tool_use":
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
    if block.type == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {"type": "text", "text": ""}


def _message(piece: Began, model: str) -> Json:
    return {
        "id": piece.message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _usage(piece.usage, 0),
    }


def _usage(usage: Usage, output: int) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": output,
    }


def whole(pieces: Iterable[Piece], model: str) -> Json:
    """The message of an answer that is not streamed. Input that is not JSON cannot be said there, and is left out."""
    message: Json = {}
    content: list[JsonValue] = []
    for piece in pieces:
        match piece:
            case Began():
                message = _message(piece, model)
            case Closed():
                block = piece.block
                drop = {"malformed"} if isinstance(block, ToolUseBlock) else set[str]()
                content.append(block.model_dump(mode="json", exclude=drop))
            case Ended():
                message["stop_reason"] = piece.stop_reason
                message["usage"] = _usage(piece.usage, piece.usage.output)
            case _:
                continue
    return {**message, "content": content}
