"""From the paths of a run to what the commands of an agent, or the checks of its work, may reach. Pure.

Whatever is nowhere named may be read, which is what makes compilers and interpreters work; what matters is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces.facts import RunPaths
from retinue.tools.shell.sandbox.policy import Network, SandboxPolicy

PROTECTED_NAMES = (".git", ".claude", ".retinue", ".mcp.json")
"""At the root of a workspace: what would make a program outside do something. Also when they are not there."""

OWN_CONFIGURATION = ("config", "hooks", "info", "objects/info/alternates")
"""Of an agent's own repository: what makes git run a program, and what it borrows from. Our git reads them too."""

OWN_FOLDERS = ("objects", "objects/info")
"""Named by themselves: a folder with something protected in it must not be put aside and made anew."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What all commands of a run have in common.

    run         the run's directory
    repo        the checkout of the launch
    borrowed    what is read where it lies: objects that the run's repositories borrow, environments on PATH
    private     places that nobody may see: `private_places`
    fine        the mechanism can protect something in a folder in which all else may be changed
    """

    run: Path
    repo: Path
    borrowed: tuple[Path, ...]
    private: tuple[Path, ...]
    fine: bool = True


@dataclass(frozen=True, slots=True)
class Terms:
    """What the spec says of one agent."""

    network: Network = "off"
    hidden: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()


def worktree_policy(ground: Ground, agent: str, worktree: Path, repository: Path, terms: Terms) -> SandboxPolicy:
    """An agent in its worktree, which belongs to its own bare repository, and in those that it makes beside it.

    A mechanism that cannot protect something in a folder without closing the folder protects nothing in these two: work
    would be impossible, nobody reads settings from an agent's worktree, and our git compares an agent's repository with
    what we wrote before it runs there.
    """
    beside = RunPaths(ground.run).beside(agent)
    if not ground.fine:
        return _policy(ground, agent, terms, writable=(worktree, repository, beside), protected=())
    return _policy(
        ground,
        agent,
        terms,
        writable=(worktree, repository, beside, *(repository / name for name in OWN_FOLDERS)),
        protected=(*_protected_in(worktree), *(repository / name for name in OWN_CONFIGURATION)),
    )


def checkout_policy(ground: Ground, agent: str, checkout: Path, terms: Terms) -> SandboxPolicy:
    """An agent that writes in the launch checkout: in its files. The user's repository is nobody's but the user's.

    A file in `.git` that is not there yet, as `commondir`, can make the user's git run anything, and a mount in its
    place would break that git; so nothing in `.git` may be changed.
    """
    return _policy(ground, agent, terms, writable=(checkout,), protected=_protected_in(checkout))


def checks_policy(ground: Ground, name: str, terms: Terms) -> SandboxPolicy:
    """What looks at a candidate: in the verify worktree, which is the Depot's and is put right before each use."""
    verify = RunPaths(ground.run).verify
    return _policy(ground, name, terms, writable=(verify,), protected=(verify / ".git",) if ground.fine else ())


def _protected_in(workspace: Path) -> tuple[Path, ...]:
    return tuple(workspace / name for name in PROTECTED_NAMES)


def _policy(
    ground: Ground, name: str, terms: Terms, *, writable: tuple[Path, ...], protected: tuple[Path, ...]
) -> SandboxPolicy:
    paths = RunPaths(ground.run)
    shown = (
        *(ground.repo, *ground.borrowed, paths.depot, ground.run / "gitconfig"),
        *(ground.run / "tool-results" / name, ground.run / "tasks" / name),
    )
    free = (*writable, *terms.writable)
    return SandboxPolicy(
        writable=free,
        scratch=paths.tmp / name,
        readable=tuple(dict.fromkeys(path for path in shown if path not in free)),
        protected=protected,
        hidden=tuple(dict.fromkeys((*ground.private, ground.run, *terms.hidden))),
        network=terms.network,
    )
