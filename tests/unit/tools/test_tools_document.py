"""The page about tools: its example is a tool, and does what the page says."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from retinue.tools.base import AnyTool, Tool, ToolContext
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.pool import ToolPool
from support.calls import call, context, pipeline, run
from support.shown_calls import finder, seen, text_of

PAGE = (Path(__file__).parents[3] / "docs" / "tools.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnyTool]:
    """The class of the page, from a folder as the page describes it."""
    folder = tmp_path / "modules" / "page_word_count"
    folder.mkdir(parents=True)
    for name, text in (("__init__", ""), ("tool", BLOCKS[0]), ("render", BLOCKS[1])):
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(folder.parent)
    importlib.invalidate_caches()
    yield importlib.import_module("page_word_count.tool").WordCount()
    for name in [name for name in sys.modules if name.startswith("page_word_count")]:
        del sys.modules[name]


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "tree"
    (root / "secret").mkdir(parents=True)
    (root / "a.txt").write_text("to be or not to be")
    (root / "secret" / "b.txt").write_text("hush hush")
    return context(root)


async def test_the_example_runs_through_the_pipeline(tool: AnyTool, ctx: ToolContext) -> None:
    line = pipeline(tool)
    assert (await run(line, call("WordCount", file_path="a.txt", word="be"), ctx)).content == "2 times"
    refused = await run(line, call("WordCount", file_path="a.txt", word=" "), ctx)
    assert (refused.error_class, refused.ran) == ("Refused:WordCount:1", False)
    missing = await run(line, call("WordCount", file_path="none.txt", word="x"), ctx)
    assert missing.content == "none.txt cannot be read: No such file or directory"


async def test_rules_for_files_hold_for_it(tool: AnyTool, ctx: ToolContext) -> None:
    book = RuleBook.of([RuleTexts(deny=("Read(/secret/**)",))], Anchors(ctx.root, ctx.root))
    policy = PermissionPolicy((Rights(book),))
    decisions = [
        await policy.decide(tool, tool.Input(file_path=path, word="x"), ctx, forced_ask=None)
        for path in ("a.txt", "secret/b.txt")
    ]
    assert [decision.behavior for decision in decisions] == ["allow", "deny"]


async def test_it_is_shown_by_its_own_renderer(tool: AnyTool, ctx: ToolContext) -> None:
    calls = [await seen(ctx, tool, file_path="a.txt", word=word) for word in ("be", "not")]
    assert text_of(calls[:1], finder([tool])) == "Count be in a.txt\n  2 times"
    assert text_of(calls, finder([tool])) == "Count 2 words: be, not"


def test_it_joins_the_built_in_tools_behind_them(tool: AnyTool) -> None:
    given: dict[str, object] = {"WordCount": type(tool)}
    exec(BLOCKS[2], given)  # the page's own lines
    pool = given["pool"]
    assert isinstance(pool, ToolPool)
    assert pool.names[-1] == "WordCount"
    assert pool.builtin == len(pool.tools) - 1


def test_the_table_of_defaults_names_what_there_is() -> None:
    named = re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE) + re.findall(r"^\| `\w+`, `(\w+)`", PAGE, re.MULTILINE)
    assert named
    assert all(hasattr(Tool, name) for name in named)
