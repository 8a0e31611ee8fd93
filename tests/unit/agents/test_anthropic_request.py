"""A request on its way to the Messages API."""

from __future__ import annotations

import json

from retinue.agents.model.anthropic_request import body_of, clean
from retinue.agents.model.messages import (
    AssistantMessage,
    Message,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    UserMessage,
)
from retinue.agents.model.port import ModelRequest

MARK = {"type": "ephemeral"}
TOOLS = tuple(ToolSpec(name=name, description=name, input_schema={"type": "object"}) for name in ("Bash", "Read"))


def a_body(*messages: Message, system: str = "be good", tools: tuple[ToolSpec, ...] = TOOLS):
    request = ModelRequest(
        run="r-1", agent="lead", model="anthropic:m", system=system, messages=messages, tools=tools, max_tokens=99
    )
    return body_of(request, "m")


def a_user(text: str) -> UserMessage:
    return UserMessage(content=(TextBlock(text=text),))


def test_the_cache_marks_follow_the_tools_the_system_prompt_and_the_last_message():
    body = a_body(a_user("one"), AssistantMessage(content=(TextBlock(text="two"),)), a_user("three"))
    assert body == {
        "model": "m",
        "max_tokens": 99,
        "metadata": {"user_id": "retinue:r-1:lead"},
        "system": [{"type": "text", "text": "be good", "cache_control": MARK}],
        "tools": [
            {"name": "Bash", "description": "Bash", "input_schema": {"type": "object"}},
            {"name": "Read", "description": "Read", "input_schema": {"type": "object"}, "cache_control": MARK},
        ],
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}]},
            {"role": "assistant", "content": [{"type": "text", "text": "two"}]},
            {"role": "user", "content": [{"type": "text", "text": "three", "cache_control": MARK}]},
        ],
    }


def test_a_tool_more_from_a_server_changes_no_byte_up_to_the_mark_of_the_tools():
    def foreign(name: str) -> ToolSpec:
        return ToolSpec(name=name, description=name, input_schema={"type": "object"}, builtin=False)

    def sent(*more: ToolSpec) -> bytes:
        return json.dumps(a_body(a_user("x"), tools=(*TOOLS, *more))["tools"]).encode()

    with_one, with_two = sent(foreign("mcp__b__x")), sent(foreign("mcp__a__y"), foreign("mcp__b__x"))
    prefix = sent()[:-1]
    assert prefix.endswith(b'"cache_control": {"type": "ephemeral"}}')
    assert with_one.startswith(prefix)
    assert with_two.startswith(prefix)
    assert with_two.count(b"cache_control") == 1


def test_tools_of_servers_alone_are_marked_at_their_end():
    alone = tuple(tool.model_copy(update={"builtin": False}) for tool in TOOLS)
    assert [tool.get("cache_control") for tool in a_body(a_user("x"), tools=alone)["tools"]] == [None, MARK]


def test_nothing_is_sent_for_no_system_prompt_and_no_tools():
    assert {"system", "tools"}.isdisjoint(a_body(a_user("x"), system="", tools=()))


def test_thinking_goes_back_verbatim_and_is_never_marked():
    said = AssistantMessage(
        content=(
            TextBlock(text="so"),
            ThinkingBlock(thinking="t", signature="sig"),
            RedactedThinkingBlock(data="d"),
        )
    )
    assert a_body(a_user("x"), said)["messages"][1] == {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "so", "cache_control": MARK},
            {"type": "thinking", "thinking": "t", "signature": "sig"},
            {"type": "redacted_thinking", "data": "d"},
        ],
    }


def test_a_call_with_malformed_input_goes_back_with_empty_input_and_its_answer_with_the_error():
    call = ToolUseBlock(id="c", name="Read", malformed='{"file')
    body = a_body(
        a_user("x"),
        AssistantMessage(content=(call,)),
        UserMessage(content=(ToolResultBlock(tool_use_id="c", content="not JSON", is_error=True),)),
    )
    assert body["messages"][1:] == [
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "Read", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c",
                    "content": "not JSON",
                    "is_error": True,
                    "cache_control": MARK,
                }
            ],
        },
    ]


def test_empty_text_and_empty_messages_which_the_api_refuses_are_left_out():
    body = a_body(a_user("x"), AssistantMessage(content=()), UserMessage(content=(TextBlock(text=""),)), a_user("y"))
    assert [message["content"][0]["text"] for message in body["messages"]] == ["x", "y"]


def test_lone_surrogates_become_the_replacement_character_everywhere_they_can_come_from():
    call = ToolUseBlock(id="c", name="Bash", input={"a\udc80": ["\udc80", {"b": "\ud83d\ude00"}], "n": 1})
    body = a_body(a_user("\udcff"), AssistantMessage(content=(call,)), system="s\udc80")
    assert "\ufffd" in json.dumps(body, ensure_ascii=False).encode().decode()
    assert body["messages"][1]["content"][0]["input"] == {"a\ufffd": ["\ufffd", {"b": "\U0001f600"}], "n": 1}


def test_clean_leaves_good_text_as_it_is():
    assert clean("plain") == "plain"
    assert clean("ü😀") == "ü😀"
