"""Which tools an agent has by the manner in which it works."""

from __future__ import annotations

from pathlib import Path

from retinue.agents.assemble import permission_policy, tool_pool
from retinue.agents.boot import AgentBoot, ToolFilter
from support.agents_scene import a_boot


def names(boot: AgentBoot) -> tuple[str, ...]:
    return tool_pool(boot, permission_policy(boot, Path("/nonexistent"))).names


def test_the_simple_mode_has_three_tools() -> None:
    assert names(a_boot(tools=ToolFilter(simple=True))) == ("Bash", "Edit", "Read")


def test_a_shell_with_a_search_needs_no_other() -> None:
    everything, less = names(a_boot()), names(a_boot(tools=ToolFilter(embedded_search=True)))
    assert set(everything) - set(less) == {"Glob", "Grep"}


def test_an_agent_of_an_agent_leads_nobody() -> None:
    child = names(a_boot(role="child", parent="ada~1", depth=1))
    assert "Read" in child
    assert not {"AskUserQuestion", "TeamCreate", "TeamDelete"} & set(child)
