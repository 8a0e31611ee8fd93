"""What the team says to an agent that rests while something of its own is open. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retinue.agents.mail.envelopes import Notice


def reminder(task_id: str) -> Notice:
    return Notice(
        text=f"Task #{task_id} is still open and yours, and you have stopped working. Finish it and set it completed "
        "with TaskUpdate, or set it pending and say what stands in the way."
    )


def about_background(tasks: Sequence[str], titles: Mapping[str, str]) -> Notice:
    named = "\n".join(f"- {task} ({titles.get(task, 'a command')})" for task in tasks)
    return Notice(
        text="Nothing is left to do for the team, and the run is about to end; commands of yours still run in the "
        f"background:\n{named}\nThey are stopped when the run ends. If somebody needs the end of one, wait for it with "
        "TaskOutput; else there is nothing to do."
    )
