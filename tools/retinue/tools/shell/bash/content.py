"""The words in which the model hears of a command. Pure."""

from __future__ import annotations

from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.shell.background.words import standing
from retinue.tools.shell.bash.schema import BashOutput


def content_of(data: BashOutput) -> str:
    notes: list[str] = []
    if data.background is not None:
        notes += _goes_on(data.background)
    if data.timed_out_after_ms is not None:
        notes.append(f"The command did not end within {data.timed_out_after_ms / 1000:g} s and was stopped.")
    elif data.exit_code:
        notes.append(_ending(data))
    if data.output_path:
        notes.append(_where_all_is(data))
    if data.stopped_in_background and data.timed_out_after_ms is None:
        notes.append(f"{data.stopped_in_background} processes left in the background were stopped.")
    if data.cwd_note:
        notes.append(data.cwd_note)
    output = data.output.rstrip("\n")
    if not output and not notes:
        return "(no output)"
    return "\n".join(part for part in (output, *(f"[{note}]" for note in notes)) if part)


def _where_all_is(data: BashOutput) -> str:
    """A command that printed too much was stopped: what is kept is not all that it would have said."""
    if data.cut_short:
        return f"The {data.output_bytes:,} bytes of output until it was stopped are in {data.output_path}"
    return f"All {data.output_bytes:,} bytes of output are in {data.output_path}"


def _goes_on(task: BackgroundTask) -> list[str]:
    if not task.is_running:
        return [standing(task)]
    moved = f"The command had not ended after {task.moved_after_s:g} s. " if task.moved_after_s is not None else ""
    return [
        f"{moved}It goes on in the background as task {task.id}; you are told when it ends. TaskOutput shows how it "
        "stands and TaskStop ends it.",
        f"Its output goes to {task.output_file}",
    ]


def _ending(data: BashOutput) -> str:
    if data.exit_code is None:
        return ""
    if data.exit_code < 0:
        return f"Ended by signal {-data.exit_code}"
    return f"Exit code {data.exit_code}" + (f": {data.meaning}" if data.meaning else "")
