"""The Bash tool with real commands."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from retinue.tools.base import CommandSubject, Progress, Refused, ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.files.state import FileState
from retinue.tools.shell.bash.schema import BashInput, BashOutput
from retinue.tools.shell.bash.tool import Bash
from retinue.tools.shell.runner import KeeperShell


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    return ToolContext(
        agent="a~1",
        cwd=root,
        root=root,
        files=FileState(),
        shell=KeeperShell(),
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        results_dir=tmp_path / "results",
        key=f"{tmp_path}/1",
        call_id="toolu_1",
    )


async def run(ctx: ToolContext, command: str, **args: object) -> tuple[str, ToolResult[BashOutput]]:
    tool = Bash()
    parsed = tool.Input.model_validate({"command": command, **args})
    assert await tool.validate_input(parsed, ctx) is None
    result = await tool.call(parsed, ctx, lambda _: None)
    return tool.to_content(result.data), result


async def test_output_is_returned_and_nothing_is_left_on_disk(ctx: ToolContext) -> None:
    assert (await run(ctx, "echo out; echo err >&2"))[0] == "out\nerr"
    assert (await run(ctx, "true"))[0] == "(no output)"
    assert list(ctx.results_dir.iterdir()) == []


async def test_a_failure_is_an_error_with_its_code(ctx: ToolContext) -> None:
    text, result = await run(ctx, "echo before; exit 3")
    assert (text, result.is_error) == ("before\n[Exit code 3]", True)
    text, result = await run(ctx, "kill -9 $$")
    assert (text, result.is_error) == ("[Ended by signal 9]", True)


async def test_no_match_is_an_answer_and_not_a_failure(ctx: ToolContext) -> None:
    (ctx.root / "f").write_text("x\n")
    text, result = await run(ctx, "grep nothing f")
    assert (text, result.is_error) == ("[Exit code 1: nothing matched]", False)
    assert (await run(ctx, "grep nothing f; false"))[1].is_error


async def test_the_working_directory_lasts_inside_of_the_workspace(ctx: ToolContext) -> None:
    _, result = await run(ctx, "cd sub && touch here")
    assert result.context_modifier is not None
    moved = result.context_modifier(ctx)
    assert moved.cwd == ctx.root / "sub"
    text, result = await run(moved, "pwd; ls")
    assert text == f"{ctx.root}/sub\nhere"
    assert result.context_modifier is None


async def test_outside_of_the_workspace_it_is_set_back_with_a_note(ctx: ToolContext, tmp_path: Path) -> None:
    text, result = await run(replace(ctx, cwd=ctx.root / "sub"), "cd /")
    assert text == f"[Shell cwd was reset to {ctx.root}]"
    assert result.context_modifier is not None
    assert result.context_modifier(ctx).cwd == ctx.root
    extra = tmp_path / "extra"
    extra.mkdir()
    _, result = await run(replace(ctx, extra_dirs=(extra,)), f"cd {extra}")
    assert result.context_modifier is not None
    assert result.context_modifier(ctx).cwd == extra


async def test_a_working_directory_that_is_gone_is_replaced_by_the_root(ctx: ToolContext) -> None:
    text, result = await run(replace(ctx, cwd=ctx.root / "gone"), "pwd")
    assert text == f"{ctx.root}\n[The working directory {ctx.root}/gone is gone; the command ran in {ctx.root}]"
    assert result.context_modifier is not None
    text, result = await run(replace(ctx, cwd=ctx.root / "sub"), "rmdir ../sub")
    assert result.context_modifier is not None
    assert result.context_modifier(ctx).cwd == ctx.root
    with pytest.raises(ToolError, match=r"workspace .* is gone"):
        await run(replace(ctx, cwd=ctx.root / "gone", root=ctx.root / "gone"), "pwd")


async def test_a_timeout_is_a_failure_that_names_its_limit(ctx: ToolContext) -> None:
    text, result = await run(ctx, "echo started; sleep 100", timeout="300")
    assert text == "started\n[The command did not end within 0.3 s and was stopped.]"
    assert result.is_error


async def test_long_output_is_shown_at_both_ends_and_kept_whole(ctx: ToolContext) -> None:
    text, result = await run(ctx, "seq 100000")
    assert len(text) <= 30_000
    assert text.startswith("1\n2\n")
    assert "\n100000\n[All 588,895 bytes of output are in " in text
    assert result.data.output_path is not None
    assert Path(result.data.output_path).read_text().endswith("\n99999\n100000\n")
    assert Path(result.data.output_path).parent == ctx.results_dir


async def test_what_stays_in_the_background_is_stopped_and_told(ctx: ToolContext) -> None:
    text, result = await run(ctx, "sleep 1000 & echo started")
    assert text == "started\n[1 processes left in the background were stopped.]"
    assert not result.is_error


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"command": " \n"}, "empty"),
        ({"command": "a\0b"}, "null byte"),
        ({"command": "ls", "run_in_background": True}, "There is no background here"),
    ],
)
async def test_what_is_not_supported_is_refused(ctx: ToolContext, args: dict[str, object], message: str) -> None:
    verdict = await Bash().validate_input(BashInput.model_validate(args), ctx)
    assert isinstance(verdict, Refused)
    assert message in verdict.message


async def test_a_timeout_above_the_ceiling_is_clamped(ctx: ToolContext) -> None:
    limits: list[float] = []

    class Shell(KeeperShell):
        async def start(self, request, on_output=None, *, max_chars=30_000):
            limits.append(request.timeout_s)
            return await super().start(request, on_output, max_chars=max_chars)

    for timeout in (None, 5_000, 10_000_000):
        await run(replace(ctx, shell=Shell()), "true", timeout=timeout)
    assert limits == [120.0, 5.0, 600.0]


async def test_progress_is_what_the_command_prints_meanwhile(ctx: ToolContext) -> None:
    seen: list[Progress] = []
    enough = asyncio.Event()

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        enough.set()

    args = BashInput(command="printf '\\033[1mstep 1\\033[0m\\n'; sleep 1000")
    call = asyncio.create_task(Bash().call(args, ctx, on_progress))
    async with asyncio.timeout(20):
        await enough.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert seen[0] == Progress("step 1\n")
    assert list(ctx.results_dir.iterdir()) == []


def test_rules_see_the_whole_text(ctx: ToolContext) -> None:
    assert Bash().subject(BashInput(command="a && b"), ctx) == CommandSubject("a && b")


def test_the_title_is_the_description_or_the_command_on_one_line() -> None:
    assert Bash().title(BashInput(command="ls\n-l")) == "ls -l"
    assert Bash().title(BashInput(command="ls", description="List\x1b[31m files")) == "List files"
