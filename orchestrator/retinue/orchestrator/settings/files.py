"""Reads what a repository says about agents: from its objects at the base, or from a folder. Never through a link."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from retinue.orchestrator.settings.places import FILES, FOLDERS, LOCAL, NOTES, OWN_NOTES
from retinue.orchestrator.workspaces.user_repo import Base, UserRepo
from retinue.tools.errors import SpecError

MOST_FILES = 2_000
MOST_BYTES = 2_000_000
"""Of one file: more is nothing that anybody wrote to be read."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


@dataclass(frozen=True, slots=True)
class Brought:
    """Contents by path, relative to the root. `links` were found where a file could be, and not followed.

    known  further paths that the base has, of those that were asked about
    """

    contents: Mapping[str, bytes]
    links: tuple[str, ...] = ()
    known: frozenset[str] = field(default=frozenset())


async def read_brought(user: UserRepo | None, base: Base | None, root: Path, more: Iterable[str] = ()) -> Brought:
    """What the launch starts from, and the checkout's own local files, which no commit has.

    more  paths of which it is only asked whether the base has them: the contents are read, too
    """
    local = [place.path for place in LOCAL] + [OWN_NOTES]
    if user is None or base is None or base.kind == "worktree":
        return await asyncio.to_thread(_from_folder, root, (*FOLDERS, *FILES, *NOTES, *local, *more), set(more))
    committed = await _from_objects(user, base.sha, (*FOLDERS, *FILES, *NOTES, *more))
    loose = await asyncio.to_thread(_from_folder, user.root, local, set[str]())
    contents = {**loose.contents, **committed.contents}
    return Brought(contents, (*committed.links, *loose.links), frozenset(more) & committed.contents.keys())


async def _from_objects(user: UserRepo, sha: str, paths: Iterable[str]) -> Brought:
    listed = await user.run(
        ["ls-tree", "-r", "-z", "--full-tree", sha, "--", *dict.fromkeys(paths)], purpose="looking for settings"
    )
    blobs: dict[str, str] = {}
    links: list[str] = []
    for line in listed.split():
        about, _, path = line.partition("\t")
        mode, kind, name = about.split(" ")
        if mode == "120000":
            links.append(path)
        elif kind == "blob":
            blobs[path] = name
    _refuse_many(len(blobs), user.root)
    read = await user.run(
        ["cat-file", "--batch", "--buffer"], purpose="reading settings", stdin="".join(f"{b}\n" for b in blobs.values())
    )
    contents = _split(read.stdout.encode("utf-8", "surrogateescape"), len(blobs))
    return Brought(dict(zip(blobs, contents, strict=True)), tuple(links))


def _split(data: bytes, count: int) -> Iterator[bytes]:
    """The answers of `cat-file --batch`, one by one: a line that tells the size, then the content and a line end."""
    at = 0
    for _ in range(count):
        end = data.index(b"\n", at)
        size = int(data[at:end].rsplit(b" ", 1)[1])
        yield data[end + 1 : end + 1 + size]
        at = end + size + 2


def _from_folder(root: Path, paths: Iterable[str], asked: set[str]) -> Brought:
    contents: dict[str, bytes] = {}
    links: list[str] = []
    for path in dict.fromkeys(paths):
        _read_into(root, path, contents, links)
        _refuse_many(len(contents), root)
    return Brought(contents, tuple(links), frozenset(asked & contents.keys()))


def _read_into(root: Path, path: str, contents: dict[str, bytes], links: list[str]) -> None:
    """One path, and all below it. What cannot be opened is not there; what is a link is named."""
    try:
        fd = _opened(root, path)
    except OSError:
        if _is_link(root, path):
            links.append(path)
        return
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISREG(mode):
            contents[path] = _content(fd, root / path)
            return
        names = sorted(os.listdir(fd)) if stat.S_ISDIR(mode) else []
    finally:
        os.close(fd)
    _refuse_many(len(contents) + len(names), root)
    for name in names:
        if name not in (".git", "worktrees"):
            _read_into(root, f"{path}/{name}", contents, links)


def _opened(root: Path, path: str) -> int:
    """Part by part from the root on, so that no part is a link."""
    fd = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in path.split("/"):
        try:
            inner = os.open(part, _OPEN, dir_fd=fd)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _content(fd: int, path: Path) -> bytes:
    with os.fdopen(os.dup(fd), "rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise SpecError(f"{path} is larger than {MOST_BYTES:,} bytes: nobody reads such settings")
    return data


def _is_link(root: Path, path: str) -> bool:
    """Whether a part of it is; where the root itself lies is the user's to choose."""
    parts = path.split("/")
    return any((root / "/".join(parts[: n + 1])).is_symlink() for n in range(len(parts)))


def _refuse_many(count: int, root: Path) -> None:
    if count > MOST_FILES:
        raise SpecError(f"{root} has more than {MOST_FILES:,} files under {' and '.join(FOLDERS)}: remove some")
