"""The spec's part about MCP servers: programs whose tools agents get."""

from __future__ import annotations

from retinue.orchestrator.spec.fields import Duration, EnvName, EnvValue, Network, Switch, Text
from retinue.orchestrator.spec.part import SpecPart


class McpServerSpec(SpecPart):
    """A program that speaks MCP over its standard streams. Its tools are called `mcp__NAME__TOOL`."""

    command: Text
    """The program: a name that is found on the search path, or a whole path."""

    args: tuple[EnvValue, ...] = ()
    """Its arguments."""

    env: dict[EnvName, EnvValue] = {}
    """Environment variables that it alone gets. Secrets may stand here, as `${NAME}`."""

    timeout: Duration = 900.0
    """The most that one call of its tools may take."""

    always_load: Switch = False
    """`true`: agents see its tools from the start, and need not search for them."""

    network: Network | None = None
    """What it may reach: `off`, `full` or a list of hosts. The team's sandbox says so when not given."""
