"""Hooks that are asked over HTTP, or of a model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue

from retinue.tools.hooks.answers import Answer, of_json, of_model
from retinue.tools.hooks.config import HttpHook, PromptHook
from retinue.tools.hooks.payloads import Payload
from retinue.tools.ports import SideQueryPort

_MOST_BYTES = 1_000_000
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ASKED = (
    "You check what an agent is about to do or has done. Answer with nothing but a JSON object: "
    '{"ok": true} or {"ok": false, "reason": "…"}.'
)


async def answer_over_http(hook: HttpHook, payload: Payload, env: Mapping[str, str], deadline_s: float) -> Answer:
    """Only a JSON object with a status of success says anything. No redirect is followed."""
    import httpx2  # here: it is slow to load

    headers = {"content-type": "application/json"}
    headers |= {name: filled(value, hook.allowed_env_vars, env) for name, value in hook.headers.items()}
    body = bytearray()
    try:
        async with (
            httpx2.AsyncClient(trust_env=False, timeout=deadline_s) as client,
            client.stream("POST", hook.url, content=payload.as_json().encode(), headers=headers) as response,
        ):
            if not response.is_success:
                return Answer(problem=f"it answered with {response.status_code}")
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MOST_BYTES:
                    return Answer(problem=f"it answered with more than {_MOST_BYTES:,} bytes")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        return Answer(problem=f"it cannot be reached: {type(error).__name__}")
    values = _object(body.decode("utf-8", "replace"))
    return Answer(problem="its answer is no JSON object") if values is None else of_json(payload.event, values)


async def answer_of_model(hook: PromptHook, payload: Payload, side: SideQueryPort | None) -> Answer:
    if side is None:
        return Answer(problem="there is no small model to ask; set one in the spec")
    event = payload.as_json()
    question = hook.prompt.replace("$ARGUMENTS", event) if "$ARGUMENTS" in hook.prompt else f"{hook.prompt}\n\n{event}"
    text = await side.ask(question, system=_ASKED, max_tokens=1_024)
    values = _object(text[text.find("{") : text.rfind("}") + 1])
    if values is None:
        return Answer(problem="the model did not answer with a JSON object")
    return of_model(payload.event, values, go_on=hook.continue_on_block)


def filled(text: str, allowed: tuple[str, ...], env: Mapping[str, str]) -> str:
    """With the values of variables that are allowed; others are empty."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return env.get(name, "") if name in allowed else ""

    return _VARIABLE.sub(value, text)


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        values: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None
