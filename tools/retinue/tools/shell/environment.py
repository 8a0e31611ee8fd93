"""The environment of what agents run: built from nothing, by an allow-list. Pure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem, SpecError

_KEPT = ("LANG", "TZ")
_KEPT_PREFIX = "LC_"
_DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OURS = (
    "RAY_",
    "RETINUE_",
    "TMUX",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_CEILING",
    "GIT_DISCOVERY",
)


@dataclass(frozen=True, slots=True)
class GitIdentity:
    """In whose name an agent commits."""

    name: str
    email: str


def tool_environment(
    base: Mapping[str, str],
    *,
    home: Path,
    tmp: Path,
    identity: GitIdentity,
    spec_env: Mapping[str, str],
    git_config: Path,
    git_ceilings: Sequence[Path] = (),
) -> dict[str, str]:
    """All that a command gets. Of `base`, the environment of our own process, only the search path and the language.

    git_ceilings   real folders that git looks for no repository in, or above: whose worktree lost its `.git` must not
                   find a repository of the user's around it

    SpecError when the spec's `env` sets a name that steers retinue, Ray, tmux or git's choice of repository.
    """
    for name in spec_env:
        if name.startswith(_OURS):
            raise SpecError(f"env: {name} cannot be set for tools: it steers retinue itself. Remove it from the spec.")
    return {
        "PATH": _search_path(base.get("PATH", "")),
        "LANG": "C.UTF-8",
        **{name: value for name, value in base.items() if name in _KEPT or name.startswith(_KEPT_PREFIX)},
        "HOME": str(home),
        "TMPDIR": str(tmp),
        "TERM": "dumb",
        # Caches beside the sources would be handed in with the work, and conflict, where nobody ignores them.
        "PYTHONDONTWRITEBYTECODE": "1",
        **_identity(identity),
        **spec_env,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(git_config),
        "GIT_TERMINAL_PROMPT": "0",
        # What only looks must not write the index, nor hold it while a commit beside it wants it.
        "GIT_OPTIONAL_LOCKS": "0",
        **_ceilings(git_ceilings),
    }


def _search_path(path: str) -> str:
    """Without entries that depend on the working directory: a repository could put its own `git` there."""
    return ":".join(entry for entry in path.split(":") if entry.startswith("/")) or _DEFAULT_PATH


def _ceilings(folders: Sequence[Path]) -> dict[str, str]:
    for folder in folders:
        if os.pathsep in str(folder):
            raise EnvironmentProblem(
                f"{folder}: git cannot be kept below a folder with {os.pathsep!r} in its path; choose another with "
                "--state-dir"
            )
    return {"GIT_CEILING_DIRECTORIES": os.pathsep.join(map(str, folders))} if folders else {}


def _identity(identity: GitIdentity) -> dict[str, str]:
    return {
        f"GIT_{role}_{part}": value
        for role in ("AUTHOR", "COMMITTER")
        for part, value in (("NAME", identity.name), ("EMAIL", identity.email))
    }
