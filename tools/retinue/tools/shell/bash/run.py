"""Runs one command of Bash: where it starts, how it is waited for, where it ended."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from retinue.tools.base import ContextModifier, OnProgress, Progress, ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.files.paths import is_inside
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.bash.constants import DEFAULT_TIMEOUT_MS, MAX_RESULT_CHARS, MAX_TIMEOUT_MS, NOTE_CHARS
from retinue.tools.shell.bash.schema import BashInput, BashOutput
from retinue.tools.shell.bash.semantics import judge
from retinue.tools.threads import in_thread

_PROGRESS_CHARS = 2_000


async def run_command(args: BashInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[BashOutput]:
    cwd, notes = await in_thread(_start, ctx)
    timeout_ms = min(args.timeout or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS)
    output_file = await in_thread(_output_file, ctx)
    request = ShellRequest(
        command=args.command,
        cwd=cwd,
        env=ctx.env,
        timeout_s=timeout_ms / 1000,
        output_file=output_file,
        keep_fds=ctx.lease_fds,
        tag=ctx.key or f"{ctx.agent}/{ctx.call_id}",
    )
    kept = False
    try:
        outcome = await ctx.shell.run(
            request,
            lambda text: on_progress(Progress(text[-_PROGRESS_CHARS:])),
            max_chars=MAX_RESULT_CHARS - NOTE_CHARS,
        )
        kept = outcome.truncated
    finally:
        if not kept:
            output_file.unlink(missing_ok=True)
    modifier, moved = await in_thread(_after, outcome, cwd, ctx)
    data = _output(args.command, outcome, timeout_ms, output_file if kept else None, [*notes, *moved])
    return ToolResult(data, is_error=data.failed, context_modifier=modifier)


def _start(ctx: ToolContext) -> tuple[Path, list[str]]:
    """Where the command starts. The working directory may have been removed since the last call."""
    if ctx.cwd.is_dir():
        return ctx.cwd, []
    if ctx.root.is_dir():
        return ctx.root, [f"The working directory {ctx.cwd} is gone; the command ran in {ctx.root}"]
    raise ToolError(f"The workspace {ctx.root} is gone: no command can run.")


def _output_file(ctx: ToolContext) -> Path:
    name = re.sub(r"[^A-Za-z0-9_-]", "_", ctx.call_id)[:100] or "call"
    try:
        ctx.results_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"The folder for results, {ctx.results_dir}, cannot be made: {error.strerror}.") from None
    return ctx.results_dir / f"{name}-{os.urandom(4).hex()}.output"


def _after(outcome: ShellOutcome, started: Path, ctx: ToolContext) -> tuple[ContextModifier | None, list[str]]:
    """The next working directory: where the command ended, if that is inside of the workspace."""
    ended = outcome.cwd or started
    if not is_inside(Path(os.path.realpath(ended)), ctx) or not ended.is_dir():
        ended = ctx.root
    note = [f"Shell cwd was reset to {ended}"] if outcome.cwd is not None and ended != outcome.cwd else []
    if ended == ctx.cwd:
        return None, note
    return lambda context: replace(context, cwd=ended), note


def _output(
    command: str, outcome: ShellOutcome, timeout_ms: int, output_file: Path | None, notes: list[str]
) -> BashOutput:
    verdict = judge(command, outcome.exit_code)
    return BashOutput(
        output=outcome.output,
        exit_code=outcome.exit_code,
        failed=verdict.failed or outcome.timed_out,
        meaning=verdict.meaning,
        timed_out_after_ms=timeout_ms if outcome.timed_out else None,
        output_bytes=outcome.output_bytes,
        output_path=str(output_file) if output_file else None,
        stopped_in_background=outcome.killed,
        cwd_note="; ".join(notes),
        duration_s=outcome.duration_s,
    )
