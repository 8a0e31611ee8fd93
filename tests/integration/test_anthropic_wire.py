"""The real client against a served script, over a socket: what a scene cannot show."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anthropic
import pytest

from retinue.agents.model.anthropic_client import AnthropicModel
from retinue.agents.model.messages import TextBlock, UserMessage
from retinue.agents.model.port import BlockDone, Broken, MessageDone, ModelRequest, StreamEvent, TextDelta
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.serve import ScriptServer, serve_script
from retinue.agents.model.serve_http import BadHttp, HttpRequest, HttpServer, Reply
from support.model_server import a_server

pytestmark = [pytest.mark.asyncio, pytest.mark.live]

SECRET = "sk-very-secret"


def a_request(agent: str = "a", text: str = "go") -> ModelRequest:
    messages = (UserMessage(content=(TextBlock(text=text),)),)
    return ModelRequest(run="r", agent=agent, model="anthropic:m", system="", messages=messages)


async def events_of(model: AnthropicModel, request: ModelRequest) -> list[StreamEvent]:
    return [event async for event in model.stream(request)]


@asynccontextmanager
async def served(text: str) -> AsyncIterator[tuple[ScriptServer, AnthropicModel]]:
    async with serve_script(parse_script(text)) as server:
        model = AnthropicModel("m", base_url=f"{server.base_url}/v1/", api_key=SECRET)
        yield server, model
        await model.aclose()


async def test_cancelling_closes_the_stream_and_the_server_sees_it():
    async with served("agents: {a: [{say: begin, calls: {Read: {}}, fail: stall}]}") as (server, model):
        began = asyncio.Event()

        async def listen() -> None:
            async for event in model.stream(a_request()):
                if isinstance(event, BlockDone):
                    began.set()

        task = asyncio.create_task(listen())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.deserted.wait(), 5)


async def test_ten_agents_are_served_at_once_each_with_its_own_turns():
    text = 'pace: {first_token_s: 0.2}\nagents: {"*": [{say: "I am ${agent}"}]}'
    async with served(text) as (server, model):
        # The first request pays for the import of the library.
        await events_of(model, a_request("warm"))
        start = time.monotonic()
        names = [f"w-{k}" for k in range(10)]
        answers = await asyncio.gather(*(events_of(model, a_request(name)) for name in names))
        took = time.monotonic() - start
    said = [event.block for events in answers for event in events if isinstance(event, BlockDone)]
    assert said == [TextBlock(text=f"I am {name}") for name in names]
    assert server.requests == 11
    assert took < 1.5  # one after the other they take 2 s


async def test_text_arrives_while_the_model_still_speaks():
    async with served("agents: {a: [{say: " + "x" * 40 + ", pace: {tokens_per_second: 20}}]}") as (_, model):
        await events_of(model, a_request("a", "warm"))
        at: list[float] = []
        async for event in model.stream(a_request()):
            if isinstance(event, TextDelta):
                at.append(time.monotonic())
    assert len(at) == 10
    assert at[-1] - at[0] > 0.3


async def test_nobody_at_the_address_is_a_dropped_connection_that_names_it():
    async with a_server(200, b"", {}) as (url, _):
        pass
    model = AnthropicModel("m", base_url=url, api_key=SECRET)
    (broken,) = await events_of(model, a_request())
    await model.aclose()
    assert isinstance(broken, Broken)
    assert broken.reason == "dropped"
    assert url in broken.message


@pytest.mark.parametrize(
    ("status", "headers", "body", "reason", "wish"),
    [
        (429, {"retry-after": "7"}, b"{}", "rate_limited", 7.0),
        (429, {"retry-after": "86400"}, b"{}", "rate_limited", 86400.0),
        (502, {}, b"<html>bad gateway</html>", "server_error", None),
        (529, {}, b"", "overloaded", None),
        (
            401,
            {},
            b'{"error":{"type":"authentication_error","message":"bad key sk-very-secret"}}',
            "authentication",
            None,
        ),
        (422, {}, b'{"detail":"x"}', "invalid_request", None),
        (200, {"content-type": "text/event-stream"}, b"", "truncated", None),
        (200, {"content-type": "text/event-stream"}, b"event: message_start\ndata: {no json\n\n", "server_error", None),
        (200, {"content-type": "text/event-stream"}, b"event: message_start\ndata: \xff\xfe\n\n", "server_error", None),
        (
            200,
            {"content-type": "text/event-stream"},
            b'event: brand_new\ndata: {"type":"brand_new"}\n\n',
            "truncated",
            None,
        ),
        (
            200,
            {"content-type": "text/event-stream"},
            b'event: error\ndata: {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}\n\n',
            "rate_limited",
            None,
        ),
        (200, {"content-type": "text/event-stream"}, b"event: error\ndata: oops\n\n", "server_error", None),
    ],
)
async def test_whatever_a_server_answers_is_a_break_of_the_right_kind_after_one_request(
    status: int, headers: dict[str, str], body: bytes, reason: str, wish: float | None
):
    async with a_server(status, body, headers) as (url, asked):
        model = AnthropicModel("m", base_url=url, api_key=SECRET)
        events = await events_of(model, a_request())
        await model.aclose()
    (broken,) = events
    assert isinstance(broken, Broken)
    assert (broken.reason, broken.retry_after_s) == (reason, wish)
    assert SECRET not in broken.message
    assert len(asked) == 1


async def test_an_answer_that_is_no_stream_is_not_taken_for_a_message():
    async with a_server(200, b'{"hello": 1}', {"content-type": "application/json"}) as (url, _):
        model = AnthropicModel("m", base_url=url, api_key=SECRET)
        events = await events_of(model, a_request())
        await model.aclose()
    assert [event.kind for event in events] == ["broken"]


async def test_nothing_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, "from-the-environment")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    asked: list[HttpRequest] = []
    for given in ({"api_key": SECRET}, {"auth_token": "token"}, {}):
        async with a_server(500, b"{}", {}) as (url, seen):
            model = AnthropicModel("m", base_url=url, **given)
            await events_of(model, a_request())
            await model.aclose()
            asked += seen
    keys = [(request.headers.get("authorization"), request.headers.get("x-api-key")) for request in asked]
    assert keys == [(f"Bearer {SECRET}", SECRET), ("Bearer token", None), ("Bearer none", "none")]


async def test_the_server_also_answers_a_plain_client_in_one_piece():
    async with served("agents: {default: [{think: hm, say: hi, calls: {Read: {p: x}}}]}") as (server, _):
        client = anthropic.AsyncAnthropic(api_key="x", base_url=server.base_url, max_retries=0)
        message = await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "go"}])
        assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
        assert message.stop_reason == "tool_use"
        counted = await client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "x" * 400}])
        assert counted.input_tokens == 100
        assert [model.id async for model in client.models.list()] == ["script"]
        await client.close()


async def test_a_message_that_is_done_needs_no_more_from_the_server():
    """A server that keeps the connection open after the end does not hold the agent."""
    body = (
        b'event: message_start\ndata: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant",'
        b'"model":"m","content":[],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":0}}}\n\n'
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
    )

    async def handle(request: HttpRequest, reply: Reply) -> None:
        await reply.start({"content-type": "text/event-stream"})
        await reply.chunk(body)
        await asyncio.Event().wait()

    async def refuse(error: BadHttp, reply: Reply) -> None:
        raise AssertionError(error)

    server = HttpServer(handle, refuse)
    port = await server.start("127.0.0.1", 0)
    model = AnthropicModel("m", base_url=f"http://127.0.0.1:{port}")
    events = await asyncio.wait_for(events_of(model, a_request()), 10)
    await model.aclose()
    await server.close()
    assert isinstance(events[-1], MessageDone)
