"""What is written down about a Depot and its workspaces, and where things lie in a run's directory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from retinue.orchestrator.workspaces.user_repo import BaseKind


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DepotFacts(_Stored):
    """What a Depot was made from; kept beside its configuration, which is a function of it."""

    run: str
    base_kind: BaseKind
    base_sha: str
    user_root: str
    user_git_dir: str
    user_objects: str
    object_format: str
    settings: dict[str, str]
    include: tuple[str, ...]


class Workspace(_Stored):
    """An agent's worktree and the repository that it belongs to."""

    agent: str
    path: Path
    git_dir: Path
    branch: str
    base_sha: str
    name: str
    email: str


@dataclass(frozen=True, slots=True)
class RunPaths:
    """Where things lie in a run's directory."""

    run_dir: Path

    @property
    def depot(self) -> Path:
        return self.run_dir / "depot.git"

    @property
    def own(self) -> Path:
        return self.depot / "retinue"

    @property
    def verify(self) -> Path:
        return self.run_dir / "verify"

    @property
    def tmp(self) -> Path:
        return self.run_dir / "tmp"

    def repository(self, agent: str) -> Path:
        return self.run_dir / "agents" / f"{agent}.git"

    @property
    def worktrees(self) -> Path:
        return self.run_dir / "wt"

    def worktree(self, agent: str) -> Path:
        return self.worktrees / agent

    def beside(self, agent: str) -> Path:
        """The folder of the worktrees that an agent makes beside its own."""
        return self.run_dir / "beside" / agent

    def index(self, name: str) -> Path:
        return self.own / "index" / name

    def facts_of(self, agent: str) -> Path:
        return self.own / "agents" / f"{agent}.json"
