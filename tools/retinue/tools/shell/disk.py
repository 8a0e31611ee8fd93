"""What the analysis of a command asks of the disk: links, globs, folders, repositories. Bounded, and never raises."""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from retinue.tools.shell.analysis.model import Shell

MOST_FOUND = 1_000
"""What a glob may find; who writes one that finds more is asked."""
MOST_FILES = 20_000
"""How many files of a folder are held against rules."""
SECONDS = 1.0


class Disk:
    """The disk of this machine, for one command. What takes longer than `seconds` in all is not known."""

    def __init__(
        self,
        root: Path,
        shell: Shell = "bash",
        *,
        seconds: float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root = root
        self._shell = shell
        self._clock = clock
        self._until = clock() + seconds

    def real(self, path: str) -> str:
        """With all links followed; the root, which lies inside of nothing, for what cannot be followed."""
        if self._clock() > self._until:
            return "/"
        try:
            return os.path.realpath(path)
        except (OSError, ValueError):
            return "/"

    def expand(self, pattern: str) -> Iterator[str | None]:
        """What an absolute glob finds; None for more than is looked at."""
        try:
            found = islice(glob.iglob(pattern, recursive=self._shell == "zsh"), MOST_FOUND + 1)
            yield from self._bounded(found, MOST_FOUND)
        except (OSError, ValueError):
            yield None

    def below(self, folder: str) -> Iterator[str | None]:
        """The files in a folder and in all folders in it, repositories apart; None for more than is looked at."""
        yield from self._bounded(self._files(folder), MOST_FILES)

    def ours(self, folder: str) -> bool:
        """Whether git, run there, finds no other repository than the one of the workspace."""
        root = os.path.realpath(str(self._root))
        place: str = os.path.realpath(folder)
        while place != root:
            if os.path.lexists(os.path.join(place, ".git")):
                return not place.startswith(f"{root}/")
            if _may_be_bare(place) or place == "/":
                return False
            place = os.path.dirname(place)
        return not (_may_be_bare(root) and not os.path.lexists(os.path.join(root, ".git")))

    def _files(self, folder: str) -> Iterator[str]:
        try:
            for place, folders, names in os.walk(folder):
                folders[:] = [name for name in folders if name != ".git"]
                yield from (os.path.join(place, name) for name in names)
        except (OSError, ValueError):
            return

    def _bounded(self, paths: Iterator[str], most: int) -> Iterator[str | None]:
        for count, path in enumerate(paths):
            if count >= most or self._clock() > self._until:
                yield None
                return
            yield path


def _may_be_bare(folder: str) -> bool:
    """Git takes any folder with these three for a repository, and runs what its configuration says."""
    return all(os.path.lexists(os.path.join(folder, name)) for name in ("HEAD", "objects", "refs"))
