"""How a message to the user looks."""

from __future__ import annotations

from retinue.tools.people.send_user_message.tool import SendUserMessageInput, SendUserMessageOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown


class Render(Renderer[SendUserMessageInput, SendUserMessageOutput]):
    def use(self, args: SendUserMessageInput) -> Blocks:
        heading = Heading("To you", "unasked" if args.status == "proactive" else "")
        return (heading, Markdown(args.message), *(Line(f"file: {path}", "dim") for path in args.attachments))

    def result(self, args: SendUserMessageInput, data: SendUserMessageOutput) -> Blocks:
        """The message is above already; what is new is that it was shown."""
        return tuple(Line(f"{file.path}: {file.size:,} bytes", "dim") for file in data.attachments)
