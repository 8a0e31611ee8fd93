"""The configuration of the user's repository: what we copy from it, what we override, what we refuse."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.orchestrator.workspaces.bare import COPIED_SETTINGS
from retinue.orchestrator.workspaces.git import Git
from retinue.tools.errors import SpecError

_OVERRIDES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"filter\..*\.(clean|smudge|process)"), ""),
    (re.compile(r"filter\..*\.required"), "false"),
    (re.compile(r"merge\..*\.driver"), "false"),
    (re.compile(r"diff\.(.*\.(command|textconv)|external)"), ""),
    (re.compile(r"gpg\.(.*\.)?(program|defaultkeycommand)"), "false"),
    (re.compile(r"credential\.(.*\.)?helper"), ""),
    (re.compile(r"remote\..*\.(uploadpack|receivepack|vcs)"), "false"),
)
_INCLUDE = re.compile(r"include\.path|includeif\..*\.path")
_PARTIAL = re.compile(r"extensions\.partialclone|remote\..*\.(promisor|partialclonefilter)")
_INSTEAD = re.compile(r"url\..*\.insteadof")


@dataclass(frozen=True, slots=True)
class UserConfig:
    """`own` is what the repository itself says, in order; `settings` is the allow-listed part of all."""

    own: tuple[tuple[str, str], ...]
    settings: Mapping[str, str]
    excludes_file: Path | None

    @property
    def overrides(self) -> tuple[tuple[str, str], ...]:
        """One harmless value for every key that could make git run a program."""
        found: dict[str, str] = {}
        for key, _ in self.own:
            for pattern, harmless in _OVERRIDES:
                if pattern.fullmatch(_folded(key)):
                    found[key] = harmless
        return tuple(found.items())

    def refuse_unusable(self, where: Path) -> None:
        for key, value in self.own:
            if _INCLUDE.fullmatch(_folded(key)):
                raise SpecError(
                    f"{where}: its git configuration includes {value!r}, which retinue does not follow. "
                    f"Move what it says into the repository's own config, or into your global one, and remove {key}."
                )
            if _PARTIAL.fullmatch(_folded(key)) and value.lower() not in ("false", "no", "off", "0"):
                raise SpecError(
                    f"{where}: this is a partial clone ({key}), whose missing objects agents could not read. "
                    f"Make it complete (`git fetch --refetch --no-filter`, then remove {key}), or use a full clone."
                )

    def refuse_rewritten(self, url: Path) -> None:
        """A fetch from `url` must go exactly there."""
        for key, value in self.own:
            if (_INSTEAD.fullmatch(_folded(key)) and str(url).startswith(value)) or key.startswith(f"remote.{url}."):
                raise SpecError(
                    f"the repository's git setting {key} = {value!r} would redirect a fetch from {url}; remove it"
                )


async def read_user_config(git: Git, git_dir: Path, root: Path, home: Path) -> UserConfig:
    """Reads only: neither include of the repository nor any program that it names is followed."""
    listing = await git.run(
        ["config", "--list", "--show-scope", "--no-includes", "-z"],
        purpose="reading the repository's git configuration",
        git_dir=git_dir,
        cwd=root,
    )
    fields = listing.stdout.split("\0")
    pairs = tuple(_pair(entry) for scope, entry in zip(fields[::2], fields[1::2], strict=False) if scope != "command")
    globally: list[tuple[str, str]] = []
    for file in (home / ".config/git/config", home / ".gitconfig"):
        if file.is_file():
            result = await git.run(
                ["config", "--file", str(file), "--includes", "--list", "-z"],
                purpose=f"reading {file}",
                git_dir=git_dir,
                check=False,
            )
            globally += [_pair(entry) for entry in result.split()]
    effective = {_folded(key): value for key, value in (*globally, *pairs)}
    return UserConfig(
        own=pairs,
        settings={key: value for key, value in effective.items() if key in COPIED_SETTINGS},
        excludes_file=_expand(effective.get("core.excludesfile"), home, root),
    )


def _pair(entry: str) -> tuple[str, str]:
    key, _, value = entry.partition("\n")
    return key, value if "\n" in entry else "true"


def _folded(key: str) -> str:
    """Section and name are case-insensitive; what is between is not, and is not compared here."""
    return key.lower()


def _expand(value: str | None, home: Path, root: Path) -> Path | None:
    if value is None:
        default = home / ".config/git/ignore"
        return default if default.is_file() else None
    path = home / value[2:] if value.startswith("~/") else root / value
    return path if path.is_file() else None
