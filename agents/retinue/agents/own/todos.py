"""Implements `TodoPort`: an agent's own list, and the reminder of one that is left alone."""

from __future__ import annotations

from retinue.agents.model.messages import Wire
from retinue.agents.own.keeping import Kept
from retinue.tools.people.ports import Todo

REMIND_EVERY = 10
"""After so many requests without a change a list with open items is called to mind, and again after as many."""


class TodoState(Wire):
    """`before` is the list that this one took the place of; `step` is the request at which that was."""

    todos: tuple[Todo, ...]
    before: tuple[Todo, ...] = ()
    step: int = 0


class Todos:
    def __init__(self, kept: Kept[TodoState]) -> None:
        self._kept = kept

    async def replace(self, key: str, todos: tuple[Todo, ...]) -> tuple[Todo, ...]:
        same = self._kept.of_call(key)
        if same is not None:
            return same.before
        last = self._kept.value
        before = last.todos if last is not None else ()
        await self._kept.keep(key, TodoState(todos=todos, before=before, step=self._kept.step))
        return before

    def reminder(self, request: int) -> str:
        """What is said beside that request; mostly nothing."""
        state = self._kept.value
        if state is None or all(todo.status == "completed" for todo in state.todos):
            return ""
        since = request - state.step
        if since < REMIND_EVERY or since % REMIND_EVERY:
            return ""
        lines = "\n".join(f"- [{todo.status}] {todo.content}" for todo in state.todos)
        return (
            f"Your list (TodoWrite) has not changed for {since} requests. If it is not true any more, write it anew; "
            f"if it is needless, empty it; else go on. It says:\n{lines}"
        )
