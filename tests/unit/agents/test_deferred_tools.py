"""Tools that are searched for: what is sent before and after one was found, after a restart, and as servers change."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from retinue.agents.boot import ToolLoading
from retinue.agents.history import Conversation
from retinue.agents.model.anthropic_request import body_of
from retinue.agents.model.messages import (
    AssistantMessage,
    TextBlock,
    ToolResultBlock,
    ToolSpec,
    ToolUseBlock,
    Usage,
    UserMessage,
)
from retinue.agents.model.port import ModelRequest
from retinue.agents.model.router import tool_loading
from retinue.agents.records import BlockComplete, MessageClosed, RequestSent, StepClosed, ToolFinished
from retinue.agents.toolbelt import Toolbelt
from retinue.tools.execution.calls import CallResult
from retinue.tools.mcp.ports import (
    McpAnswer,
    McpBlock,
    McpListing,
    McpRequest,
    McpResource,
    McpServerState,
    McpToolFacts,
)
from retinue.tools.registry.pool import assemble
from support.calls import tool

OURS = [tool(name) for name in ("Bash", "Edit", "Read", "ToolSearch")] + [tool("LSP", should_defer=True)]


class Servers:
    def __init__(self, *names: str) -> None:
        self.now = self.of(1, *names)

    @staticmethod
    def of(version: int, *names: str, state: str = "connected") -> McpListing:
        server = McpServerState.model_validate({"name": "docs", "state": state, "detail": "it broke"})
        return McpListing(
            version=version,
            servers=(server,),
            tools=tuple(McpToolFacts(server="docs", name=name, description=f"does {name}") for name in names),
        )

    async def listing(self, wait_s: float = 0.0) -> McpListing:
        return self.now

    async def call(self, request: McpRequest, on_progress: Callable[[str], None]) -> McpAnswer:
        raise AssertionError("no call in this test")

    async def resources(self, server: str | None = None) -> tuple[McpResource, ...]:
        raise AssertionError("no resources in this test")

    async def read(self, server: str, uri: str) -> tuple[McpBlock, ...]:
        raise AssertionError("no resources in this test")


def belt(
    loading: ToolLoading, loaded: dict[str, None], servers: Servers | None = None, *, strict: bool = False
) -> Toolbelt:
    return Toolbelt(lambda others: assemble(OURS, others), loading, loaded, mcp=servers, strict=strict)


def request(specs: tuple[ToolSpec, ...], *found: str) -> ModelRequest:
    asked = ToolUseBlock(id="c1", name="ToolSearch", input={"query": "x"})
    result = ToolResultBlock(tool_use_id="c1", content="Loaded", tools=found)
    start = UserMessage(content=(TextBlock(text="go"),))
    later = (AssistantMessage(content=(asked,)), UserMessage(content=(result,)))
    messages = (start, *later) if found else (start,)
    return ModelRequest(run="r", agent="a", model="anthropic:m", system="s", messages=messages, tools=specs)


def sent(specs: tuple[ToolSpec, ...], *found: str) -> dict[str, object]:
    return json.loads(json.dumps(body_of(request(specs, *found), "m")))


async def test_with_references_the_prefix_stays_byte_by_byte_the_same_when_a_tool_is_found() -> None:
    loaded: dict[str, None] = {}
    made = belt("reference", loaded, Servers("find"))
    await made.refresh()
    before = sent(made.specs())
    loaded["mcp__docs__find"] = None
    after = sent(made.specs(), "mcp__docs__find", "LSP")
    assert json.dumps([before["tools"], before["system"]]) == json.dumps([after["tools"], after["system"]])
    result = after["messages"][-1]["content"][0]  # type: ignore[index]
    assert result["content"] == [
        {"type": "tool_reference", "tool_name": "mcp__docs__find"},
        {"type": "tool_reference", "tool_name": "LSP"},
    ]


async def test_all_are_sent_the_deferred_ones_marked_and_never_together_with_a_cache_mark() -> None:
    made = belt("reference", {}, Servers("find"))
    await made.refresh()
    tools = sent(made.specs())["tools"]
    marks = {each["name"]: (each.get("defer_loading"), "cache_control" in each) for each in tools}  # type: ignore[union-attr]
    assert marks == {
        "Bash": (None, False),
        "Edit": (None, False),
        "LSP": (True, False),
        "Read": (None, False),
        "ToolSearch": (None, True),
        "mcp__docs__find": (True, False),
    }


def test_not_all_tools_are_ever_deferred() -> None:
    only = (ToolSpec(name="A", description="a", input_schema={}, deferred=True),)
    assert sent(only)["tools"] == [
        {"name": "A", "description": "a", "input_schema": {}, "cache_control": {"type": "ephemeral"}}
    ]


def test_a_reference_to_what_is_not_sent_goes_as_words() -> None:
    body = sent(belt("reference", {}).specs(), "mcp__gone__x")
    assert body["messages"][-1]["content"][0]["content"] == "Loaded"  # type: ignore[index]


def test_strict_tools_are_strict_deferred_or_not() -> None:
    specs = belt("reference", {}, strict=True).specs()
    strict = {each["name"]: each.get("strict") for each in sent(specs)["tools"]}  # type: ignore[union-attr]
    assert strict == {"Bash": True, "Edit": True, "LSP": True, "Read": True, "ToolSearch": True}


async def test_a_client_sends_what_was_loaded_behind_all_others_in_the_order_of_loading() -> None:
    loaded: dict[str, None] = {}
    made = belt("client", loaded, Servers("a", "b"))
    await made.refresh()
    first = sent(made.specs())["tools"]
    loaded |= {"mcp__docs__b": None, "LSP": None}
    then = sent(made.specs())["tools"]
    assert isinstance(first, list)
    assert isinstance(then, list)
    assert [each["name"] for each in first] == ["Bash", "Edit", "Read", "ToolSearch"]
    assert json.dumps(then[:4]) == json.dumps(first)
    assert [each["name"] for each in then[4:]] == ["mcp__docs__b", "LSP"]
    assert made.is_loaded("LSP")
    assert not made.is_loaded("mcp__docs__a")


def test_what_was_found_and_announced_is_remembered_by_the_records() -> None:
    call = ToolUseBlock(id="c1", name="ToolSearch", input={"query": "select:LSP"})
    result = CallResult(call_id="c1", name="ToolSearch", content="Loaded", ran=True, loaded=("LSP",))
    start = TextBlock(text="go")
    conversation = Conversation.of(
        [
            RequestSent(turn=1, step=1, input=(start,), announced=("LSP", "mcp__docs__a")),
            BlockComplete(turn=1, step=1, index=0, block=call),
            MessageClosed(turn=1, step=1, stop_reason="tool_use", usage=Usage(), model="m"),
            ToolFinished(turn=1, step=1, result=result),
            StepClosed(turn=1, step=1),
            RequestSent(turn=1, step=2, input=(start,), withdrawn=("mcp__docs__a",)),
        ]
    )
    assert list(conversation.loaded) == ["LSP"]
    assert list(conversation.announced) == ["LSP"]
    block = conversation.messages()[2].content[0]
    assert isinstance(block, ToolResultBlock)
    assert block.tools == ("LSP",)
    assert belt("client", conversation.loaded).is_loaded("LSP")


async def test_where_all_are_loaded_nothing_is_announced() -> None:
    made = belt("all", {}, Servers("a"))
    await made.refresh()
    assert made.news(()).text == ""
    assert [spec.name for spec in made.specs()] == ["Bash", "Edit", "LSP", "Read", "ToolSearch", "mcp__docs__a"]


async def test_a_tool_that_comes_late_is_announced_once_and_moves_nothing_before_it() -> None:
    servers = Servers("a")
    made = belt("reference", {}, servers)
    await made.refresh()
    first = made.specs()
    assert made.news(()).announced == ("LSP", "mcp__docs__a")
    servers.now = Servers.of(2, "a", "b")
    await made.refresh()
    news = made.news(("LSP", "mcp__docs__a"))
    assert news.announced == ("mcp__docs__b",)
    assert "mcp__docs__b" in news.text
    assert made.specs()[: len(first)] == first


async def test_tools_of_a_server_that_is_gone_stay_and_the_search_says_why() -> None:
    servers = Servers("a")
    made = belt("reference", {}, servers)
    await made.refresh()
    before = made.specs()
    servers.now = Servers.of(2, state="failed")
    await made.refresh()
    assert made.specs() == before
    assert "docs failed, its tools are missing: it broke" in made.remarks()[0]


@pytest.mark.parametrize(
    ("ref", "url", "loading"),
    [
        ("anthropic:claude-sonnet-5", None, "reference"),
        ("anthropic:claude-haiku-4-5", "https://api.anthropic.com", "reference"),
        ("anthropic:claude-opus-4-5-20251101", None, "reference"),
        ("anthropic:claude-sonnet-4-20250514", None, "client"),
        ("anthropic:claude-3-5-haiku-20241022", None, "client"),
        ("anthropic:claude-sonnet-5", "http://127.0.0.1:8000", "client"),
        ("script:s.yaml", None, "all"),
        ("replay:r", None, "all"),
    ],
)
def test_what_a_provider_can_do_is_known_by_model_and_address(ref: str, url: str | None, loading: str) -> None:
    assert tool_loading(ref, url) == loading
