"""The same scenes with the scripted model in this process and with the real client over HTTP: nobody can tell which."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from retinue.agents.model.anthropic_client import AnthropicModel
from retinue.agents.model.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    UserMessage,
)
from retinue.agents.model.port import BlockDone, Broken, ModelPort, ModelRequest, StreamEvent
from retinue.agents.model.script import Script
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.scripted import ScriptedModel
from retinue.agents.model.serve import serve_script

pytestmark = [pytest.mark.asyncio, pytest.mark.live]

Opener = Callable[[Script], AbstractAsyncContextManager[ModelPort]]
TOOLS = (ToolSpec(name="Read", description="reads", input_schema={"type": "object", "properties": {"p": {}}}),)


@asynccontextmanager
async def direct(script: Script) -> AsyncIterator[ModelPort]:
    yield ScriptedModel(script, "script")


@asynccontextmanager
async def wire(script: Script) -> AsyncIterator[ModelPort]:
    async with serve_script(script) as server:
        model = AnthropicModel("x", base_url=server.base_url, read_timeout_s=0.5)
        yield model
        await model.aclose()


@pytest.fixture(params=[direct, wire])
def opener(request: pytest.FixtureRequest) -> Opener:
    return request.param


async def play(open_port: Opener, text: str, rounds: int) -> list[list[StreamEvent]]:
    """Each round is one stream: after a broken one the same request again, else the conversation goes on."""
    messages: tuple[Message, ...] = (UserMessage(content=(TextBlock(text="go ü\n"),)),)
    seen: list[list[StreamEvent]] = []
    attempt = 0
    async with open_port(parse_script(text)) as port:
        for _ in range(rounds):
            request = ModelRequest(
                run="r:1",
                agent="lead",
                model="anthropic:x",
                system="be good",
                messages=messages,
                tools=TOOLS,
                attempt=attempt,
            )
            events = [event async for event in port.stream(request)]
            seen.append(events)
            attempt = attempt + 1 if isinstance(events[-1], Broken) else 0
            if not attempt:
                messages = _went_on(messages, events)
    return seen


def _went_on(messages: tuple[Message, ...], events: list[StreamEvent]) -> tuple[Message, ...]:
    blocks = tuple(event.block for event in events if isinstance(event, BlockDone))
    calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
    results = [
        ToolResultBlock(
            tool_use_id=call.id,
            content=f"line {k} of {call.input.get('p')}",
            is_error=call.malformed is not None,
        )
        for k, call in enumerate(calls)
    ]
    answer = UserMessage(content=(*results, TextBlock(text="on")))
    return (*messages, AssistantMessage(content=blocks), answer)


def kinds(events: list[StreamEvent]) -> str:
    """One letter an event, a break by its reason."""
    letters = {"message_started": "S", "text_delta": "t", "block_done": "B", "message_done": "D"}
    return "".join(f"!{event.reason}" if isinstance(event, Broken) else letters[event.kind] for event in events)


SCENES = {
    "text": ("agents: {lead: [{say: 'hällo 😀'}]}", ["StBD", "StBD"]),
    "long text comes in several pieces": ("agents: {lead: [{say: " + "x" * 5_000 + "}]}", ["StttBD"]),
    "thinking and several calls": (
        "agents: {lead: [{think: hm, say: hi, calls: [Read: {p: x}, Read: {p: 'ü'}, List: {}]}, {say: done}]}",
        ["SBtBBBBD", "StBD"],
    ),
    "captures and conditions": (
        r"""
agents:
  lead:
    - {calls: [Read: {p: a}, Read: {p: b}]}
    - {when: {error: true}, say: not now}
    - {expect: {tool_result_of: "Read#2"}, capture: {l: 'line (\d) of b'}, say: "found ${l}"}
""",
        ["SBBD", "StBD"],
    ),
    "malformed input": (
        "agents: {lead: [{calls: [Read: {p: x}, Read: {p: y}], fail: {kind: malformed, call: 2}}, {say: end}]}",
        ["SBBD", "SBD", "StBD"],
    ),
    "429": ("agents: {lead: [{say: x, fail: {status: 429, retry_after: 1.5, times: 2}}]}", ["!rate_limited"] * 2),
    "529": ("agents: {lead: [{say: x, fail: 529}]}", ["!overloaded", "StBD"]),
    "500": ("agents: {lead: [{say: x, fail: 500}]}", ["!server_error", "StBD"]),
    "503": ("agents: {lead: [{say: x, fail: 503}]}", ["!server_error", "StBD"]),
    "400": ("agents: {lead: [{say: x, fail: 400}]}", ["!invalid_request", "StBD"]),
    "401": ("agents: {lead: [{say: x, fail: 401}]}", ["!authentication", "StBD"]),
    "403": ("agents: {lead: [{say: x, fail: 403}]}", ["!authentication", "StBD"]),
    "404": ("agents: {lead: [{say: x, fail: 404}]}", ["!not_found", "StBD"]),
    "413": ("agents: {lead: [{say: x, fail: 413}]}", ["!invalid_request", "StBD"]),
    "drop in text": ("agents: {lead: [{say: hello, fail: drop}]}", ["St!dropped", "StBD"]),
    "drop in a call": (
        "agents: {lead: [{say: x, calls: [Read: {p: x}, Read: {p: y}], fail: drop}]}",
        ["StBB!dropped", "StBBBD"],
    ),
    "close": ("agents: {lead: [{say: x, calls: {Read: {p: x}}, fail: {kind: close, block: 1}}]}", ["StB!truncated"]),
    "error in mid-stream": ("agents: {lead: [{say: xy, fail: error}]}", ["St!overloaded", "StBD"]),
    "stall": ("agents: {lead: [{say: xy, fail: stall}]}", ["St!dropped", "StBD"]),
    "expectation": ("agents: {lead: [{say: x}, {expect: never, say: y}]}", ["StBD", "!expectation", "!expectation"]),
    "unknown agent": ("agents: {other: [{say: x}]}", ["!not_found"]),
    "usage and stop reason": (
        "agents: {lead: [{say: x, stop_reason: refusal, usage: {input: 9, output: 8, cache_read: 7, cache_write: 6}}]}",
        ["StBD"],
    ),
}


@pytest.mark.parametrize("scene", SCENES)
async def test_a_scene_has_its_events_whichever_model_plays_it(scene: str, opener: Opener):
    text, expected = SCENES[scene]
    assert [kinds(events) for events in await play(opener, text, len(expected))] == expected


@pytest.mark.parametrize("scene", SCENES)
async def test_both_models_give_the_same_events_to_the_last_number(scene: str):
    """But for the words of an error, which each says in its own way."""
    text, expected = SCENES[scene]
    here, there = await play(direct, text, len(expected)), await play(wire, text, len(expected))
    assert [_plain(events) for events in there] == [_plain(events) for events in here]


def _plain(events: list[StreamEvent]) -> list[StreamEvent]:
    return [event.model_copy(update={"message": ""}) if isinstance(event, Broken) else event for event in events]
