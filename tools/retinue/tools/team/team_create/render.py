"""How a new team looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.team.team_create.tool import TeamCreateInput, TeamCreateOutput


class Render(Renderer[TeamCreateInput, TeamCreateOutput]):
    def use(self, args: TeamCreateInput) -> Blocks:
        detail = f"{args.team_name}: {args.description}" if args.description else args.team_name
        return (Heading("New team", detail),)

    def result(self, args: TeamCreateInput, data: TeamCreateOutput) -> Blocks:
        return (Line(f"led by {data.lead_agent_id}", "dim"),)
