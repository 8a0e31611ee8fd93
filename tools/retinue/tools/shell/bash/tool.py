"""Bash: one command, in its own process tree."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict, Field

from retinue.tools.base import (
    CommandSubject,
    ContextModifier,
    OnProgress,
    Progress,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.files.paths import is_inside
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.prompts import prompt_beside
from retinue.tools.shell.bash.constants import DEFAULT_TIMEOUT_MS, MAX_RESULT_CHARS, MAX_TIMEOUT_MS, NOTE_CHARS
from retinue.tools.shell.bash.semantics import judge
from retinue.tools.text import is_unicode, one_line
from retinue.tools.threads import in_thread

_EMPTY, _NO_CHARACTER, _BACKGROUND, _UNSANDBOXED = 1, 2, 3, 4
_PROGRESS_CHARS = 2_000


class BashInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    command: str = Field(description="The command to run")
    timeout: int | None = Field(None, ge=1, description="Milliseconds until it is stopped, at most 600000")
    description: str = Field("", description="What the command does, in five to ten words")
    run_in_background: bool = Field(False, description="Not supported yet")
    disable_sandbox: bool = Field(False, alias="dangerouslyDisableSandbox", description="Not supported yet")


class BashOutput(ToolData):
    """`output_path` is where the whole output is kept, when not all of it is shown."""

    output: str
    exit_code: int
    failed: bool
    meaning: str = ""
    timed_out_after_ms: int | None = None
    output_bytes: int = 0
    output_path: str | None = None
    stopped_in_background: int = 0
    cwd_note: str = ""
    duration_s: float = 0.0


class Bash(Tool[BashInput, BashOutput]):
    name = "Bash"
    group = "shell"
    search_hint = "run a command"
    max_result_chars = MAX_RESULT_CHARS
    fails_group = True
    Input = BashInput

    def description(self) -> str:
        return prompt_beside(__file__)

    def subject(self, args: BashInput, ctx: ToolContext) -> Subject:
        return CommandSubject(args.command)

    def title(self, args: BashInput) -> str:
        return one_line(args.description or args.command)

    async def validate_input(self, args: BashInput, ctx: ToolContext) -> Validation:
        if not args.command.strip():
            return Refused("The command is empty.", _EMPTY)
        if "\0" in args.command or not is_unicode(args.command):
            return Refused("The command contains a null byte, or half of a surrogate pair.", _NO_CHARACTER)
        if args.run_in_background:
            return Refused("Background commands are not supported yet: run it in the foreground.", _BACKGROUND)
        if args.disable_sandbox:
            return Refused("dangerouslyDisableSandbox is not supported yet: leave it out.", _UNSANDBOXED)
        return None

    async def call(self, args: BashInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[BashOutput]:
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

    def to_content(self, data: BashOutput) -> str:
        notes: list[str] = []
        if data.timed_out_after_ms is not None:
            notes.append(f"The command did not end within {data.timed_out_after_ms / 1000:g} s and was stopped.")
        elif data.exit_code:
            notes.append(_ending(data))
        if data.output_path:
            notes.append(f"All {data.output_bytes:,} bytes of output are in {data.output_path}")
        if data.stopped_in_background and data.timed_out_after_ms is None:
            notes.append(f"{data.stopped_in_background} processes left in the background were stopped.")
        if data.cwd_note:
            notes.append(data.cwd_note)
        output = data.output.rstrip("\n")
        if not output and not notes:
            return "(no output)"
        return "\n".join(part for part in (output, *(f"[{note}]" for note in notes)) if part)


def _ending(data: BashOutput) -> str:
    if data.exit_code < 0:
        return f"Ended by signal {-data.exit_code}"
    return f"Exit code {data.exit_code}" + (f": {data.meaning}" if data.meaning else "")


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
