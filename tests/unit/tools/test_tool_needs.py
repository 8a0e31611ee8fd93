"""A tool is there only where there is what it works with, and what is missing is said."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import cast

import pytest

from retinue.tools.base import AnyTool, ToolContext
from retinue.tools.extension.skills.book import NO_SKILLS
from retinue.tools.ports import BoardPort, SearchProvider
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.filters import PoolFilter, filters_of
from retinue.tools.registry.needs import LACKS, NOT_GIVEN, lacking, lacking_without
from retinue.tools.registry.pool import assemble
from support.calls import context

TOOLS = {tool.name: tool for tool in builtin_tools()}
NEEDY = [tool for tool in TOOLS.values() if tool.needs]


@pytest.mark.parametrize("tool", NEEDY, ids=lambda tool: tool.name)
def test_what_a_tool_needs_is_a_field_of_the_context_that_may_be_missing(tool: AnyTool) -> None:
    optional = {each.name for each in fields(ToolContext) if each.default is None}
    assert set(tool.needs) <= optional
    assert set(tool.needs) <= LACKS.keys()


@pytest.mark.parametrize("tool", NEEDY, ids=lambda tool: tool.name)
def test_a_tool_without_what_it_needs_is_left_out_and_says_why(tool: AnyTool) -> None:
    bare = replace(context(), **dict.fromkeys(tool.needs))
    assert not tool.is_available(bare)
    assert lacking(tool, bare) == LACKS[tool.needs[0]]
    pool = assemble(TOOLS.values(), useless=lambda each: lacking(each, bare))
    assert tool.name not in pool.names


@pytest.mark.parametrize(
    ("name", "need"),
    [
        ("WebSearch", "search"),
        ("LSP", "languages"),
        ("Agent", "children"),
        ("TaskCreate", "board"),
        ("SendMessage", "mail"),
        ("AskUserQuestion", "human"),
        ("TaskStop", "background"),
    ],
)
def test_these_need_what_they_work_over(name: str, need: str) -> None:
    assert TOOLS[name].needs == (need,)


def test_a_tool_is_there_with_what_it_needs() -> None:
    ctx = replace(context(), search=cast("SearchProvider", object()), board=cast("BoardPort", object()))
    names = assemble(TOOLS.values(), useless=lambda each: lacking(each, ctx)).names
    assert {"WebSearch", "TaskCreate", "Read"} <= set(names)
    assert "LSP" not in names


def test_what_is_absent_may_be_known_by_name_alone() -> None:
    why = lacking_without({"search"})
    assert why(TOOLS["WebSearch"]) == "no web search is set (web.search)"
    assert (why(TOOLS["LSP"]), why(TOOLS["Read"])) == ("", "")


def test_a_definition_that_leaves_a_tool_out_is_named_before_what_is_missing() -> None:
    filters = filters_of(TOOLS.keys(), (), PoolFilter(deny=("LSP",)), None, lacking_without({"languages", "search"}))
    assert filters.absence(TOOLS["LSP"]) == "the definition leaves out LSP"
    assert filters.absence(TOOLS["WebSearch"]) == LACKS["search"]


def test_a_tool_with_reasons_of_its_own_is_left_out_too() -> None:
    assert lacking(TOOLS["Skill"], replace(context(), skills=NO_SKILLS)) == NOT_GIVEN
