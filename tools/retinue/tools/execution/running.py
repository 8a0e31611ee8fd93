"""What is known of a call while it runs: its progress, and whether it was called off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from retinue.tools.base import Progress
from retinue.tools.execution.calls import ToolCall


class Reporter:
    """Progress of one call, until its end; who watches cannot break it."""

    def __init__(self, tell: Callable[[ToolCall, Progress], None], call: ToolCall) -> None:
        self._tell = tell
        self._call = call
        self._open = True

    def __call__(self, progress: Progress) -> None:
        if self._open:
            with contextlib.suppress(Exception):
                self._tell(self._call, progress)

    def close(self) -> None:
        self._open = False


def is_cancelled() -> bool:
    """Whether somebody outside called this task off."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
