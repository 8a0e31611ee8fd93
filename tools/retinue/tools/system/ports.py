"""What the tools for an agent's own ways ask of their surroundings: planning, worktrees, settings, waiting."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from retinue.tools.people.ports import PlanVerdict
from retinue.tools.ports import PortModel


class PlanEntry(PortModel):
    """`again`: the file has a plan of an earlier time."""

    file: str
    again: bool = False


class PlanPort(Protocol):
    """The mode plan of one agent: only what reads, and changes of the plan's file."""

    @property
    def planning(self) -> bool: ...

    @property
    def file(self) -> Path: ...

    @property
    def can_be_approved(self) -> bool:
        """Whether there is anybody who could approve a plan; without, nobody should begin one."""
        ...

    async def enter(self, key: str) -> PlanEntry:
        """Twice is once."""
        ...

    def text(self) -> str:
        """What the plan's file holds; empty where there is none."""
        ...

    async def ask(self, plan: str) -> PlanVerdict:
        """What says who may approve it; no, where there is nobody. A plan that was changed is in the file then."""
        ...

    async def leave(self, key: str) -> None:
        """Back to the mode before; nothing, when it does not plan."""
        ...


class WorktreePlace(PortModel):
    """A worktree that an agent made beside its own. `branch` is the one that it was made on."""

    name: str
    path: str
    branch: str


class WorktreeLoss(PortModel):
    """What would be gone with a worktree: changed files, and commits that no other branch has."""

    files: int = 0
    commits: int = 0


class WorktreeLeft(PortModel):
    """`rescued` are refs of the run's Depot that hold what was in a worktree that was removed with changes."""

    place: WorktreePlace
    removed: bool
    home: str
    loss: WorktreeLoss = WorktreeLoss()
    rescued: tuple[str, ...] = ()


class WorktreePort(Protocol):
    """Further worktrees of the agent's own repository."""

    @property
    def current(self) -> WorktreePlace | None:
        """The one that the agent is in; None: its own."""
        ...

    @property
    def home(self) -> Path:
        """The agent's own worktree."""
        ...

    def kept(self) -> tuple[WorktreePlace, ...]:
        """Those that there are."""
        ...

    async def enter(self, key: str, name: str | None, *, anew: bool) -> WorktreePlace:
        """Open the one of that name; with `anew` make it if need be, from home only: else ToolError.

        The same key has one effect and the same answer.
        """
        ...

    async def loss(self) -> WorktreeLoss:
        """Of the current one, were it removed."""
        ...

    async def leave(self, key: str, *, remove: bool, discard: bool) -> WorktreeLeft | None:
        """Back to the agent's own; None, when it is there. ToolError: it would lose something, or is in no state to go.

        With `discard` what would be lost is rescued first. The same key has one effect and the same answer.
        """
        ...


class Setting(PortModel):
    """`choices` are the values that it may have; empty: it can only be read."""

    name: str
    value: str
    choices: tuple[str, ...] = ()
    about: str = ""


class ConfigPort(Protocol):
    """The settings of one agent, for the rest of its life."""

    def settings(self) -> tuple[Setting, ...]: ...

    async def set(self, key: str, name: str, value: str) -> None:
        """`value` is one of its choices."""
        ...


WokenBy = Literal["time", "mail", "end"]


class WaitPort(Protocol):
    async def rest(self, seconds: float) -> WokenBy:
        """That long, or until mail comes, or until the agent shall end."""
        ...
