"""Runs one command of Bash: where it starts, how it is waited for, where it ended."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from pathlib import Path

from retinue.tools.base import ContextModifier, OnProgress, Progress, ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.files.paths import is_inside
from retinue.tools.ports import RunningCommand, ShellOutcome, ShellRequest
from retinue.tools.shell.background.ports import BackgroundPort, BackgroundTask, background_id
from retinue.tools.shell.bash.confinement import confined
from retinue.tools.shell.bash.constants import (
    DEFAULT_TIMEOUT_MS,
    MAX_RESULT_CHARS,
    MAX_TIMEOUT_MS,
    NOTE_CHARS,
    SO_FAR_CHARS,
)
from retinue.tools.shell.bash.detach import terms_of
from retinue.tools.shell.bash.schema import BashInput, BashOutput
from retinue.tools.shell.commands import exit_meaning, is_failure
from retinue.tools.shell.runner import CHANGES_DIRECTORY
from retinue.tools.shell.running import read_part
from retinue.tools.threads import in_thread

_PROGRESS_CHARS = 2_000


async def run_command(args: BashInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[BashOutput]:
    """To its end, to its time-out, or to where it goes on in the background."""
    cwd, notes = await in_thread(_start, ctx)
    notes += _clamped(args)
    port = ctx.background
    terms = terms_of(args, port.after_s if port else None, background=port is not None)
    key = ctx.key or f"{ctx.agent}/{ctx.call_id}"
    earlier = _earlier(port, background_id(key))
    if earlier is not None:
        return earlier
    home = port.output_file(background_id(key)) if port else None
    output_file = home if home and args.run_in_background else await in_thread(_output_file, ctx)
    request = ShellRequest(
        command=args.command,
        cwd=cwd,
        env=ctx.env,
        timeout_s=terms.timeout_s,
        output_file=output_file,
        keep_fds=ctx.lease_fds,
        tag=key,
        confined=confined(args, ctx),
        background_s=terms.background_s,
    )
    command = await ctx.shell.start(
        request, lambda text: on_progress(Progress(text[-_PROGRESS_CHARS:])), max_chars=MAX_RESULT_CHARS - NOTE_CHARS
    )
    kept = False
    try:
        if port and home and await _outlasts(command, terms.wait_s) and await command.hand_over(home):
            task = _task(args, ctx, background_id(key), command, None if args.run_in_background else terms.wait_s)
            task = await port.adopt(task, command, lambda code: is_failure(args.command, code))
            kept = True
            return ToolResult(await _so_far(args.command, task, notes))
        outcome = await command.wait()
        kept = outcome.truncated
    except BaseException:
        await command.stop()
        raise
    finally:
        if not kept:
            command.output_file.unlink(missing_ok=True)
    modifier, moved = await in_thread(_after, outcome, cwd, ctx)
    timeout_ms = min(args.timeout or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS)
    data = _output(args.command, outcome, timeout_ms, command.output_file if kept else None, [*notes, *moved])
    if outcome.output_bytes >= request.max_file_bytes:
        data = data.model_copy(update={"cut_short": True})
    return ToolResult(data, is_error=data.failed, context_modifier=modifier)


def _earlier(port: BackgroundPort | None, task_id: str) -> ToolResult[BashOutput] | None:
    """A call that is repeated after a crash had left its command to the background: it is not run again."""
    task = next((task for task in port.all() if task.id == task_id), None) if port else None
    if task is None:
        return None
    data = BashOutput(output="", exit_code=None, failed=False, background=task)
    return ToolResult(data, told=() if task.is_running else (task.id,))


async def _outlasts(command: RunningCommand, wait_s: float | None) -> bool:
    """Whether the command still runs when its call has waited for as long as it does; None: to its end."""
    if wait_s is None:
        return False
    try:
        async with asyncio.timeout(wait_s):
            await command.wait()
    except TimeoutError:
        return True
    return False


def _task(
    args: BashInput, ctx: ToolContext, task_id: str, command: RunningCommand, waited_s: float | None
) -> BackgroundTask:
    return BackgroundTask(
        id=task_id,
        call_id=ctx.call_id,
        command=args.command,
        description=args.description,
        output_file=str(command.output_file),
        moved_after_s=waited_s,
    )


async def _so_far(command: str, task: BackgroundTask, notes: list[str]) -> BashOutput:
    part = await in_thread(read_part, Path(task.output_file), SO_FAR_CHARS) if task.moved_after_s is not None else None
    if CHANGES_DIRECTORY.search(command):
        notes = [*notes, "The working directory of later commands stays as it was"]
    return BashOutput(
        output=part.text if part else "",
        exit_code=None,
        failed=False,
        background=task,
        cwd_note="; ".join(notes),
    )


def _clamped(args: BashInput) -> list[str]:
    if args.timeout is None or args.timeout <= MAX_TIMEOUT_MS:
        return []
    return [f"A timeout of {args.timeout} ms is more than a command may have: it had {MAX_TIMEOUT_MS} ms"]


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
    return BashOutput(
        output=outcome.output,
        exit_code=outcome.exit_code,
        failed=is_failure(command, outcome.exit_code) or outcome.timed_out,
        meaning=exit_meaning(command, outcome.exit_code) or "",
        timed_out_after_ms=timeout_ms if outcome.timed_out else None,
        output_bytes=outcome.output_bytes,
        output_path=str(output_file) if output_file else None,
        stopped_in_background=outcome.killed,
        cwd_note="; ".join(notes),
        duration_s=outcome.duration_s,
    )
