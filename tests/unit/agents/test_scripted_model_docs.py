"""The page about the scripted model: its scripts load, run, and do what it says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from retinue.agents.model.messages import (
    AssistantMessage,
    Message,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    Wire,
)
from retinue.agents.model.port import BlockDone, Broken, ModelRequest, StreamEvent
from retinue.agents.model.script import Fail, Matcher, Pace, Script, ScriptTurn, SideTurn, UsageOverride
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.scripted import ScriptedModel
from retinue.tools.registry.builtin import builtin_tools

pytestmark = pytest.mark.asyncio

PAGE = (Path(__file__).parents[3] / "docs" / "scripted-model.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


async def stream(model: ScriptedModel, messages: tuple[Message, ...], agent: str) -> list[StreamEvent]:
    request = ModelRequest(run="r", agent=agent, model="script:x", system="", messages=messages)
    return [event async for event in model.stream(request)]


async def converse(text: str, *inputs: str, agent: str = "lead") -> list[str]:
    """What the agent says and calls. An input answers all calls before it; a stream without blocks is asked again."""
    model = ScriptedModel(parse_script(text))
    messages: tuple[Message, ...] = ()
    owed: tuple[str, ...] = ()
    told: list[str] = []
    for text_in in inputs:
        results = tuple(ToolResultBlock(tool_use_id=call, content=text_in) for call in owed)
        messages += (UserMessage(content=results or (TextBlock(text=text_in),)),)
        events = await stream(model, messages, agent)
        blocks = tuple(event.block for event in events if isinstance(event, BlockDone))
        while not blocks:
            told.append(str(events[-1].reason) if isinstance(events[-1], Broken) else "?")
            events = await stream(model, messages, agent)
            blocks = tuple(event.block for event in events if isinstance(event, BlockDone))
        messages += (AssistantMessage(content=blocks),)
        owed = tuple(block.id for block in blocks if isinstance(block, ToolUseBlock))
        for block in blocks:
            if isinstance(block, TextBlock):
                told.append(block.text)
            elif isinstance(block, ToolUseBlock):
                told.append(f"{block.name} {block.input}")
    return told


async def test_every_script_of_the_page_loads():
    assert len(SCRIPTS) == 5
    for text in SCRIPTS:
        assert parse_script(text).agents


async def test_the_first_script_finds_the_failing_test():
    said = await converse(SCRIPTS[0], "go", "FAILED tests/test_a.py::test_x\n1 failed", "def test_x(): …")
    assert said == [
        "I look for the failing test first.",
        "Bash {'command': 'python -m pytest -q'}",
        "Read {'file_path': 'tests/test_a.py'}",
        "The failing test is in tests/test_a.py.",
    ]
    assert await converse(SCRIPTS[0], "go", agent="worker-7") == ["I am worker-7, and I have nothing to do."]
    assert await converse(SCRIPTS[0], "go", "on", agent="x") == ["I have no part in this."] * 2


async def test_the_second_script_makes_no_call_that_its_tool_would_refuse():
    tools = {tool.name: tool for tool in builtin_tools()}
    calls = [call for turns in parse_script(SCRIPTS[1]).agents.values() for turn in turns for call in turn.calls]
    assert {call.tool for call in calls} == {"TaskUpdate", "Write", "SendMessage"}
    for call in calls:
        assert tools[call.tool].Input.model_validate(call.input)


async def test_the_table_of_tools_is_what_the_tools_take():
    rows = re.findall(r"^\| `([A-Z]\w+)` \|([^|]*)\|([^|]*)\|$", PAGE, re.MULTILINE)
    written = {name: tuple(re.findall(r"`([^`]+)`", cell) for cell in cells) for name, *cells in rows}
    taken: dict[str, tuple[list[str], list[str]]] = {}
    for tool in builtin_tools():
        schema = tool.json_schema()
        names, required = cast("dict[str, object]", schema["properties"]), cast("list[str]", schema.get("required", []))
        taken[tool.name] = ([n for n in names if n in required], [n for n in names if n not in required])
    assert {"Read", "Edit", "Write", "Bash", "Agent", "SendMessage", "TaskUpdate"} <= set(written)
    assert written == {name: taken[name] for name in written}


async def test_the_third_script_has_reflexes_and_a_gate():
    def mail(sender: str, kind: str, text: str) -> str:
        return f'<teammate-message teammate_id="{sender}" kind="{kind}">\n{text}\n</teammate-message>'

    said = await converse(
        SCRIPTS[2],
        "go",
        mail("worker-2", "text", "done"),
        mail("team", "notice", "hurry"),
        mail("worker-1", "text", "still at it"),
        mail("worker-1", "text", "done"),
    )
    assert said == [
        "I wait for both workers.",
        "script: waiting for mail_from worker-1, /done/",
        "Noted.",
        "script: waiting for mail_from worker-1, /done/",
        "Both are done.",
    ]


async def test_the_fourth_script_breaks_and_goes_on():
    assert await converse(SCRIPTS[3], "go", "contents of a", "contents of b") == [
        "Two files.",
        "Read {'file_path': 'a.py'}",
        "Read {'file_path': 'b.py'}",
        "rate_limited",
        "rate_limited",
        "Done.",
    ]


@pytest.mark.parametrize("model", [Script, ScriptTurn, SideTurn, Matcher, Pace, Fail, UsageOverride])
async def test_the_page_names_every_key(model: type[Wire]):
    missing = [name for name in model.model_fields if not re.search(rf"\b{name}\b", PAGE)]
    assert missing == []
