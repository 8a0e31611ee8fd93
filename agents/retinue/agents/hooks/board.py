"""The task board of an agent with hooks about tasks."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.agents.boot import AgentBoot
from retinue.tools.hooks.engine import Hooks
from retinue.tools.hooks.payloads import TaskCompleted, TaskCreated
from retinue.tools.ports import BoardPort, TaskAnswer, TaskChange, TaskDraft, TaskView


@dataclass(frozen=True, slots=True)
class HookedBoard:
    """Implements `BoardPort`. What hooks block is undone, or not done, and the agent is told why."""

    boot: AgentBoot
    board: BoardPort
    hooks: Hooks

    async def create(self, key: str, draft: TaskDraft) -> TaskAnswer:
        answer = await self.board.create(key, draft)
        if answer.task is None or not self.hooks.has("TaskCreated"):
            return answer
        task = answer.task
        said = await self.hooks.fire(
            TaskCreated(
                task_id=task.id,
                task_subject=task.subject,
                task_description=task.description or None,
                teammate_name=self.boot.name,
                team_name=self.boot.team,
            )
        )
        if not said.blocked:
            return answer
        removed = await self.board.update(f"{key}/undone", TaskChange(task_id=task.id, status="deleted"))
        stays = "" if removed.ok else f" It could not be deleted: {removed.text}"
        return TaskAnswer(ok=False, text=f"A TaskCreated hook refused the task: {said.feedback}{stays}")

    async def update(self, key: str, change: TaskChange) -> TaskAnswer:
        if change.status == "completed" and self.hooks.has("TaskCompleted"):
            refusal = await self._refusal(change)
            if refusal:
                return TaskAnswer(ok=False, text=f"Task #{change.task_id} is not completed: {refusal}")
        return await self.board.update(key, change)

    async def get(self, task_id: str) -> TaskView | None:
        return await self.board.get(task_id)

    async def list(self) -> tuple[TaskView, ...]:
        return await self.board.list()

    async def _refusal(self, change: TaskChange) -> str:
        """What the board would refuse anyway is nothing for hooks."""
        task = await self.board.get(change.task_id)
        if task is None or task.status != "in_progress":
            return ""
        said = await self.hooks.fire(
            TaskCompleted(
                task_id=task.id,
                task_subject=change.subject or task.subject,
                task_description=change.description or task.description or None,
                teammate_name=self.boot.name,
                team_name=self.boot.team,
            )
        )
        return said.halt or said.feedback
