"""TeamDelete: the end of the team that the agent leads."""

from __future__ import annotations

from retinue.tools.base import Decision, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.errors import ToolError
from retinue.tools.team.ports import ALLOWED
from retinue.tools.team.team_create.tool import NO_TEAMS


class TeamDeleteInput(ToolInput):
    """It takes nothing: an agent leads one team at most."""


class TeamDeleteOutput(ToolData):
    team_name: str


class TeamDelete(Tool[TeamDeleteInput, TeamDeleteOutput]):
    name = "TeamDelete"
    group = "agents"
    needs = ("team_admin",)
    search_hint = "end the team"
    should_defer = True
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "End the team that you lead"

    def traits(self, args: TeamDeleteInput) -> Traits:
        return Traits(destructive=True)

    def title(self, args: TeamDeleteInput) -> str:
        return "End the team"

    async def check_permissions(self, args: TeamDeleteInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(
        self, args: TeamDeleteInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[TeamDeleteOutput]:
        if ctx.team_admin is None:
            raise ToolError(NO_TEAMS)
        return ToolResult(TeamDeleteOutput(team_name=await ctx.team_admin.delete(ctx.key)))

    def to_content(self, data: TeamDeleteOutput) -> str:
        return f"Team {data.team_name} has ended; its task board is gone."
