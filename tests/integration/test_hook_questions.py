"""Hooks that are asked over HTTP, or of a small model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from pydantic import JsonValue

from retinue.tools.errors import ToolError
from retinue.tools.hooks.command import CommandRunner
from retinue.tools.hooks.config import parse_hooks
from retinue.tools.hooks.engine import Hooks, Means
from retinue.tools.hooks.events import Event
from retinue.tools.hooks.merge import Verdict
from retinue.tools.hooks.payloads import Payload, PreToolUse, Stop
from retinue.tools.ports import SideQueryPort
from support.calls import NoShell
from support.web_server import Asked, WebServer, answer, web_server

CALL = PreToolUse(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
END = Stop(stop_hook_active=False, last_assistant_message="done")
DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


@pytest.fixture
async def server() -> AsyncGenerator[WebServer]:
    async with web_server() as made:
        yield made


async def fire(payload: Payload, side: SideQueryPort | None = None, **handler: JsonValue) -> Verdict:
    event: Event = payload.event
    found = parse_hooks({event: [{"hooks": [handler]}]}, "f")
    env = {"TOKEN": "abc", "SECRET": "xyz"}
    return await Hooks(found.hooks, Means(CommandRunner(NoShell(), {}, Path("/none")), env, side)).fire(payload)


async def test_the_event_is_posted_and_the_answer_counts(server: WebServer):
    server.routes["/hook"] = answer(json.dumps(DENY).encode(), "application/json")
    headers: JsonValue = {"Authorization": "Bearer $TOKEN", "X-Other": "${SECRET}-"}
    verdict = await fire(CALL, type="http", url=f"{server.url}/hook", headers=headers, allowedEnvVars=["TOKEN"])
    assert verdict.decision is not None
    assert verdict.decision.behavior == "deny"
    (asked,) = server.asked
    assert (asked.method, asked.headers["authorization"], asked.headers["x-other"]) == ("POST", "Bearer abc", "-")
    assert json.loads(asked.body)["tool_input"] == {"command": "ls"}


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (answer(json.dumps(DENY).encode(), "application/json", status="500 Oops"), "it answered with 500"),
        (answer(b"", status="302 Found"), "it answered with 302"),
        (answer(b"fine"), "its answer is no JSON object"),
        (answer(b"[1]"), "its answer is no JSON object"),
        (answer(b"x" * 2_000_000), "it answered with more than 1,000,000 bytes"),
    ],
)
async def test_anything_else_is_an_error_that_stops_nothing(server: WebServer, reply: bytes, problem: str):
    server.routes["/hook"] = reply
    verdict = await fire(CALL, type="http", url=f"{server.url}/hook")
    assert (verdict.decision, [p.rpartition(": ")[2] for p in verdict.problems]) == (None, [problem])


async def test_a_server_that_says_nothing_is_left_at_the_deadline(server: WebServer):
    async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    server.routes["/hook"] = silent
    verdict = await fire(CALL, type="http", url=f"{server.url}/hook", timeout=0.2)
    assert (verdict.decision, len(verdict.problems)) == (None, 1)


class Model:
    """A small model with one thing to say."""

    def __init__(self, says: str) -> None:
        self.says = says
        self.asked: list[str] = []

    async def ask(self, prompt: str, *, system: str = "", max_tokens: int = 4_096) -> str:
        self.asked.append(prompt)
        if not self.says:
            raise ToolError("the model has no answer")
        return self.says


async def test_a_model_is_asked_and_may_say_no():
    model = Model('Well: {"ok": false, "reason": "tests are missing"}')
    verdict = await fire(END, model, type="prompt", prompt="Is it done? $ARGUMENTS!")
    assert verdict.feedback == "tests are missing"
    assert model.asked[0].startswith('Is it done? {"hook_event_name": "Stop"')
    assert model.asked[0].endswith("}!")


@pytest.mark.parametrize("says", ['{"ok": true}', "no idea", "{}", ""])
async def test_a_model_that_agrees_or_cannot_say_stops_nothing(says: str):
    verdict = await fire(END, Model(says), type="prompt", prompt="Is it done?")
    assert verdict.feedback == ""


async def test_without_a_model_nothing_is_stopped():
    verdict = await fire(END, type="prompt", prompt="Is it done?")
    assert verdict.problems[0].endswith("there is no small model to ask; set one in the spec")
