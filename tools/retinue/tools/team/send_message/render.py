"""How a message looks to who watches its sender."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Block, Blocks, Heading, Line, Markdown
from retinue.tools.team.ports import AnswerOutput
from retinue.tools.team.send_message.tool import SendMessageInput


class Render(Renderer[SendMessageInput, AnswerOutput]):
    def use(self, args: SendMessageInput) -> Blocks:
        whom = "everybody" if args.to == "*" else args.to
        text: list[Block] = [Markdown(args.message)] if isinstance(args.message, str) else []
        return (Heading("Message", f"to {whom}: {args.summary}" if args.summary else f"to {whom}"), *text)

    def result(self, args: SendMessageInput, data: AnswerOutput) -> Blocks:
        return (Line(data.text, "dim" if data.ok else "bad"),)
