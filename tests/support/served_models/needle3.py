"""needle3, a small model that is trained to call tools, behind the Messages API.

It takes short tools and short turns: of a description it gets the first sentence, of a schema what it can use.
Its engine counts no tokens, so the usage here is an estimate of four characters each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

import needle
from messages import Answer, Brain, Called, Said, announce, blocks_of, serve, text_of, tools_of

MOST_TEXT = 1_200
MOST_REPLAYED = 4
_KEPT = ("type", "enum")
_MARK = re.compile(r"</?[a-z-]+[^<>]*>")


class Needle3(Brain):
    """The engine remembers what it said since a reset; so a request is answered by going over the last turn again."""

    def __init__(self) -> None:
        self._tools = ""
        self._model: needle.Needle | None = None

    def answer(self, request: Mapping[str, object]) -> Answer:
        model = self._of(json.dumps([_short(tool) for tool in tools_of(request)]))
        model.reset()
        inputs = turn_of(request)
        said: dict = {}
        for text in inputs:
            said = model._complete(text, int(request["max_tokens"]), ground=False)
        # The engine holds back what it is not sure of; here its calls are wanted as it makes them.
        calls = [*(said.get("function_calls") or []), *(said.get("suppressed_calls") or [])]
        blocks: list[Said | Called] = [Called(call["name"], json.dumps(call["arguments"])) for call in calls]
        reasoning = str(said.get("reasoning") or "Done.")
        spoken = sum(len(block.arguments) for block in blocks if isinstance(block, Called)) + len(reasoning)
        heard = len(self._tools) + sum(map(len, inputs))
        return Answer(blocks or [Said(reasoning)], heard // 4, spoken // 4)

    def _of(self, tools: str) -> needle.Needle:
        if self._model is None or tools != self._tools:
            self._tools, self._model = tools, needle.Needle(tools=tools, auto_date=False)
        return self._model


def turn_of(request: Mapping[str, object]) -> list[str]:
    """The text that began the turn, and the results since."""
    inputs: list[str] = []
    for message in reversed(request["messages"]):
        blocks = blocks_of(message)
        results = [text_of(block["content"])[:MOST_TEXT] for block in blocks if block["type"] == "tool_result"]
        texts = [block["text"] for block in blocks if block["type"] == "text"]
        if message["role"] == "assistant":
            continue
        if results:
            inputs.insert(0, json.dumps([{"content": result} for result in results]))
        if texts:
            inputs.insert(0, _MARK.sub("", texts[-1]).strip()[-MOST_TEXT:])
            break
    return [inputs[0], *inputs[1:][-MOST_REPLAYED:]]


def _short(tool: Mapping[str, object]) -> dict[str, object]:
    schema = tool["input_schema"]
    required = schema.get("required", [])
    shapes = {name: _shape(found) for name, found in schema.get("properties", {}).items()}
    properties = {name: shape for name, shape in shapes.items() if name in required or "enum" in shape}
    parameters = {"type": "object", "properties": properties, "required": required}
    description = str(tool.get("description", "")).strip().partition("\n")[0].partition(". ")[0]
    return {"name": tool["name"], "description": description, "parameters": parameters}


def _shape(found: Mapping[str, object]) -> dict[str, object]:
    """Its type and its choices, without the alternative of giving nothing."""
    first = next(iter(found.get("anyOf", [found])))
    return {key: first[key] for key in _KEPT if key in first}


if __name__ == "__main__":
    announce(needle=serve(Needle3()))
