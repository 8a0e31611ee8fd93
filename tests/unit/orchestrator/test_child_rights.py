"""A sub-agent has its parent's rights at most, whatever mode its definition and its parent's say."""

from __future__ import annotations

import pytest

from retinue.agents.assemble import permission_policy
from retinue.agents.boot import AgentBoot, Rights, RuleSet
from retinue.agents.definition import AgentDefinition
from retinue.orchestrator.team.children import rights_of
from retinue.tools.base import AnyTool, Behavior, ToolContext
from retinue.tools.permissions.decide import MODES, Mode
from retinue.tools.ports import ChildRequest
from retinue.tools.registry.builtin import builtin_tools
from support.calls import context
from support.teams import boot_of

TOOLS: dict[str, AnyTool] = {each.name: each for each in builtin_tools()}
CALLS = [
    ("Write", {"file_path": "a.py", "content": "x"}),
    ("Bash", {"command": "make test"}),
    ("Read", {"file_path": "a.py"}),
    ("Read", {"file_path": ".env"}),
]


async def says(boot: AgentBoot, ctx: ToolContext, name: str, given: dict[str, str]) -> Behavior:
    tool = TOOLS[name]
    policy = permission_policy(boot, ctx.root)
    return (await policy.decide(tool, tool.Input.model_validate(given), ctx, forced_ask=None)).behavior


@pytest.mark.parametrize("planning", [False, True])
@pytest.mark.parametrize("own", [None, *MODES])
@pytest.mark.parametrize("mode", MODES)
async def test_no_mode_of_a_definition_gives_more_than_its_parent_has(
    mode: Mode, own: Mode | None, planning: bool
) -> None:
    rules = RuleSet(source="user", allow=("Bash(make:*)",), deny=("Read(.env)",))
    parent = boot_of("ada").model_copy(update={"rights": (Rights(mode=mode, rules=(rules,)),)})
    definition = AgentDefinition(name="d", description="d", prompt="p", mode=own)
    request = ChildRequest(definition="d", description="d", prompt="p", planning=planning)
    child = parent.model_copy(update={"rights": rights_of(parent, request, definition)})
    for name, given in CALLS:
        allowed = await says(child, context(), name, given) == "allow"
        assert not allowed or await says(parent, context(), name, given) == "allow"
    if planning or own == "plan":
        assert await says(child, context(), *CALLS[0]) == "deny"
