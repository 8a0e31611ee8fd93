"""What a spec finds on this machine: its repository, seen by real git, and the files that it names."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.model.script_file import load_script
from retinue.orchestrator.spec.environment import check_environment
from retinue.orchestrator.spec.load import LoadedSpec
from retinue.orchestrator.spec.problems import Path as DocPath
from retinue.orchestrator.spec.problems import Problem, invalid
from retinue.orchestrator.workspaces.git import Git, GitResult
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import SpecError


@dataclass(slots=True)
class MachineProbe:
    """Implements `spec.environment.Probe`. Blocking; not for use inside an event loop."""

    git: Git = field(default_factory=Git)

    def is_repository(self, path: Path) -> bool:
        return path.is_dir() and self._ask(path, "rev-parse", "--git-dir").code == 0

    def resolves(self, path: Path, ref: str) -> bool:
        return self._ask(path, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").code == 0

    def is_dirty(self, path: Path) -> bool:
        """False, too, for a repository that cannot be used: that is said elsewhere."""
        try:
            return asyncio.run(self._dirty(path))
        except SpecError:
            return False

    def file_exists(self, path: Path) -> bool:
        return path.is_file()

    def folder_exists(self, path: Path) -> bool:
        return path.is_dir()

    async def _dirty(self, path: Path) -> bool:
        # Only a repository that was opened has its filters switched off, which `git status` would run.
        return (await (await UserRepo.open(self.git, path)).resolve_base("head")).dirty

    def _ask(self, path: Path, *args: str) -> GitResult:
        asked = self.git.run(args, cwd=path.resolve(), config=[("safe.directory", "*")], check=False)
        return asyncio.run(asked)


def check_spec_environment(loaded: LoadedSpec) -> tuple[Problem, ...]:
    """The warnings. Raises InvalidSpec with all problems that keep this machine from running the spec."""
    report = check_environment(loaded, MachineProbe())
    problems = report.problems or tuple(loaded.placed(problem) for problem in _scripts(loaded))
    if problems:
        raise invalid(str(loaded.path), problems)
    return report.warnings


def _scripts(loaded: LoadedSpec) -> list[Problem]:
    """A scripted model that cannot be read would stop the team only after it has started."""
    used: list[tuple[DocPath, str]] = []
    spec = loaded.spec
    if spec.model is not None and spec.model.provider == "script":
        used.append((("model",), spec.model.name))
    for key, agent in spec.agents.items():
        if agent.model is not None and agent.model.provider == "script":
            used.append((("agents", key, "model"), agent.model.name))
    problems: list[Problem] = []
    for path, name in used:
        try:
            load_script(loaded.file(name))
        except SpecError as error:
            problems += [Problem("environment", path, line) for line in str(error).splitlines()]
    return problems
