"""The question that a person at a terminal is asked about one call: once, always, or no with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import typer

from retinue.orchestrator.cli import output
from retinue.tools.base import AnyTool, Decision, Question, ToolContext, ToolInput
from retinue.tools.permissions.chain import Answer

ONCE, ALWAYS, NO = "once", "always", "no"


def _forget(rules: tuple[str, ...]) -> None:
    del rules


@dataclass(frozen=True, slots=True)
class AtTheTerminal:
    """Implements `PersonPort`. `remember` keeps the rules of an `always` beyond this session."""

    remember: Callable[[tuple[str, ...]], None] = _forget

    async def answer(self, tool: AnyTool, args: ToolInput, ctx: ToolContext, asked: Decision) -> Answer:
        del ctx
        question = asked.question or Question()
        offered = () if asked.firm else question.suggestions
        output.note(*question_lines(f"{tool.name}: {tool.title(args)}", asked.reason, question.warnings, offered))
        answer = await asyncio.to_thread(_ask, offered)
        if answer.rules:
            await asyncio.to_thread(self.remember, answer.rules)
        return answer


def question_lines(title: str, reason: str, warnings: tuple[str, ...], offered: tuple[str, ...]) -> tuple[str, ...]:
    """What a person is told before the question: what may be lost comes before what could be made a habit."""
    return (
        title,
        f"  asked because {reason}",
        *(f"  careful: {warning}" for warning in warnings),
        *((f"  always would add: {', '.join(offered)}",) if offered else ()),
    )


def _ask(offered: tuple[str, ...]) -> Answer:
    choices = (ONCE, ALWAYS, NO) if offered else (ONCE, NO)
    while True:
        said = typer.prompt(f"Run it? [{'/'.join(choices)}]", default=NO, show_default=False, err=True)
        word = next((each for each in choices if said.strip() and each.startswith(said.strip().lower())), None)
        match word:
            case "once":
                return Answer(allow=True)
            case "always":
                return Answer(allow=True, rules=offered)
            case "no":
                why = typer.prompt("Why not? (told to who asked)", default="", show_default=False, err=True)
                return Answer(allow=False, reason=why.strip())
            case _:
                output.note(f"say one of {', '.join(choices)}")
