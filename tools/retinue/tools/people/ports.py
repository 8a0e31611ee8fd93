"""What the tools for people ask of their surroundings: somebody who can answer, and an agent's own list."""

from __future__ import annotations

from typing import Literal, Protocol

from retinue.tools.ports import PortModel


class Choice(PortModel):
    label: str
    description: str = ""
    preview: str = ""


class HumanQuestion(PortModel):
    """`header` is a word or two. An answer of one's own is always possible, and need not be among the options."""

    question: str
    header: str
    options: tuple[Choice, ...]
    multi_select: bool = False


class HumanAnswers(PortModel):
    """`answers` by question: labels, or words of the person's own, joined by commas. `response` is
    said instead of them."""

    answers: dict[str, str] = {}
    response: str = ""


class PlanVerdict(PortModel):
    """`plan` is what the person made of it, None when it is as it was. `feedback` says what is wanted instead."""

    approved: bool
    feedback: str = ""
    plan: str | None = None


class HumanPort(Protocol):
    """Somebody who can be asked while a call waits."""

    async def ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers | None:
        """None: nobody answered within the time that an answer may take."""
        ...

    async def approve(self, plan: str) -> PlanVerdict:
        """What is to be done as the plan says, or what is missing in it."""
        ...


TodoStatus = Literal["pending", "in_progress", "completed"]


class Todo(PortModel):
    """One line of an agent's own list. `active_form` says it as something that is being done."""

    content: str
    status: TodoStatus
    active_form: str


class TodoPort(Protocol):
    async def replace(self, key: str, todos: tuple[Todo, ...]) -> tuple[Todo, ...]:
        """The whole list anew; answers the one before. The same key has one effect and the same answer."""
        ...
