"""How the tools show their calls: the pictures, as text and on a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.base import ToolContext
from retinue.tools.execution.calls import CallResult
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.read.tool import Read
from retinue.tools.files.write.tool import Write
from retinue.tools.ports import TaskView
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.render.base import Renderer
from retinue.tools.render.calls import SeenCall, shown
from retinue.tools.render.plain import as_text
from retinue.tools.render.web import as_json
from support.calls import context
from support.shown_calls import ansi_of, finder, seen, text_of

TOOLS = finder(builtin_tools())


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "agent.ts").write_text("const a = 1;\nconst b = 2;\nconst c = 3;\n")
    return context(tmp_path, results_dir=tmp_path / "results")


def known(
    name: str, found: dict[str, object], content: str = "", *, is_error: bool = False, **given: object
) -> SeenCall:
    result = {"call_id": "c1", "name": name, "content": content, "is_error": is_error, "ran": True, "data": found}
    return SeenCall(name, given, CallResult.model_validate(result))  # type: ignore[arg-type]


# --- Edit: create, update, error -------------------------------------------------------------------------------------


async def test_a_file_that_edit_makes_is_shown_as_create_with_its_lines(ctx: ToolContext) -> None:
    call = await seen(ctx, Edit(), file_path="src/new.py", old_string="", new_string="import os\n\nprint(os.name)\n")
    assert text_of([call], TOOLS, str(ctx.root)) == "Create src/new.py\n  1 import os\n  2\n  3 print(os.name)"


async def test_a_change_is_shown_as_update_with_a_diff_in_numbers(ctx: ToolContext) -> None:
    await seen(ctx, Read(), file_path="src/agent.ts")
    call = await seen(ctx, Edit(), file_path="src/agent.ts", old_string="b = 2;", new_string="b = 20;\nconst d = 4;")
    assert text_of([call], TOOLS, str(ctx.root)) == (
        "Update src/agent.ts\n"
        "  2 lines added, 1 line removed\n"
        "  1   const a = 1;\n"
        "  2 - const b = 2;\n"
        "  2 + const b = 20;\n"
        "  3 + const d = 4;\n"
        "  4   const c = 3;"
    )


async def test_on_a_terminal_added_lines_are_green_and_removed_ones_red(ctx: ToolContext) -> None:
    await seen(ctx, Read(), file_path="src/agent.ts")
    call = await seen(ctx, Edit(), file_path="src/agent.ts", old_string="b = 2;", new_string="b = 20;")
    lines = ansi_of(shown(call, TOOLS, below=str(ctx.root))).splitlines()
    assert lines[0] == "\x1b[1mUpdate\x1b[0m src/agent.ts"
    assert "  \x1b[31m2 - const b = 2;\x1b[0m" in [line.rstrip() for line in lines]
    assert "  \x1b[32m2 + const b = 20;\x1b[0m" in [line.rstrip() for line in lines]


async def test_a_miss_shows_why_and_what_was_looked_for(ctx: ToolContext) -> None:
    await seen(ctx, Read(), file_path="src/agent.ts")
    call = await seen(ctx, Edit(), file_path="src/agent.ts", old_string="let b = 2;\nlet c;", new_string="x")
    assert text_of([call], TOOLS, str(ctx.root)) == (
        f"Update src/agent.ts\n  old_string was not found in {ctx.root}/src/agent.ts:\n  let b = 2;\n  let c;"
    )


async def test_write_shows_a_new_file_as_create_and_an_old_one_as_update(ctx: ToolContext) -> None:
    made = await seen(ctx, Write(), file_path="a.txt", content="one\n")
    changed = await seen(ctx, Write(), file_path="a.txt", content="one\ntwo\n")
    assert text_of([made], TOOLS, str(ctx.root)) == "Create a.txt\n  1 one"
    assert text_of([changed], TOOLS, str(ctx.root)) == "Update a.txt\n  2 lines\n  1   one\n  2 + two"


async def test_without_a_folder_in_view_paths_are_absolute(ctx: ToolContext) -> None:
    call = await seen(ctx, Read(), file_path="src/agent.ts")
    assert text_of([call], TOOLS) == f"Read {ctx.root}/src/agent.ts\n  3 lines"


# --- calls in a row --------------------------------------------------------------------------------------------------


async def test_five_reads_in_a_row_are_one_line(ctx: ToolContext) -> None:
    names = [f"src/{name}.ts" for name in ("agent", "tools", "cli", "prompt", "session")]
    for name in names:
        (ctx.root / name).write_text("x\n")
    calls = [await seen(ctx, Read(), file_path=name) for name in names]
    assert text_of(calls, TOOLS, str(ctx.root)) == "Read 5 files: src/agent.ts, src/tools.ts, src/cli.ts, …"


async def test_what_failed_or_comes_from_another_tool_ends_a_group(ctx: ToolContext) -> None:
    good = await seen(ctx, Read(), file_path="src/agent.ts", limit=1)
    bad = await seen(ctx, Read(), file_path="src/none.ts")
    other = known("Grep", {"mode": "count", "entries": [], "skipped": 0, "more": False}, pattern="x")
    heads = [
        text.splitlines()[0] for text in text_of([good, good, bad, good, other], TOOLS, str(ctx.root)).split("\nR")
    ]
    assert heads[0] == "Read 1 file: src/agent.ts"
    assert [head.split()[0] for head in heads[1:]] == ["ead", "ead"]


def test_changes_are_never_folded() -> None:
    data = {"file_path": "/w/a", "created": False, "replacements": 1, "line": 1, "added": 1, "removed": 1}
    call = known("Edit", data, file_path="/w/a", old_string="a", new_string="b")
    assert text_of([call, call], TOOLS).count("Update /w/a") == 2


# --- the others ------------------------------------------------------------------------------------------------------


def test_grep_shows_lines_with_their_numbers_file_by_file() -> None:
    entries = ["a.py:9:import os", "a.py-10-", "a.py:11:os.name", "b-1.py:2:os"]
    call = known(
        "Grep",
        {"mode": "content", "entries": entries, "skipped": 0, "more": True, "any_match": True},
        pattern="os",
        output_mode="content",
    )
    assert text_of([call], TOOLS) == (
        "Grep os\n  4 lines\n  a.py\n   9 import os\n  10\n  11 os.name\n  b-1.py\n  2 os\n  … more"
    )


def test_bash_shows_its_output_and_its_exit_code() -> None:
    data: dict[str, object] = {"output": "one\ntwo\n", "exit_code": 2, "failed": True}
    call = known("Bash", data, "one\ntwo\n[Exit code 2]", is_error=True, command="make", description="build")
    assert text_of([call], TOOLS) == "Bash make\n  build\n  one\n  two\n  [exit code 2]"
    assert "\x1b[31mexit code 2\x1b[0m" in ansi_of(shown(call, TOOLS))
    fine = known("Bash", {"output": "", "exit_code": 1, "failed": False, "meaning": "no match"}, command="grep x y")
    assert text_of([fine], TOOLS) == "Bash grep x y\n  [exit code 1: no match]"


def test_the_board_is_a_table() -> None:
    task = TaskView(id="2", subject="Parse", status="in_progress", owner="ada", open_blockers=("1",))
    call = known("TaskList", {"tasks": [task.model_dump(mode="json")]})
    assert as_text(shown(call, TOOLS)) == (
        "Task list\n  id\tstatus\towner\ttask\tblocked by\n  #2\tin_progress\tada\tParse\t#1"
    )
    assert as_json(shown(call, TOOLS))[1] == {
        "type": "table",
        "columns": ["id", "status", "owner", "task", "blocked by"],
        "rows": [["#2", "in_progress", "ada", "Parse", "#1"]],
    }


def test_a_message_and_a_sub_agent_show_their_words() -> None:
    message = known("SendMessage", {"ok": True, "text": "stored"}, to="*", message="All *done*.", summary="done")
    assert text_of([message], TOOLS) == "Message to everybody: done\n  All *done*.\n  stored"
    found = {"ok": True, "text": "Found it.", "agent": "ada.1~1", "steps": 3, "tool_calls": 1, "tokens": 12_345}
    child = known("Agent", found, description="find it", prompt="p", subagent_type="explore")
    assert text_of([child], TOOLS) == (
        "Agent explore: find it\n  ada.1~1: 3 steps, 1 tool call, 12,345 tokens\n  Found it."
    )


async def test_a_denied_call_says_so() -> None:
    result = CallResult(call_id="c", name="Bash", content="no rule allows it", is_error=True, denied=True)
    call = SeenCall("Bash", {"command": "rm x"}, result)
    assert text_of([call], TOOLS) == "Bash rm x\n  denied: no rule allows it"


@pytest.mark.parametrize("tool", builtin_tools(), ids=lambda tool: tool.name)
def test_every_tool_shows_itself_with_a_renderer_of_its_own(tool: object) -> None:
    found = TOOLS(str(getattr(tool, "name", "")))
    assert found is not None
    renderer = found.renderer()
    assert type(renderer) is not Renderer
    assert type(renderer).__module__ == type(found).__module__.removesuffix(".tool") + ".render"


def test_a_search_for_nothing_says_so() -> None:
    nothing = {"mode": "content", "entries": [], "skipped": 0, "more": False}
    assert text_of([known("Grep", nothing, pattern="x")], TOOLS) == "Grep x\n  no matches"
    assert Grep().renderer().grouped([]) != ()
