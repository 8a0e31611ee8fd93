"""MCP servers as a run knows them: trusted values, already filled in. Pure."""

from __future__ import annotations

from pydantic import Field

from retinue.agents.model.messages import Wire
from retinue.tools.shell.sandbox.policy import Network

CONNECT_S = 30.0
CALL_S = 900.0
MOST_TRIES = 5
FIRST_PAUSE_S = 1.0
STEADY_S = 60.0
"""A connection that held so long begins a new count of tries."""


class StdioServer(Wire):
    """A program that speaks MCP over its standard streams.

    timeout_s    the longest that one call of its tools may take
    always_load  its tools are not deferred
    network      what it may reach; None: as the team's sandbox says
    """

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    timeout_s: float = Field(CALL_S, ge=1.0)
    always_load: bool = False
    network: Network | None = None


def pause_before(attempt: int) -> float | None:
    """How long to wait before it is tried again: 1, 2, 4, 8 s; None after the fifth failure in a row."""
    return FIRST_PAUSE_S * 2 ** (attempt - 1) if attempt < MOST_TRIES else None
