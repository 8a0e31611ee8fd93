"""What a spec needs from the machine, with the facts given by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from retinue.orchestrator.spec import EnvironmentReport, check_environment, load_spec_text

SMALL = """\
version: 1
name: small
model: script:s.yaml
agents:
  coder: {prompt: hi}
"""


@dataclass
class Machine:
    repository: bool = True
    refs: frozenset[str] = frozenset({"HEAD", "main"})
    dirty: bool = False
    files: frozenset[str] = frozenset({"specs/s.yaml"})
    folders: frozenset[str] = frozenset({"/srv/cache"})
    asked: list[Path] = field(default_factory=list)

    def is_repository(self, path: Path) -> bool:
        self.asked.append(path)
        return self.repository

    def resolves(self, path: Path, ref: str) -> bool:
        return ref in self.refs

    def is_dirty(self, path: Path) -> bool:
        return self.dirty

    def file_exists(self, path: Path) -> bool:
        return str(path) in self.files

    def folder_exists(self, path: Path) -> bool:
        return str(path) in self.folders


def report(text: str, machine: Machine) -> EnvironmentReport:
    return check_environment(load_spec_text(text, "team.yaml", env={}, path=Path("specs/team.yaml")), machine)


def lines(text: str, machine: Machine) -> tuple[list[str], list[str]]:
    found = report(text, machine)
    return [str(problem) for problem in found.problems], [str(warning) for warning in found.warnings]


def test_a_clean_repository_with_all_files_is_fine() -> None:
    machine = Machine()
    assert lines(SMALL + "repo: {path: work, base: main}\n", machine) == ([], [])
    assert machine.asked[0] == Path("work")


def test_worktrees_need_a_repository() -> None:
    problems, warnings = lines(SMALL, Machine(repository=False, dirty=True))
    assert problems == [
        'team.yaml:1:1: repo.path: "." is not inside a git repository, and worktrees need one; '
        "run `git init` and commit there, or write isolation: none for every agent"
    ]
    assert warnings == []


def test_a_team_without_worktrees_needs_no_repository() -> None:
    text = SMALL.replace("prompt: hi", "prompt: hi, isolation: none")
    assert lines(text, Machine(repository=False)) == ([], [])


def test_a_repository_needs_a_commit() -> None:
    problems, _ = lines(SMALL + "repo:\n  path: work\n", Machine(refs=frozenset()))
    assert problems == ['team.yaml:7:9: repo.path: the repository at "work" has no commit yet; commit something first']


def test_a_base_has_to_resolve() -> None:
    problems, _ = lines(SMALL + "repo:\n  base: mian\n", Machine())
    assert problems == [
        'team.yaml:7:9: repo.base: "mian" is no branch, tag or commit of the repository at "."; '
        "`git branch -a` lists its branches"
    ]


def test_a_missing_script_and_a_missing_definition_are_both_named() -> None:
    text = SMALL.replace("prompt: hi", "prompt: hi, definition: kinds/own.md")
    problems, _ = lines(text, Machine(files=frozenset()))
    assert problems == [
        'team.yaml:3:8: model: the script "specs/s.yaml" does not exist; '
        "relative paths start from the folder of the spec",
        'team.yaml:5:35: agents.coder.definition: the definition "specs/kinds/own.md" does not exist; '
        "relative paths start from the folder of the spec",
    ]


def test_a_dirty_checkout_is_a_warning_unless_it_is_the_base() -> None:
    problems, warnings = lines(SMALL, Machine(dirty=True))
    assert problems == []
    assert warnings == [
        'team.yaml:1:1: repo: the checkout at "." has changes that are not committed, and the team does not see them; '
        "commit them, or write base: worktree"
    ]
    assert lines(SMALL + "repo: {base: worktree}\n", Machine(dirty=True)) == ([], [])


def test_warnings_of_the_loader_are_in_the_report() -> None:
    found = report(SMALL + "env: {API_TOKEN: abcdefgh}\n", Machine())
    assert [warning.path for warning in found.warnings] == [("env", "API_TOKEN")]


def test_a_folder_that_commands_shall_write_has_to_be_there_or_is_warned_about() -> None:
    text = SMALL.replace("prompt: hi", "prompt: hi, sandbox: {writable: [/srv/npm]}")
    problems, warnings = lines(text + "sandbox: {writable: [/srv/cache, /srv/pip]}\n", Machine())
    assert problems == []
    assert warnings == [
        'team.yaml:6:34: sandbox.writable[1]: the folder "/srv/pip" does not exist, so no command can write there; '
        "make it first: mkdir -p /srv/pip",
        'team.yaml:5:44: agents.coder.sandbox.writable[0]: the folder "/srv/npm" does not exist, so no command can '
        "write there; make it first: mkdir -p /srv/npm",
    ]
