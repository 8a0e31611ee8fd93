"""How questions to a person look, and what came of them."""

from __future__ import annotations

from retinue.tools.people.ask_user_question.tool import AskUserQuestionInput, AskUserQuestionOutput, QuestionInput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Block, Blocks, Heading, Line


class Render(Renderer[AskUserQuestionInput, AskUserQuestionOutput]):
    def use(self, args: AskUserQuestionInput) -> Blocks:
        asked: list[Block] = [block for question in args.questions for block in _asked(question)]
        return (Heading("Asks"), *asked)

    def result(self, args: AskUserQuestionInput, data: AskUserQuestionOutput) -> Blocks:
        if data.unanswered:
            return (Line(data.unanswered, "warn"),)
        if data.response:
            return (Line(f"The user said: {data.response}"),)
        headers = {question.question: question.header for question in args.questions}
        said = (
            Line(f"{headers.get(question, question)}: {answer}", "good") for question, answer in data.answers.items()
        )
        return (Heading("Asked"), *said)


def _asked(question: QuestionInput) -> Blocks:
    options = (
        Line(f"  {option.label}: {option.description}" if option.description else f"  {option.label}", "dim")
        for option in question.options
    )
    return (Line(f"{question.header}: {question.question}"), *options)
