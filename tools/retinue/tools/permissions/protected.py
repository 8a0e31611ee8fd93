"""Paths whose change is never approved by rule or mode: what they hold runs, or decides what may run."""

from __future__ import annotations

from pathlib import PurePath

_FOLDERS = frozenset(
    (
        ".git",
        ".vscode",
        ".idea",
        ".husky",
        ".cargo",
        ".devcontainer",
        ".yarn",
        ".mvn",
        ".claude",
        ".retinue",
    )
)
_PAIRS = frozenset(((".config", "git"),))
_EXCEPT = frozenset(((".claude", "worktrees"),))
_FILES = frozenset(
    (
        ".gitconfig",
        ".gitmodules",
        ".bashrc",
        ".bash_profile",
        ".bash_login",
        ".bash_aliases",
        ".bash_logout",
        ".zshrc",
        ".zprofile",
        ".zshenv",
        ".zlogin",
        ".zlogout",
        ".profile",
        ".envrc",
        ".npmrc",
        ".yarnrc",
        ".yarnrc.yml",
        ".pnp.cjs",
        ".pnp.loader.mjs",
        ".pnpmfile.cjs",
        "bunfig.toml",
        ".bunfig.toml",
        ".bazelrc",
        ".bazelversion",
        ".bazeliskrc",
        ".pre-commit-config.yaml",
        "lefthook.yml",
        "lefthook.yaml",
        ".lefthook.yml",
        ".lefthook.yaml",
        "gradle-wrapper.properties",
        "maven-wrapper.properties",
        ".devcontainer.json",
        ".ripgreprc",
        "pyrightconfig.json",
        ".mcp.json",
        ".claude.json",
    )
)


def protected_part(path: PurePath) -> str | None:
    """The part that protects this path, compared without regard to case on every platform; None when it is free.

    `path` is relative to the workspace for what lies inside of it: where the workspace itself lies protects nothing.
    """
    parts = [part.casefold() for part in path.parts]
    for i, part in enumerate(parts):
        pair = (part, parts[i + 1]) if i + 1 < len(parts) else (part, "")
        if (part in _FOLDERS and pair not in _EXCEPT) or part in _FILES:
            return path.parts[i]
        if pair in _PAIRS:
            return "/".join(path.parts[i : i + 2])
    return None
