"""Finding tools: by name, by words, by a part of the name and by a pattern."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from retinue.tools.base import AnyTool
from retinue.tools.extension.tool_search.query import Query, parse_query
from retinue.tools.extension.tool_search.tool import ToolSearch
from retinue.tools.ports import DeferredTool
from retinue.tools.registry.deferral import deferred_names
from retinue.tools.registry.search import Index, parameters_of, searched_text, words_of
from support.calls import call, context, pipeline, run, tool


def deferred(name: str, description: str = "", hint: str = "", **parameters: str) -> DeferredTool:
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    schema = {"type": "object", "properties": properties}
    return DeferredTool.model_validate(
        {"name": name, "description": description, "search_hint": hint, "input_schema": schema}
    )


TOOLS = (
    deferred("NotebookEdit", "Changes a cell", "jupyter ipynb"),
    deferred("mcp__github__create_issue", "Opens a ticket", title="What it is about"),
    deferred("mcp__slack__read_channel", "Shows what was said", channel="Name of the channel"),
    deferred("mcp__slack__send_message", "Sends words to a channel of people", text="The message"),
)


@dataclass
class Catalog:
    tools: tuple[DeferredTool, ...] = TOOLS
    loaded: set[str] = field(default_factory=lambda: {"Read"})
    said: tuple[str, ...] = ()

    def deferred(self) -> tuple[DeferredTool, ...]:
        return self.tools

    def is_loaded(self, name: str) -> bool:
        return name in self.loaded

    def remarks(self) -> tuple[str, ...]:
        return self.said


async def searched(query: str, catalog: Catalog | None = None, **more: object) -> tuple[tuple[str, ...], str]:
    """The names that were loaded, and all that the model is told."""
    ctx = context(catalog=catalog or Catalog())
    end = await run(pipeline(ToolSearch()), call("ToolSearch", query=query, **more), ctx)
    return end.loaded, "\n".join((end.content, *end.new_messages))


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("select:A, B,A", Query("select", names=("A", "B"))),
        (" notebook jupyter ", Query("words", words="notebook jupyter")),
        ("+slack send", Query("words", words="send", prefix="slack")),
        ("+slack", Query("words", prefix="slack")),
        ("regex:^mcp__(a|b)", Query("pattern", pattern="^mcp__(a|b)")),
    ],
)
def test_a_query_has_one_of_four_forms(text: str, meant: Query) -> None:
    assert parse_query(text) == meant


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("select:NotebookEdit", ("NotebookEdit",)),
        ("select:notebookedit,mcp__github__create_issue", ("NotebookEdit", "mcp__github__create_issue")),
        ("jupyter", ("NotebookEdit",)),
        ("issues", ("mcp__github__create_issue",)),
        ("createIssue", ("mcp__github__create_issue",)),
        ("ticket about", ("mcp__github__create_issue",)),
        ("send message", ("mcp__slack__send_message",)),
        ("channel", ("mcp__slack__read_channel", "mcp__slack__send_message")),
        ("+slack channel", ("mcp__slack__read_channel", "mcp__slack__send_message")),
        ("+SLACK", ("mcp__slack__read_channel", "mcp__slack__send_message")),
        ("+github channel", ()),
        ("NotebookEdit", ("NotebookEdit",)),
    ],
)
async def test_tools_are_found_by_name_description_parameters_and_hint(query: str, found: tuple[str, ...]) -> None:
    assert (await searched(query))[0] == found


async def test_no_more_are_loaded_than_was_asked_for_and_the_rest_is_counted() -> None:
    names, told = await searched("channel", max_results="1")
    assert names == ("mcp__slack__read_channel",)
    assert "2 tools fit; the best 1 were loaded" in told


async def test_what_is_there_already_and_what_is_not_there_is_said() -> None:
    names, told = await searched("select:Read,NotebookEdit,Nothing")
    assert names == ("NotebookEdit",)
    assert "You have these already: Read." in told
    assert "There is no tool of this name: Nothing." in told


async def test_servers_that_are_missing_are_named_when_nothing_fits() -> None:
    catalog = Catalog(said=("Still connecting, so search again later: docs.",))
    assert "Still connecting" in (await searched("weather", catalog))[1]
    assert "Still connecting" not in (await searched("jupyter", catalog))[1]


@pytest.mark.parametrize("query", ["", "  ", "select:", "select: ,", "regex:", f"regex:{'a' * 201}"])
async def test_an_empty_query_and_a_long_pattern_are_refused(query: str) -> None:
    names, told = await searched(query)
    assert names == ()
    assert "<tool_use_error>" in told


def test_more_words_that_fit_rank_higher_and_rare_ones_count_more() -> None:
    index = Index(TOOLS)
    assert [found.name for found in index.ranked("send people channel")][:1] == ["mcp__slack__send_message"]
    assert [found.name for found in index.ranked("notebook cell channel")][:1] == ["NotebookEdit"]
    assert index.ranked("weather forecast") == ()


def test_words_are_the_same_however_a_name_is_written() -> None:
    assert words_of("createIssue") == words_of("create_issue") == words_of("create-issues") == ["create", "issue"]
    assert words_of("HTTPServer2") == ["http", "server", "2"]


def test_parameters_inside_of_others_are_searched_and_a_bottomless_schema_ends() -> None:
    inner = {"type": "object", "properties": {"deep": {"description": "a treasure"}}}
    assert list(parameters_of({"properties": {"list": {"type": "array", "items": inner}}})) == [
        "list",
        "deep",
        "a treasure",
    ]
    endless: dict[str, object] = {}
    endless["items"] = endless
    assert list(parameters_of(endless)) == []  # type: ignore[arg-type]
    assert "\n" not in searched_text(deferred("A", "two\nlines"))


def names_of(*tools: AnyTool) -> list[str]:
    return sorted(deferred_names(tools))


def test_three_tools_stay_at_hand_and_the_search_is_never_deferred() -> None:
    search = tool("ToolSearch", should_defer=True)
    later = [tool(name, should_defer=True) for name in "ABCDE"]
    assert names_of(*later) == []
    assert names_of(search, *later) == ["D", "E"]
    assert names_of(search, *(tool(name) for name in ("x", "y", "z")), *later) == ["A", "B", "C", "D", "E"]
    assert names_of(search, later[0]) == []
