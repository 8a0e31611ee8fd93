"""Questions of an agent, and its plan, put to whoever sits at the terminal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import typer

from retinue.orchestrator.cli import output
from retinue.tools.people.ports import HumanAnswers, HumanQuestion, PlanVerdict
from retinue.tools.text import for_terminal, one_line

Prompt = Callable[[str], str]
"""Shows the words and gives back the line that was typed."""

_YES, _NO = ("y", "yes"), ("n", "no")


def _typed(words: str) -> str:
    return str(typer.prompt(words, default="", show_default=False, err=True))


@dataclass(frozen=True, slots=True)
class HumanAtTheTerminal:
    """Implements `HumanPort`: one thing at a time, whoever else asks."""

    prompt: Prompt = _typed

    async def ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers | None:
        return await asyncio.to_thread(self._ask, questions)

    async def approve(self, plan: str) -> PlanVerdict:
        return await asyncio.to_thread(self._approve, plan)

    def _ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers:
        answers: dict[str, str] = {}
        for question in questions:
            output.note(*question_lines(question))
            how = "numbers with commas, or your own words" if question.multi_select else "a number, or your own words"
            if answer := chosen(question, self.prompt(f"Your answer ({how})")):
                answers[question.question] = answer
        return HumanAnswers(answers=answers)

    def _approve(self, plan: str) -> PlanVerdict:
        output.note(
            "The agent has a plan:", *(f"  {line}" for line in for_terminal(plan).splitlines() or ["(nothing)"])
        )
        while True:
            said = self.prompt("Shall it be done like that? [yes/no]").strip().lower()
            if said in _YES:
                return PlanVerdict(approved=True)
            if said in _NO:
                return PlanVerdict(approved=False, feedback=self.prompt("What is to be changed?").strip())
            output.note("say yes or no")


def question_lines(question: HumanQuestion) -> tuple[str, ...]:
    """The question with its options, numbered from 1."""
    options = (
        f"  {number} {one_line(option.label)}" + (f": {one_line(option.description)}" if option.description else "")
        for number, option in enumerate(question.options, 1)
    )
    return (f"{one_line(question.header)}: {one_line(question.question, 500)}", *options)


def chosen(question: HumanQuestion, typed: str) -> str:
    """The answer that was typed: labels for numbers, else the words as they are; empty when it is left open."""
    text = typed.strip()
    parts = [part.strip() for part in text.split(",")] if question.multi_select else [text]
    labels = [option.label for option in question.options]
    if all(part.isdecimal() and 1 <= int(part) <= len(labels) for part in parts):
        return ", ".join(dict.fromkeys(labels[int(part) - 1] for part in parts))
    return text
