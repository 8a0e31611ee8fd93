"""SendMessage: mail to another agent."""

from __future__ import annotations

from pydantic import Field, JsonValue

from retinue.tools.base import Decision, OnProgress, Refused, Tool, ToolContext, ToolInput, ToolResult, Validation
from retinue.tools.errors import ToolError
from retinue.tools.ports import MailDraft
from retinue.tools.team.ports import ALLOWED, AnswerOutput, connected
from retinue.tools.team.send_message.constants import MAX_MESSAGE, MAX_SUMMARY
from retinue.tools.text import one_line

_STRUCTURED, _EMPTY, _TOO_LONG = 1, 2, 3


class SendMessageInput(ToolInput):
    to: str = Field(min_length=1, description="The recipient's name, or `*` for everybody else")
    message: str | dict[str, JsonValue] = Field(description="The text of the message")
    summary: str = Field("", description="The message in five to ten words")


class SendMessage(Tool[SendMessageInput, AnswerOutput]):
    name = "SendMessage"
    group = "agents"
    needs = ("mail",)
    search_hint = "write to a teammate"
    idempotent = True
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Send a message to a teammate"

    def title(self, args: SendMessageInput) -> str:
        return f"Message to {one_line(args.to, 40)}: {_summary(args)}"

    async def validate_input(self, args: SendMessageInput, ctx: ToolContext) -> Validation:
        if not isinstance(args.message, str):
            return Refused("Structured messages are not supported yet: send plain text.", _STRUCTURED)
        if not args.message.strip():
            return Refused("The message is empty.", _EMPTY)
        if len(args.message) > MAX_MESSAGE:
            return Refused(f"The message is longer than {MAX_MESSAGE:,} characters: name a file instead.", _TOO_LONG)
        return None

    async def check_permissions(self, args: SendMessageInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(self, args: SendMessageInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[AnswerOutput]:
        if not isinstance(args.message, str):
            raise ToolError("Structured messages are not supported yet: send plain text.")
        draft = MailDraft(to=args.to, text=args.message, summary=_summary(args))
        answer = await connected(ctx.mail, "mail").send(ctx.key, draft)
        return ToolResult(AnswerOutput(ok=answer.ok, text=answer.text), is_error=not answer.ok)

    def to_content(self, data: AnswerOutput) -> str:
        return data.text


def _summary(args: SendMessageInput) -> str:
    """The given one, else the first line of the text."""
    text = args.message if isinstance(args.message, str) else ""
    return one_line(args.summary or text.strip().partition("\n")[0], MAX_SUMMARY)
