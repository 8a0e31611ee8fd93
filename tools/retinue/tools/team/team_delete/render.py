"""How the end of a team looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading
from retinue.tools.team.team_delete.tool import TeamDeleteInput, TeamDeleteOutput


class Render(Renderer[TeamDeleteInput, TeamDeleteOutput]):
    def use(self, args: TeamDeleteInput) -> Blocks:
        return (Heading("End the team"),)

    def result(self, args: TeamDeleteInput, data: TeamDeleteOutput) -> Blocks:
        return (Heading("End the team", data.team_name),)
