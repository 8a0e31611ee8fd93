"""Patterns of a model, which can be anything: an answer comes in time, or an error in words."""

from __future__ import annotations

import asyncio

import pytest

from retinue.tools.errors import ToolError
from retinue.tools.extension.tool_search.pattern import matching

LINES = ["mcp__slack__send Sends words", "Notebook edits\na cell", "", "a" * 5_000]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [("^mcp__(slack|github)", [0]), ("notebook", []), ("(?i)notebook", [1]), ("edits a cell$", [1]), ("-- -x|zzz", [])],
)
async def test_a_pattern_is_looked_for_in_each_tool_on_its_own(pattern: str, found: list[int]) -> None:
    assert await matching(pattern, LINES) == found


@pytest.mark.parametrize("pattern", [r"(a+)+$b", r"(a|a)*b", "(.*.*.*)*x", "(?:" * 60 + ")" * 60])
async def test_a_hostile_pattern_costs_no_time(pattern: str) -> None:
    async with asyncio.timeout(10):
        assert set(await matching(pattern, LINES)) <= {0, 1, 2, 3}


@pytest.mark.parametrize("pattern", ["(", r"(?<=a)b", "((((a{100}){100}){100}){100}){100}", "a{1,99999999}"])
async def test_what_is_no_pattern_or_asks_for_too_much_is_an_error_in_words(pattern: str) -> None:
    with pytest.raises(ToolError, match="cannot be searched for"):
        await matching(pattern, LINES)
