"""What a person said of a repository: that what it brings may execute, grant and route. In the user's state folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from retinue.orchestrator.state.paths import PRIVATE_FOLDER, write_private
from retinue.tools.errors import EnvironmentProblem

State = Literal["trusted", "untrusted", "changed"]
_SHOWN = 5


class Trusted(BaseModel):
    """`files` are the hashes of all contents, by path: what is trusted is exactly these."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    repository: str
    digest: str
    files: dict[str, str]
    day: str


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether what a repository brings now is what was trusted. `changes` says what is not, one each."""

    state: State
    changes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        more = f" and {len(self.changes) - _SHOWN} more" if len(self.changes) > _SHOWN else ""
        return ", ".join(self.changes[:_SHOWN]) + more


def digests_of(contents: Mapping[str, bytes]) -> dict[str, str]:
    return {path: hashlib.sha256(content).hexdigest() for path, content in sorted(contents.items())}


def digest_of(files: Mapping[str, str]) -> str:
    """One hash over all pairs of path and content."""
    whole = hashlib.sha256()
    for path, digest in sorted(files.items()):
        whole.update(f"{path}\0{digest}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


@dataclass(frozen=True, slots=True)
class TrustStore:
    """`folder` is only for this user. `repository` names one: its common git folder, or the folder itself."""

    folder: Path

    @classmethod
    def of(cls, state: Path) -> TrustStore:
        return cls(state / "trust")

    def standing(self, repository: Path, contents: Mapping[str, bytes]) -> Standing:
        """A record that cannot be read is none."""
        known = self.find(repository)
        if known is None:
            return Standing("untrusted")
        files = digests_of(contents)
        if digest_of(files) == known.digest == digest_of(known.files):
            return Standing("trusted")
        return Standing("changed", _changes(known.files, files))

    def find(self, repository: Path) -> Trusted | None:
        path = self._file(repository)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(fd, "rb") as file:
                found = os.fstat(fd)
                if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                    return None
                known = Trusted.model_validate_json(file.read())
        except (OSError, ValidationError):
            return None
        return known if known.repository == str(repository) else None

    def record(self, repository: Path, contents: Mapping[str, bytes], day: str) -> None:
        """What it brings now is trusted from here on. EnvironmentProblem: the folder cannot be used."""
        self._own()
        files = digests_of(contents)
        known = Trusted(repository=str(repository), digest=digest_of(files), files=files, day=day)
        write_private(self._file(repository), known.model_dump_json())

    def revoke(self, repository: Path) -> bool:
        """False: it was not trusted."""
        try:
            self._file(repository).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise EnvironmentProblem(f"{self._file(repository)} cannot be removed: {error.strerror}") from error
        return True

    def _own(self) -> None:
        try:
            self.folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
            found = self.folder.lstat()
        except OSError as error:
            raise EnvironmentProblem(f"{self.folder} cannot be used: {error.strerror}") from error
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise EnvironmentProblem(
                f"{self.folder} must belong to you, and nobody else may write in it: chmod 700 {self.folder}"
            )

    def _file(self, repository: Path) -> Path:
        name = hashlib.sha256(str(repository).encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self.folder / f"{name}.json"


def _changes(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    found = [f"{path} is gone" for path in before if path not in now]
    found += [f"{path} is new" for path in now if path not in before]
    found += [f"{path} changed" for path in now if path in before and before[path] != now[path]]
    return tuple(sorted(found))
