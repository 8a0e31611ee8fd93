"""The spec's parts about limits: what a team and its agents may use up."""

from __future__ import annotations

from retinue.orchestrator.spec.fields import Count, Duration, Usd, UsdLimit
from retinue.orchestrator.spec.part import SpecPart


class AgentLimits(SpecPart):
    """What one agent may use up, besides the limits of the team. No limit of its own where none is given."""

    turns: Count | None = None
    """Requests to its model."""

    tokens: Count | None = None
    """Tokens, in and out."""

    usd: Usd | None = None
    """US dollars."""

    wall: Duration | None = None
    """Time, as in 90s, 10m or 1h."""


class TeamLimits(SpecPart):
    """What the whole team may use up; the run stops at the first that is reached."""

    tokens: Count | None = None
    """Tokens, in and out. No limit when not given."""

    usd: UsdLimit = 5.0
    """US dollars. `none` lifts the limit, which a model without a known price needs."""

    turns: Count = 200
    """Requests to models."""

    wall: Duration = 3600.0
    """Time, as in 90s, 10m or 1h."""
