"""An agent's background tasks: which run, which have ended. Pure; a fold over records."""

from __future__ import annotations

from collections.abc import Callable

from retinue.agents.mail.envelopes import end_of
from retinue.agents.records import BackgroundEnded, BackgroundStarted
from retinue.tools.errors import InvariantBroken
from retinue.tools.shell.background.ports import BackgroundTask


class BackgroundTasks:
    """In the order of their beginnings, over all processes of the agent. A task ends once, and no id comes twice."""

    def __init__(self) -> None:
        self._tasks: dict[str, BackgroundTask] = {}
        self._running: dict[str, None] = {}

    def all(self) -> tuple[BackgroundTask, ...]:
        return tuple(self._tasks.values())

    def running(self) -> tuple[BackgroundTask, ...]:
        return tuple(self._tasks[task] for task in self._running)

    def untold(self, knows: Callable[[str], bool]) -> tuple[BackgroundTask, ...]:
        """Of whose end the agent has not heard, and no word is on its way; `knows` asks its mailbox."""
        return tuple(task for task in self._tasks.values() if not task.is_running and not knows(end_of(task.id)))

    def get(self, task_id: str) -> BackgroundTask:
        """KeyError for a task that there is not."""
        return self._tasks[task_id]

    def apply(self, record: BackgroundStarted | BackgroundEnded) -> None:
        task = record.task
        known = self._tasks.get(task.id)
        if isinstance(record, BackgroundStarted):
            if known is not None or not task.is_running:
                raise InvariantBroken(f"background task {task.id} begins twice, or does not run")
            self._running[task.id] = None
        else:
            if known is None or not known.is_running or task.is_running:
                raise InvariantBroken(f"background task {task.id} ends without running")
            del self._running[task.id]
        self._tasks[task.id] = task
