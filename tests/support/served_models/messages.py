"""A small server of the Messages API for tests: streams what a local model says, and refuses what the API refuses.

Runs in the model's own environment, so it uses nothing but the standard library.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

Json = dict[str, object]
PING_S = 5.0
PIECE = 12
"""Characters in one delta: small, so that calls come in many."""
_ID = re.compile(r"[A-Za-z0-9_-]+")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")


@dataclass(frozen=True)
class Said:
    text: str


@dataclass(frozen=True)
class Called:
    """`arguments` is the model's own text, JSON or not."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    blocks: Sequence[Said | Called]
    input_tokens: int
    output_tokens: int
    cut: bool = False


class Brain(Protocol):
    """A model. Called for one request at a time."""

    def answer(self, request: Mapping[str, object]) -> Answer: ...


class Refused(Exception):
    """The API would answer this request with status 400."""


def check(request: Mapping[str, object]) -> None:
    """Raises Refused for a conversation that the API does not take."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Refused("messages: at least one message is required")
    due: list[str] = []
    known: set[str] = set()
    for place, message in enumerate(messages):
        if message["role"] != ("user", "assistant")[place % 2]:
            raise Refused(f"messages.{place}: roles must alternate, beginning with user")
        blocks = blocks_of(message)
        _check_results(place, blocks, due)
        for block in blocks:
            _check_block(place, block, known)
        due = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if due:
        raise Refused(f"tool_use ids without tool_result: {due}")
    for tool in tools_of(request):
        if not _TOOL_NAME.fullmatch(tool["name"]) or tool["input_schema"].get("type") != "object":
            raise Refused(f"tools: {tool['name']!r} is no valid tool")


def _check_results(place: int, blocks: Sequence[Json], due: Sequence[str]) -> None:
    if not blocks:
        raise Refused(f"messages.{place}: content must not be empty")
    answered = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
    if answered != due:
        raise Refused(f"messages.{place}: tool_result blocks for {due} are due, there are {answered}")
    if any(block["type"] != "tool_result" for block in blocks[: len(answered)]):
        raise Refused(f"messages.{place}: tool_result blocks must come first")


def _check_block(place: int, block: Json, known: set[str]) -> None:
    if block["type"] == "text" and not str(block["text"]).strip():
        raise Refused(f"messages.{place}: text content blocks must be non-empty")
    if block["type"] == "tool_use":
        identifier = str(block["id"])
        if not _ID.fullmatch(identifier) or identifier in known:
            raise Refused(f"messages.{place}: tool_use id {identifier!r} is not valid or not unique")
        if not _TOOL_NAME.fullmatch(str(block["name"])) or not isinstance(block["input"], dict):
            raise Refused(f"messages.{place}: tool_use {block['name']!r} is not valid")
        known.add(identifier)


def blocks_of(message: Mapping[str, object]) -> list[dict]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def tools_of(request: Mapping[str, object]) -> list[dict]:
    return list(request.get("tools") or [])


def text_of(blocks: Iterable[Mapping[str, object]] | str) -> str:
    """Of a system prompt, or of a tool's result."""
    if isinstance(blocks, str):
        return blocks
    return "\n".join(str(block["text"]) for block in blocks if block["type"] == "text")


def events(model: str, answer: Answer) -> Iterator[Json]:
    """The stream of one message."""
    usage = {"input_tokens": answer.input_tokens, "output_tokens": 0}
    head = {"id": f"msg_{uuid.uuid4().hex}", "type": "message", "role": "assistant", "model": model, "content": []}
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, block in enumerate(answer.blocks):
        yield from _block_events(index, block)
    called = any(isinstance(block, Called) for block in answer.blocks)
    stop = "max_tokens" if answer.cut else "tool_use" if called else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.output_tokens}}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Said | Called) -> Iterator[Json]:
    if isinstance(block, Said):
        start, text = {"type": "text", "text": ""}, block.text
        kind, key = "text_delta", "text"
    else:
        identifier = f"toolu_{uuid.uuid4().hex[:24]}"
        start, text = {"type": "tool_use", "id": identifier, "name": block.name, "input": {}}, block.arguments
        kind, key = "input_json_delta", "partial_json"
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for at in range(0, len(text), PIECE):
        delta = {"type": kind, key: text[at : at + PIECE]}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def serve(brain: Brain) -> str:
    """Serve on a free port of loopback for as long as this process lives; returns the address."""
    queue = ThreadPoolExecutor(max_workers=1)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                check(request)
            except Refused as error:
                self._refuse(str(error))
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            for event in self._events(request):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
                self.wfile.flush()

        def _events(self, request: Json) -> Iterator[Json]:
            """Pings for as long as the model is busy, as the API sends them."""
            thinking = queue.submit(brain.answer, request)
            while wait([thinking], PING_S).not_done:
                yield {"type": "ping"}
            error = thinking.exception()
            if error is None:
                yield from events(str(request["model"]), thinking.result())
                return
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            kind = "invalid_request_error" if isinstance(error, Refused) else "api_error"
            yield {"type": "error", "error": {"type": kind, "message": f"{type(error).__name__}: {error}"}}

        def _refuse(self, text: str) -> None:
            print(f"400: {text}", file=sys.stderr, flush=True)
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
            body = json.dumps(error).encode()
            self.send_response(400)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Silent: standard error is for what went wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def announce(**more: object) -> None:
    """Tell the parent where we are; live until it closes our standard input, which its death does too."""
    print(json.dumps(more), flush=True)
    sys.stdin.read()
