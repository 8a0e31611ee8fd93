"""What is kept of the runs of hooks. Apart from what runs them: every reader of a ledger loads this."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Outcome = Literal["ok", "blocked", "failed", "timeout", "started"]


class HookRun(BaseModel):
    """That a hook ran. `exit` is that of a command; `started`: nobody waits for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    outcome: Outcome
    exit: int | None = None
    ms: int = 0
    problem: str = ""
