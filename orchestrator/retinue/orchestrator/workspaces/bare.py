"""A bare repository as files. All of its configuration is a pure function of what we know, so a change can be seen.

Writing these files costs no process, which is what keeps twenty workspaces close to twenty plain worktrees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.tools.errors import StateError

COPIED_SETTINGS = frozenset(
    {
        "core.autocrlf",
        "core.eol",
        "core.safecrlf",
        "core.symlinks",
        "core.filemode",
        "core.ignorecase",
        "core.precomposeunicode",
        "core.quotepath",
        "core.longpaths",
        "merge.renames",
        "merge.renamelimit",
        "diff.renames",
        "diff.renamelimit",
    }
)


class GuardTripped(StateError):
    """Configuration that only we write has changed: nothing of ours runs in that repository until it is put back."""


@dataclass(frozen=True, slots=True)
class BareRepository:
    """What one of our bare repositories is made of.

    objects    object folders that it borrows from, absolute
    settings   the user's settings that are on the allow-list
    extra      further `section.key` or `section "sub".key` settings, ours
    """

    path: Path
    object_format: str
    objects: tuple[Path, ...]
    head: str
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    extra: Sequence[tuple[str, str, str]] = ()

    def config(self) -> str:
        sha1 = self.object_format == "sha1"
        lines = [
            "[core]",
            f"\trepositoryformatversion = {0 if sha1 else 1}",
            "\tbare = true",
            "\tlogAllRefUpdates = true",
        ]
        if not sha1:
            lines += ["[extensions]", f"\tobjectFormat = {self.object_format}"]
        lines += ["[gc]", "\tauto = 0", "[maintenance]", "\tauto = false", "[branch]", "\tautoSetupMerge = false"]
        for key, value in sorted(self.settings.items()):
            section, name = key.split(".", 1)
            lines += [f"[{section}]", f"\t{name} = {quote(value)}"]
        for section, name, value in self.extra:
            lines += [f"[{section}]", f"\t{name} = {quote(value)}"]
        return "\n".join(lines) + "\n"

    def alternates(self) -> str:
        return "".join(f"{path}\n" for path in self.objects)

    def write(self, *, exclude: str, shallow: bytes | None, refs: Mapping[str, str]) -> None:
        for folder in ("objects/info", "objects/pack", "refs/heads", "info"):
            (self.path / folder).mkdir(parents=True)
        (self.path / "HEAD").write_text(f"ref: {self.head}\n")
        (self.path / "config").write_text(self.config(), encoding="utf-8")
        (self.path / "objects/info/alternates").write_text(self.alternates(), "utf-8", "surrogateescape")
        (self.path / "info/exclude").write_text(exclude, "utf-8", "surrogateescape")
        if shallow is not None:
            (self.path / "shallow").write_bytes(shallow)
        for ref, sha in refs.items():
            target = self.path / ref
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(f"{sha}\n")

    def restore(self) -> None:
        """Put back the configuration that `check` wants. What stood there is lost."""
        for name in ("config.worktree", "info/attributes", "config"):
            (self.path / name).unlink(missing_ok=True)
        for hook in self._hooks():
            hook.unlink()
        (self.path / "config").write_text(self.config(), encoding="utf-8")
        if self._lent() - set(self.objects):
            (self.path / "objects/info/alternates").write_text(self.alternates(), "utf-8", "surrogateescape")

    def check(self) -> None:
        """Raise GuardTripped when what can make git run a program, or read elsewhere, is not as we wrote it."""
        for problem in self._problems():
            raise GuardTripped(
                f"{problem} in {self.path} was not changed by retinue, which therefore runs no git there. "
                "Look at what changed; the run goes on once it is as before (config, alternates) or gone (all others)."
            )

    def _problems(self) -> list[str]:
        found: list[str] = []
        if self.path.is_symlink() or not self.path.is_dir():
            return ["the folder itself"]
        config = self.path / "config"
        if config.is_symlink() or not config.is_file() or config.read_bytes() != self.config().encode():
            found.append("config")
        found += [name for name in ("config.worktree", "info/attributes", "commondir") if _there(self.path / name)]
        if self._hooks():
            found.append("hooks")
        if self._lent() - set(self.objects):
            found.append("objects/info/alternates")
        return found

    def _lent(self) -> set[Path]:
        """From where it borrows now. A repository that was made to stand alone borrows from nowhere."""
        file = self.path / "objects/info/alternates"
        if not file.is_file():
            return set()
        return {Path(line) for line in file.read_text("utf-8", "surrogateescape").splitlines() if line}

    def _hooks(self) -> list[Path]:
        folder = self.path / "hooks"
        if folder.is_symlink() or folder.is_file():
            return [folder]
        return sorted(folder.iterdir()) if folder.is_dir() else []


def quote(value: str) -> str:
    """A value of a git configuration file."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def _there(path: Path) -> bool:
    return path.is_symlink() or path.exists()
