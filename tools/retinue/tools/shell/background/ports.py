"""Commands in the background: what is known of one, and what tools need of the layer that sees to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol

from retinue.tools.ports import PortModel, RunningCommand

BackgroundStatus = Literal["running", "completed", "failed", "stopped", "lost"]
"""`lost`: it ended with its agent's process, and nobody knows how far it came."""


def background_id(key: str) -> str:
    """Of the task that the call with this idempotency key starts: the same after a restart, and never another's."""
    return f"b{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


class BackgroundTask(PortModel):
    """A command that goes on, or went on, after its call had its result. It holds no lease.

    moved_after_s   how long its call waited for it; None: it was asked for in the background
    detail          in words, how it ended, where status and exit code do not say it
    """

    id: str
    call_id: str
    command: str
    description: str = ""
    output_file: str
    moved_after_s: float | None = None
    status: BackgroundStatus = "running"
    exit_code: int | None = None
    detail: str = ""
    output_bytes: int = 0
    duration_s: float = 0.0

    @property
    def is_running(self) -> bool:
        return self.status == "running"


class BackgroundPort(Protocol):
    """The background tasks of one agent, which die with its process. `after_s`: how long a command may block a turn."""

    @property
    def after_s(self) -> float | None: ...

    @property
    def folder(self) -> Path:
        """Where their output lies; the agent may read there."""
        ...

    def output_file(self, task_id: str) -> Path:
        """Where the output of that task belongs; its folder is there."""
        ...

    async def adopt(
        self, task: BackgroundTask, command: RunningCommand, failed: Callable[[int], bool]
    ) -> BackgroundTask:
        """See to a command that was handed over, until its end, of which the agent is told once. `failed` judges codes.

        Durable when this returns; when it raises, the command is stopped.
        """
        ...

    def all(self) -> tuple[BackgroundTask, ...]:
        """In the order of their beginnings, also those of earlier processes of the agent."""
        ...

    async def wait(self, task_id: str, timeout_s: float) -> BackgroundTask:
        """How it stands at its end, or when the time is up. KeyError for a task that there is not."""
        ...

    async def stop(self, task_id: str) -> BackgroundTask:
        """How it stands after it was ended. KeyError for a task that there is not."""
        ...
