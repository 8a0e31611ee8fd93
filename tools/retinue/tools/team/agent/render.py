"""How a sub-agent looks to who watches its parent."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown
from retinue.tools.render.words import several
from retinue.tools.team.agent.tool import AgentInput, AgentOutput
from retinue.tools.text import counted


class Render(Renderer[AgentInput, AgentOutput]):
    def use(self, args: AgentInput) -> Blocks:
        return (Heading("Agent", f"{args.subagent_type}: {args.description}"),)

    def result(self, args: AgentInput, data: AgentOutput) -> Blocks:
        used = f"{counted(data.steps, 'step')}, {counted(data.tool_calls, 'tool call')}, {data.tokens:,} tokens"
        said = Markdown(data.text) if data.text else Line("it gave no result", "bad")
        return (Line(f"{data.agent}: {used}" if data.agent else used, "dim" if data.ok else "bad"), said)

    def grouped(self, calls: Sequence[AgentInput]) -> Blocks:
        return (Heading("Agent", several((call.description for call in calls), "sub-agent")),)
