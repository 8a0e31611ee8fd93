"""What a spec needs from the machine: the repository, its base, the files that it names. Facts come from a probe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.orchestrator.spec.load import LoadedSpec
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.spec.problems import Path as DocPath
from retinue.orchestrator.spec.problems import Problem, quoted
from retinue.orchestrator.spec.vocabulary import DEFINITIONS


class Probe(Protocol):
    """Facts about the machine. A relative path starts from where `retinue` is called."""

    def is_repository(self, path: Path) -> bool: ...
    def resolves(self, path: Path, ref: str) -> bool: ...
    def is_dirty(self, path: Path) -> bool: ...
    def file_exists(self, path: Path) -> bool: ...
    def folder_exists(self, path: Path) -> bool: ...


@dataclass(frozen=True, slots=True)
class EnvironmentReport:
    """Problems keep a run from starting; warnings are shown and it starts."""

    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def repository_path(spec: TeamSpec) -> Path:
    return Path(spec.repo.path).expanduser()


def check_environment(loaded: LoadedSpec, probe: Probe) -> EnvironmentReport:
    spec = loaded.spec
    problems = [*_repository(spec, probe), *_files(loaded, probe)]
    warnings = [*_dirty(spec, probe), *_writable(spec, probe)]
    return EnvironmentReport(
        problems=tuple(loaded.placed(problem) for problem in problems),
        warnings=(*loaded.warnings, *(loaded.placed(warning) for warning in warnings)),
    )


def _repository(spec: TeamSpec, probe: Probe) -> Iterator[Problem]:
    path, base = repository_path(spec), spec.repo.base
    at: DocPath = ("repo", "path")
    needs_git = any(agent.isolation == "worktree" for agent in spec.agents.values())
    if not probe.is_repository(path):
        if needs_git:
            what = f"{quoted(str(path))} is not inside a git repository, and worktrees need one"
            remedy = "run `git init` and commit there, or write isolation: none for every agent"
            yield _outside(at, what, remedy)
    elif not probe.resolves(path, "HEAD"):
        if needs_git:
            yield _outside(at, f"the repository at {quoted(str(path))} has no commit yet", "commit something first")
    elif base not in ("head", "worktree") and not probe.resolves(path, base):
        what = f"{quoted(base)} is no branch, tag or commit of the repository at {quoted(str(path))}"
        yield _outside(("repo", "base"), what, "`git branch -a` lists its branches")


def _files(loaded: LoadedSpec, probe: Probe) -> Iterator[Problem]:
    models = [(("model",), loaded.spec.model)]
    models += [(("agents", key, "model"), agent.model) for key, agent in loaded.spec.agents.items()]
    for path, model in models:
        if model is not None and model.provider == "script":
            yield from _file(loaded, probe, path, model.name, "script")
    for key, agent in loaded.spec.agents.items():
        if agent.definition not in DEFINITIONS:
            yield from _file(loaded, probe, ("agents", key, "definition"), agent.definition, "definition")


def _file(loaded: LoadedSpec, probe: Probe, at: DocPath, written: str, what: str) -> Iterator[Problem]:
    path = loaded.file(written)
    if not probe.file_exists(path):
        remedy = "" if Path(written).is_absolute() else "relative paths start from the folder of the spec"
        yield _outside(at, f"the {what} {quoted(str(path), 200)} does not exist", remedy)


def _dirty(spec: TeamSpec, probe: Probe) -> Iterator[Problem]:
    path = repository_path(spec)
    if spec.repo.base != "worktree" and probe.is_repository(path) and probe.is_dirty(path):
        what = f"the checkout at {quoted(str(path))} has changes that are not committed, and the team does not see them"
        yield _outside(("repo",), what, "commit them, or write base: worktree")


def _writable(spec: TeamSpec, probe: Probe) -> Iterator[Problem]:
    """A sandbox can only open what is there."""
    places: list[tuple[DocPath, tuple[str, ...]]] = [(("sandbox", "writable"), spec.sandbox.writable)]
    places += [(("agents", key, "sandbox", "writable"), agent.sandbox.writable) for key, agent in spec.agents.items()]
    for at, written in places:
        for index, place in enumerate(written):
            if not probe.folder_exists(Path(place).expanduser()):
                what = f"the folder {quoted(place, 200)} does not exist, so no command can write there"
                yield _outside((*at, index), what, f"make it first: mkdir -p {place}")


def _outside(path: DocPath, what: str, remedy: str) -> Problem:
    return Problem("environment", path, what, remedy=remedy)
