"""AskUserQuestion: questions with options, which a person answers."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.people.ask_user_question.constants import (
    MAX_DESCRIPTION,
    MAX_HEADER,
    MAX_LABEL,
    MAX_OPTIONS,
    MAX_PREVIEW,
    MAX_QUESTION,
    MAX_QUESTIONS,
    MIN_OPTIONS,
    PREVIEW_OF_MANY,
    SAME_LABEL,
    SAME_QUESTION,
)
from retinue.tools.people.ports import Choice, HumanQuestion
from retinue.tools.text import counted, one_line

NOBODY = (
    "Nobody can be asked here (permissions.on_ask: deny). Take the likeliest meaning, go on, and say in your result "
    "what you took for granted."
)
NO_ANSWER = (
    "Nobody answered in time. Take the likeliest meaning, go on, and say in your result what you took for granted."
)


class OptionInput(ToolInput):
    label: str = Field(min_length=1, max_length=MAX_LABEL, description="One to five words")
    description: str = Field("", max_length=MAX_DESCRIPTION, description="What it means, or what follows from it")
    preview: str = Field("", max_length=MAX_PREVIEW, description="Markdown to compare by; not with multiSelect")


class QuestionInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    question: str = Field(
        min_length=1, max_length=MAX_QUESTION, description="The whole question, with its question mark"
    )
    header: str = Field(
        min_length=1, max_length=MAX_HEADER, description=f"A word or two, {MAX_HEADER} characters at most"
    )
    options: tuple[OptionInput, ...] = Field(
        min_length=MIN_OPTIONS, max_length=MAX_OPTIONS, description="Without 'other': that is always offered"
    )
    multi_select: bool = Field(default=False, alias="multiSelect", description="Whether several may be chosen")


class AskUserQuestionInput(ToolInput):
    questions: tuple[QuestionInput, ...] = Field(
        min_length=1, max_length=MAX_QUESTIONS, description="What to ask, one to four questions at once"
    )


class AskUserQuestionOutput(ToolData):
    """`unanswered` says why there is no answer; `response` is what the person said instead of answers."""

    answers: dict[str, str] = {}
    response: str = ""
    unanswered: str = ""


class AskUserQuestion(Tool[AskUserQuestionInput, AskUserQuestionOutput]):
    name = "AskUserQuestion"
    group = "people"
    needs = ("human",)
    search_hint = "clarify choose preference options"
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Ask the user questions with options to choose from"

    def traits(self, args: AskUserQuestionInput) -> Traits:
        return Traits(read_only=True)

    def title(self, args: AskUserQuestionInput) -> str:
        first = one_line(args.questions[0].question, 120)
        more = len(args.questions) - 1
        return f"Asks: {first}" + (f" (and {counted(more, 'more question')})" if more else "")

    async def validate_input(self, args: AskUserQuestionInput, ctx: ToolContext) -> Validation:
        """Answers are found by the text of their question, and options by their label."""
        if len({question.question for question in args.questions}) < len(args.questions):
            return Refused("Two questions have the same text: answers are told apart by it.", SAME_QUESTION)
        for question in args.questions:
            if len({option.label for option in question.options}) < len(question.options):
                return Refused(f"Two options of {question.header!r} have the same label.", SAME_LABEL)
            if question.multi_select and any(option.preview for option in question.options):
                return Refused("`preview` is only for questions of which one option is chosen.", PREVIEW_OF_MANY)
        return None

    async def check_permissions(self, args: AskUserQuestionInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it does nothing but ask", "tool")

    async def call(
        self, args: AskUserQuestionInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[AskUserQuestionOutput]:
        if ctx.human is None:
            return ToolResult(AskUserQuestionOutput(unanswered=NOBODY), is_error=True)
        said = await ctx.human.ask(tuple(map(_asked, args.questions)))
        if said is None:
            return ToolResult(AskUserQuestionOutput(unanswered=NO_ANSWER), is_error=True)
        return ToolResult(AskUserQuestionOutput(answers=said.answers, response=said.response))

    def to_content(self, data: AskUserQuestionOutput) -> str:
        if data.unanswered:
            return data.unanswered
        if data.response:
            return f"Instead of choosing, the user said: {data.response}"
        lines = [f"- {question}\n  {answer}" for question, answer in data.answers.items()]
        return "\n".join(["The user answered:", *lines]) if lines else "The user left all of it open."


def _asked(question: QuestionInput) -> HumanQuestion:
    options = tuple(Choice(label=o.label, description=o.description, preview=o.preview) for o in question.options)
    return HumanQuestion(
        question=question.question, header=question.header, options=options, multi_select=question.multi_select
    )
