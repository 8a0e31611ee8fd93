"""How a background task stands, in words for the model. Pure; what commands say is made harmless first."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.text import for_model, for_terminal, one_line

_LISTED = 10
_COMMAND_CHARS = 120
TAIL_LINES = 10
TAIL_CHARS = 1_500


def standing(task: BackgroundTask) -> str:
    """One sentence: what became of it."""
    what = f"Task {task.id} ({title(task)})"
    took = f" after {task.duration_s:.1f} s" if task.duration_s else ""
    because = f": {one_line(task.detail)}" if task.detail else ""
    match task.status:
        case "running":
            return f"{what} is running."
        case "completed":
            return f"{what} has completed with exit code {task.exit_code}{took}{because}."
        case "failed":
            return f"{what} has failed{_code(task)}{took}{because}."
        case "stopped":
            return f"{what} was stopped{took}{because}."
        case "lost":
            return (
                f"{what} was interrupted, outcome unknown: this agent's process ended while it ran, with "
                f"{task.output_bytes:,} bytes of output so far. It is not run again; look at what it did before you "
                "repeat it."
            )


def _code(task: BackgroundTask) -> str:
    if task.exit_code is None:
        return ""
    return f" by signal {-task.exit_code}" if task.exit_code < 0 else f" with exit code {task.exit_code}"


def title(task: BackgroundTask) -> str:
    return for_model(one_line(task.description or task.command, _COMMAND_CHARS))


def listed(tasks: Sequence[BackgroundTask]) -> str:
    """The newest of them, for whoever asked for one that there is not."""
    if not tasks:
        return "This agent has none."
    names = "; ".join(f"{task.id} ({task.status}): {title(task)}" for task in tasks[-_LISTED:])
    return f"This agent's: {names}."


def last_lines(output: str) -> str:
    """The end of what a command printed, bounded and harmless."""
    lines = for_terminal(output).rstrip().splitlines()[-TAIL_LINES:]
    return for_model("\n".join(lines)[-TAIL_CHARS:])
