"""The task board: who may change what, and what follows. Pure; names are member names, never ids of processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from retinue.tools.ports import TaskAnswer, TaskChange, TaskDraft, TaskStatus, TaskView

MET: tuple[TaskStatus, ...] = ("merged", "done", "deleted")
CLOSED: tuple[TaskStatus, ...] = (*MET, "failed")


@dataclass(frozen=True, slots=True)
class Submission:
    """What an agent hands in with `completed`: the tip of its own branch."""

    branch: str
    sha: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer for the caller, and every task that is different now."""

    answer: TaskAnswer
    changed: tuple[TaskView, ...] = ()


@dataclass(slots=True)
class Board:
    """Tasks by id, in the order in which they were made. Ids are never reused."""

    members: set[str] = field(default_factory=set[str])
    leads: set[str] = field(default_factory=set[str])
    tasks: dict[str, TaskView] = field(default_factory=dict[str, TaskView])
    answers: dict[str, TaskAnswer] = field(default_factory=dict[str, TaskAnswer])
    highest: int = 0

    # --- reading ------------------------------------------------------------------------------------------------------

    def view(self, task: TaskView) -> TaskView:
        waiting = tuple(b for b in task.blocked_by if b in self.tasks and self.tasks[b].status not in MET)
        return task.model_copy(update={"open_blockers": waiting})

    def get(self, task_id: str) -> TaskView | None:
        task = self.tasks.get(task_id)
        return None if task is None or task.status == "deleted" else self.view(task)

    def all(self) -> tuple[TaskView, ...]:
        return tuple(self.view(t) for t in self.tasks.values() if t.status != "deleted")

    def ready(self) -> tuple[TaskView, ...]:
        """Pending and unblocked, in order: what somebody could begin now."""
        return tuple(t for t in self.all() if t.status == "pending" and not t.open_blockers)

    def open(self) -> tuple[TaskView, ...]:
        return tuple(t for t in self.all() if t.status not in CLOSED)

    def held_by(self, name: str) -> tuple[TaskView, ...]:
        return tuple(t for t in self.all() if t.owner == name and t.status in ("in_progress", "pending"))

    # --- folding ------------------------------------------------------------------------------------------------------

    def put(self, task: TaskView) -> None:
        """Take a task as it is: from the spec, or from the ledger."""
        self.tasks[task.id] = task.model_copy(update={"open_blockers": ()})
        if task.id.isdigit():
            self.highest = max(self.highest, int(task.id))

    def remember(self, key: str, answer: TaskAnswer) -> None:
        if key:
            self.answers[key] = answer

    # --- changes by agents --------------------------------------------------------------------------------------------

    def create(self, key: str, by: str, draft: TaskDraft) -> Outcome:
        del by
        known = self.answers.get(key)
        if known is not None:
            return Outcome(known)
        number = max(self.highest, len(self.tasks)) + 1
        while str(number) in self.tasks:
            number += 1
        task = TaskView(id=str(number), **draft.model_dump())
        self.put(task)
        answer = TaskAnswer(ok=True, text=f"Task #{task.id} created: {task.subject}", task=task)
        self.remember(key, answer)
        return Outcome(answer, (task,))

    def update(self, key: str, by: str, change: TaskChange, submission: Submission | None = None) -> Outcome:
        """Apply a change of one agent as a whole, or refuse it as a whole.

        `submission` comes with `completed` from an agent that works on a branch; without one the task is `done`.
        """
        known = self.answers.get(key)
        if known is not None:
            return Outcome(known)
        task = self.get(change.task_id)
        if task is None:
            ids = ", ".join(t.id for t in self.all()) or "none"
            return _refuse(f"There is no task #{change.task_id}. Tasks: {ids}.")
        refusal = self._refusal(task, by, change)
        if refusal:
            return _refuse(refusal)
        changed = self._links(task, change)
        task = self._fields(changed.get(task.id, task), by, change, submission)
        changed[task.id] = task
        for one in changed.values():
            self.put(one)
        answer = TaskAnswer(ok=True, text=self._told(task, change), task=self.view(task))
        self.remember(key, answer)
        return Outcome(answer, tuple(self.view(t) for t in changed.values()))

    def _refusal(self, task: TaskView, by: str, change: TaskChange) -> str:
        return (
            self._status_refusal(task, by, change)
            or self._owner_refusal(task, by, change)
            or self._link_refusal(change)
        )

    def _status_refusal(self, task: TaskView, by: str, change: TaskChange) -> str:
        wanted = change.status
        if wanted is None:
            return ""
        if task.status in ("merged", "done", "failed"):
            return f"Task #{task.id} is {task.status}; its status no longer changes. Create a new task instead."
        if task.status == "verifying":
            return f"Task #{task.id} is with the merge queue; wait for its answer."
        others = task.owner is not None and task.owner != by and by not in self.leads
        if others:
            return f"Task #{task.id} belongs to {task.owner}. Write to {task.owner} if you want it changed."
        if wanted == "in_progress" and task.open_blockers:
            waiting = ", ".join(f"#{b}" for b in task.open_blockers)
            return f"Task #{task.id} is blocked by {waiting}; it can be started when they are merged."
        if wanted == "completed" and task.status != "in_progress":
            return f"Task #{task.id} is {task.status}. Set it in_progress first, do the work, then complete it."
        return ""

    def _owner_refusal(self, task: TaskView, by: str, change: TaskChange) -> str:
        if change.owner is None:
            return ""
        if change.owner not in self.members:
            return f"There is no agent {change.owner!r}. Agents: {', '.join(sorted(self.members))}."
        if task.status not in ("pending", "in_progress"):
            return f"Task #{task.id} is {task.status}; its owner no longer changes."
        if task.owner not in (None, by, change.owner) and by not in self.leads:
            return f"Task #{task.id} belongs to {task.owner}; only {task.owner} or the lead gives it away."
        return ""

    def _link_refusal(self, change: TaskChange) -> str:
        for other in (*change.add_blocks, *change.add_blocked_by):
            if self.get(other) is None:
                return f"There is no task #{other}."
        edges = [(change.task_id, b) for b in change.add_blocks] + [(b, change.task_id) for b in change.add_blocked_by]
        loop = self._cycle(edges)
        return f"That would make a cycle: {' -> '.join(f'#{i}' for i in loop)}." if loop else ""

    def _cycle(self, edges: Iterable[tuple[str, str]]) -> tuple[str, ...]:
        """A loop in the graph of `blocks` with these edges added, or nothing."""
        graph = {t.id: set(t.blocks) for t in self.tasks.values()}
        for before, after in edges:
            graph[before].add(after)
        done: set[str] = set()
        for start in graph:
            path: list[str] = []
            stack: list[tuple[str, bool]] = [(start, False)]
            while stack:
                node, leaving = stack.pop()
                if leaving:
                    done.add(path.pop())
                    continue
                if node in path:
                    return (*path[path.index(node) :], node)
                if node in done:
                    continue
                path.append(node)
                stack.append((node, True))
                stack.extend((after, False) for after in sorted(graph.get(node, ())))
        return ()

    def _links(self, task: TaskView, change: TaskChange) -> dict[str, TaskView]:
        """Both ends of every new link."""
        changed: dict[str, TaskView] = {task.id: task}

        def at(task_id: str) -> TaskView:
            return changed.get(task_id) or self.tasks[task_id]

        pairs = [(task.id, b) for b in change.add_blocks] + [(b, task.id) for b in change.add_blocked_by]
        for before, after in pairs:
            first = at(before)
            changed[before] = first.model_copy(update={"blocks": _with(first.blocks, after)})
            second = at(after)
            changed[after] = second.model_copy(update={"blocked_by": _with(second.blocked_by, before)})
        return changed

    def _fields(self, task: TaskView, by: str, change: TaskChange, submission: Submission | None) -> TaskView:
        update: dict[str, object] = {
            name: value
            for name in ("subject", "description", "active_form", "owner")
            if (value := getattr(change, name)) is not None
        }
        if change.metadata:
            merged = {**task.metadata, **change.metadata}
            update["metadata"] = {k: v for k, v in merged.items() if v is not None}
        match change.status:
            case "in_progress":
                update |= {"status": "in_progress"} | (
                    {"owner": by} if task.owner is None and by in self.members else {}
                )
            case "completed":
                update |= _handed_in(submission)
            case "pending":
                update |= {"status": "pending", "owner": change.owner}
            case "deleted":
                update |= {"status": "deleted"}
            case None:
                pass
        return task.model_copy(update=update)

    def _told(self, task: TaskView, change: TaskChange) -> str:
        if change.status == "completed" and task.status == "verifying":
            sha = (task.sha or "")[:12]
            return (
                f"Task #{task.id} submitted: {task.branch} at {sha} is in the merge queue. "
                "You are told if it comes back; nothing else is to be done for it."
            )
        if change.status == "completed":
            return f"Task #{task.id} is done."
        if change.status == "deleted":
            return f"Task #{task.id} deleted."
        owner = f" ({task.owner})" if task.owner else ""
        return f"Task #{task.id} is {task.status}{owner}."

    # --- changes by the team ------------------------------------------------------------------------------------------

    def merged(self, task_id: str, sha: str) -> TaskView:
        return self._set(task_id, status="merged", sha=sha, note="")

    def returned(self, task_id: str, note: str) -> TaskView:
        task = self.tasks[task_id]
        return self._set(task_id, status="in_progress", returns=task.returns + 1, note=note)

    def failed(self, task_id: str, note: str) -> TaskView:
        return self._set(task_id, status="failed", note=note)

    def given(self, task_id: str, owner: str) -> TaskView:
        return self._set(task_id, owner=owner)

    def release(self, name: str) -> tuple[TaskView, ...]:
        """The member is gone: what it had not handed in is free again."""
        return tuple(self._set(t.id, status="pending", owner=None) for t in self.held_by(name))

    def _set(self, task_id: str, **update: object) -> TaskView:
        task = self.tasks[task_id].model_copy(update=update)
        self.put(task)
        return self.view(task)


def _handed_in(submission: Submission | None) -> dict[str, object]:
    if submission is None:
        return {"status": "done"}
    return {"status": "verifying", "branch": submission.branch, "sha": submission.sha}


def _with(ids: tuple[str, ...], one: str) -> tuple[str, ...]:
    return ids if one in ids else (*ids, one)


def _refuse(text: str) -> Outcome:
    return Outcome(TaskAnswer(ok=False, text=text))
