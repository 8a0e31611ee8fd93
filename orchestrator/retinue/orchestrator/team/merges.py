"""The merge queue at work: one item at a time through the queue's core, with git and checks at the edges."""

from __future__ import annotations

from typing import Protocol

from retinue.orchestrator.team.board import Submission


class MergePort(Protocol):
    """Takes submissions, reports through the callbacks it was made with."""

    def submit(self, task_id: str, agent: str, submission: Submission) -> None: ...

    @property
    def busy(self) -> bool:
        """Something waits, is checked, or is about to land."""
        ...
