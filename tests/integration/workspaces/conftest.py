"""A real repository of a user, a real run directory, and a shell to act as the user and as agents."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.facts import Workspace
from retinue.orchestrator.workspaces.git import Git, Identity
from retinue.orchestrator.workspaces.user_repo import UserRepo

RUN = "run-1"


@dataclass
class World:
    top: Path
    git: Git = field(default_factory=Git)

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def user(self) -> Path:
        return self.top / "user"

    @property
    def run_dir(self) -> Path:
        return self.top / "state" / RUN

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}

    def sh(self, script: str, cwd: Path | None = None, *, check: bool = True) -> str:
        """Act as the user, or as an agent in its worktree."""
        done = subprocess.run(
            ["bash", "-c", script], cwd=cwd or self.user, env=self.env, capture_output=True, text=True, check=False
        )
        if check and done.returncode != 0:
            raise AssertionError(f"{script!r} failed: {done.stdout}{done.stderr}")
        return (done.stdout + ("" if check else done.stderr)).strip()

    def write(self, path: str, text: str, *, where: Path | None = None) -> None:
        file = (where or self.user) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def commit(self, files: dict[str, str], message: str = "work", where: Path | None = None) -> str:
        """Write files and commit them, as the user or in an agent's worktree; the new commit."""
        for path, text in files.items():
            self.write(path, text, where=where)
        return self.sh(f"git add -A && git commit -q -m '{message}' && git rev-parse HEAD", where)

    async def open(self) -> UserRepo:
        return await UserRepo.open(self.git, self.user, home=self.home)

    async def depot(self, base: str = "head") -> Depot:
        user = await self.open()
        return await Depot.create(self.git, self.run_dir, RUN, user, await user.resolve_base(base))

    async def agent(self, depot: Depot, name: str) -> Workspace:
        return await depot.add_agent(name, Identity(name.title(), f"{name}@team"))

    async def hand_in(self, depot: Depot, agent: str, files: dict[str, str], message: str = "work") -> str:
        """An agent commits and its work is taken into the Depot."""
        workspace = depot.workspace(agent)
        sha = self.commit(files, message, workspace.path)
        await depot.take(agent, workspace.branch, sha)
        return sha

    def picture(self) -> dict[str, str]:
        """All of the user's checkout that a run must leave alone."""
        return {
            "status": self.sh("git status --porcelain --ignored"),
            "head": self.sh("git symbolic-ref HEAD && git rev-parse HEAD"),
            "branches": self.sh("git for-each-ref refs/heads refs/tags refs/stash refs/remotes"),
            "worktrees": self.sh("git worktree list --porcelain"),
            "config": (self.user / ".git/config").read_text(),
            "fetch head": str((self.user / ".git/FETCH_HEAD").exists()),
        }


LINES = "".join(f"line {number}\n" for number in range(1, 31))


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path.resolve())
    made.home.mkdir()
    made.user.mkdir()
    made.sh("git init -q -b main && git config user.name User && git config user.email user@home")
    made.commit({"lines.txt": LINES, "src/app.py": "print('hello')\n", ".gitignore": "*.log\n.env\n"}, "start")
    return made


@pytest.fixture
def canary(world: World) -> Callable[[], bool]:
    """Tells whether something of ours ran the program that a hostile configuration names."""
    program = world.top / "evil"
    program.write_text(f'#!/bin/sh\necho ran "$0" "$@" >> {world.top}/canary\ncat\n')
    program.chmod(0o755)
    return lambda: (world.top / "canary").exists()
