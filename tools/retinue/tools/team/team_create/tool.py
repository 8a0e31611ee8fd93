"""TeamCreate: a team that the agent leads."""

from __future__ import annotations

import re

from pydantic import Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.team.crew_ports import TeamDraft
from retinue.tools.team.ports import ALLOWED
from retinue.tools.team.team_create.constants import MAX_DESCRIPTION, MAX_NAME, NO_NAME, RESERVED, TAKEN_NAMES
from retinue.tools.text import one_line

NO_TEAMS = "Teams cannot be made or ended here: the team of this run is the one of its spec."

_NAME = re.compile(r"[A-Za-z0-9_-]+")


class TeamCreateInput(ToolInput):
    team_name: str = Field(min_length=1, max_length=MAX_NAME, description="Letters, digits, '-' and '_'")
    description: str = Field("", max_length=MAX_DESCRIPTION, description="What the team is for")
    agent_type: str = Field("", max_length=MAX_NAME, description="The definition that its lead works by")


class TeamCreateOutput(ToolData):
    team_name: str
    team_file_path: str
    lead_agent_id: str


class TeamCreate(Tool[TeamCreateInput, TeamCreateOutput]):
    name = "TeamCreate"
    group = "agents"
    needs = ("team_admin",)
    search_hint = "form a team of agents"
    should_defer = True
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "Make a team that you lead"

    def title(self, args: TeamCreateInput) -> str:
        return f"New team: {one_line(args.team_name, 80)}"

    async def validate_input(self, args: TeamCreateInput, ctx: ToolContext) -> Validation:
        if _NAME.fullmatch(args.team_name) is None:
            return Refused(f"{args.team_name!r} is no name: write letters, digits, '-' and '_'.", NO_NAME)
        if args.team_name in TAKEN_NAMES:
            return Refused(f"{args.team_name} is a reserved name: choose another.", RESERVED)
        return None

    async def check_permissions(self, args: TeamCreateInput, ctx: ToolContext) -> Decision | None:
        return ALLOWED

    async def call(
        self, args: TeamCreateInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[TeamCreateOutput]:
        if ctx.team_admin is None:
            raise ToolError(NO_TEAMS)
        draft = TeamDraft(name=args.team_name, description=args.description, agent_type=args.agent_type)
        made = await ctx.team_admin.create(ctx.key, draft)
        return ToolResult(TeamCreateOutput(team_name=made.name, team_file_path=made.file, lead_agent_id=made.lead))

    def to_content(self, data: TeamCreateOutput) -> str:
        return f"You lead team {data.team_name} now, as {data.lead_agent_id}. It is described in {data.team_file_path}."
