"""The built-in tools through the whole pipeline: rules, real files, a real shell, one message at a time."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from retinue.tools.base import ToolContext
from retinue.tools.execution.calls import CallResult, ToolCall
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.streaming import StreamingExecutor, run_all
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import assemble
from retinue.tools.results.store import ResultStore
from retinue.tools.shell.runner import KeeperShell
from support.calls import Surroundings, context


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "tree"
    root.mkdir()
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    return context(root, shell=KeeperShell(), env=env, results_dir=tmp_path / "results")


def line(ctx: ToolContext, mode: Mode, **rules: tuple[str, ...]) -> Pipeline:
    book = RuleBook.of([RuleTexts(**rules)], Anchors(ctx.root, Path("/home/nobody")))
    around = Surroundings(fds=())
    policy = PermissionPolicy((Rights(book, mode),))
    return Pipeline(assemble(builtin_tools()), policy, around, around, ResultStore(ctx.results_dir))


def message(*calls: tuple[str, dict[str, object]]) -> list[ToolCall]:
    return [ToolCall.model_validate({"id": f"c{i}", "name": n, "input": v}) for i, (n, v) in enumerate(calls, 1)]


def told(results: tuple[CallResult, ...]) -> list[tuple[str, bool]]:
    return [(result.name, result.is_error) for result in results]


async def test_a_file_is_made_read_changed_and_tested_in_one_message(ctx: ToolContext) -> None:
    results, _ = await run_all(
        line(ctx, "acceptEdits", allow=("Bash(cat a.py)",)),
        ctx,
        message(
            ("Write", {"file_path": "a.py", "content": "x = 1\n"}),
            ("Read", {"file_path": "a.py"}),
            ("Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}),
            ("Bash", {"command": "cat a.py"}),
            ("Bash", {"command": "cat a.py; make"}),
        ),
    )
    assert told(results) == [("Write", False), ("Read", False), ("Edit", False), ("Bash", False), ("Bash", True)]
    assert results[3].content == "x = 2"
    assert results[4].denied
    assert str(ctx.root / "a.py") in results[2].seen


async def test_a_command_that_moves_moves_the_next_call(ctx: ToolContext) -> None:
    (ctx.root / "sub").mkdir()
    results, after = await run_all(
        line(ctx, "bypassPermissions"), ctx, message(("Bash", {"command": "cd sub"}), ("Bash", {"command": "pwd"}))
    )
    assert results[1].content == str(ctx.root / "sub")
    assert after.cwd == ctx.root / "sub"


async def test_a_failed_command_keeps_the_rest_of_its_message_from_running(ctx: ToolContext) -> None:
    results, _ = await run_all(
        line(ctx, "bypassPermissions"),
        ctx,
        message(("Bash", {"command": "false"}), ("Bash", {"command": "touch made"}), ("Read", {"file_path": "x"})),
    )
    assert [(r.ran, r.error_class) for r in results] == [
        (True, "ToolFailed"),
        (False, "SiblingFailed"),
        (False, "SiblingFailed"),
    ]
    assert not (ctx.root / "made").exists()


async def test_an_abort_ends_the_command_and_all_that_it_started(ctx: ToolContext) -> None:
    begun = asyncio.Event()
    pipe = line(ctx, "bypassPermissions")
    pipe = Pipeline(
        pipe.pool,
        pipe.permissions,
        pipe.leases,
        pipe.journal,
        pipe.store,
        on_progress=lambda call, progress: begun.set(),
    )
    executor = StreamingExecutor(pipe, ctx)
    executor.submit(message(("Bash", {"command": "echo begun; sleep 300 & sleep 300"}))[0])
    await begun.wait()
    (end,) = await executor.close("stopped")
    assert (end.ran, end.error_class) == (True, "Aborted")
    assert end.content.startswith("Interrupted, outcome unknown")
    assert executor.stuck == frozenset()


async def test_ten_reads_run_at_once_and_come_back_in_order(ctx: ToolContext) -> None:
    for n in range(10):
        (ctx.root / f"{n}.txt").write_text(f"file {n}\n")
    reads = message(*[("Read", {"file_path": f"{n}.txt"}) for n in range(10)])
    results, _ = await run_all(line(ctx, "default"), ctx, reads)
    assert [r.content for r in results] == [f"1\tfile {n}" for n in range(10)]


def test_what_runs_the_calls_of_an_agent_loads_nothing_heavy() -> None:
    needs = "streaming, retinue.tools.execution.pipeline, retinue.tools.permissions.chain"
    heavy = {"rich", "pathspec", "anthropic", "mcp", "ray", "git", "libtmux", "PIL", "jsonschema", "httpx2", "difflib"}
    code = f"import sys, retinue.tools.execution.{needs}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


async def test_the_record_of_a_denied_call_keeps_what_would_have_been_asked(ctx: ToolContext) -> None:
    calls = message(("Bash", {"command": "git push --force > log"}), ("Write", {"file_path": "b", "content": ""}))
    results, _ = await run_all(line(ctx, "default"), ctx, calls)
    command, write = (CallResult.model_validate_json(result.model_dump_json()).question for result in results)
    assert command is not None
    assert command.suggestions == ("Bash(git push:*)",)
    assert command.warnings == ("may overwrite remote history",)
    assert command.checks == (10,)
    assert write is not None
    assert write.suggestions == ("Edit(/b)",)
