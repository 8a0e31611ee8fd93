"""What a machine can do about confinement, found once and kept as plain values."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from retinue.tools.shell.sandbox.bubblewrap import Form

Mechanism = Literal["bubblewrap", "landlock", "sandbox-exec"]


class Probe(BaseModel):
    """`mechanism` is the one that works here, None when none does.

    program  the mechanism's own program, empty when it has none
    form     how bubblewrap treats user namespaces
    why      of every mechanism that was tried and does not work: the reason, and what to do about it
    gaps     what the mechanism leaves open
    limits   what commands cannot do in it that a user may expect
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mechanism: Mechanism | None
    program: str = ""
    form: Form | None = None
    version: str = ""
    why: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
