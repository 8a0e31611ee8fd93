"""Where a path that the model wrote leads: made absolute, followed through links, kept out of repositories' insides."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.base import Decision, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.text import is_unicode

_SUGGESTION_POOL = 5_000
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_KERNEL = ("/proc", "/sys")


@dataclass(frozen=True, slots=True)
class Place:
    """`named` is what rules are compared with, absolute; `real` is what is opened, with every link followed."""

    named: Path
    real: Path


def absolute(text: str, ctx: ToolContext) -> Path:
    """Absolute and without `..`; nothing on disk is asked. ToolError for a text that can be no path."""
    if not text:
        raise ToolError("The path is empty: give an absolute path, or one relative to the working directory.")
    if "\0" in text or not is_unicode(text):
        raise ToolError("The path contains a null byte, or half of a surrogate pair.")
    return Path(os.path.abspath(ctx.cwd / text))


def observable(text: str, ctx: ToolContext) -> str:
    """The path as observers see it: absolute, where it can be one at all."""
    try:
        return str(absolute(text, ctx))
    except ToolError:
        return text


def locate(text: str, ctx: ToolContext) -> Place:
    """ToolError when the path, or what its links lead to, lies inside a `.git`, or is no file of a disk."""
    named = absolute(text, ctx)
    real = Path(os.path.realpath(named))
    for path in (named, real):
        refuse_git(path)
        refuse_kernel(path)
    return Place(named, real)


def refuse_git(path: Path) -> None:
    """Only git changes the inside of a repository: a planted hook or filter would run with the rights of others."""
    if any(part.casefold() == ".git" for part in path.parts):
        raise ToolError(f"{path}: files inside .git are not open to file tools; use git commands in the shell.")


def refuse_kernel(path: Path) -> None:
    """What looks like files there are the insides of processes and devices: secrets, and reads that never end."""
    if any(path.is_relative_to(folder) for folder in _KERNEL):
        raise ToolError(f"{path} belongs to the kernel: it is not open to file tools.")


def is_inside(path: Path, ctx: ToolContext) -> bool:
    """Whether a resolved path lies in the workspace, in an extra directory, or among this run's own results."""
    return any(path.is_relative_to(os.path.realpath(home)) for home in (ctx.root, *ctx.extra_dirs))


def is_result(path: Path, ctx: ToolContext) -> bool:
    """Whether a resolved path is a result that was put aside, or output of a background task; they may be read."""
    homes = (ctx.results_dir, ctx.background.folder) if ctx.background is not None else (ctx.results_dir,)
    return any(path.is_relative_to(os.path.realpath(home)) for home in homes)


def outside(text: str, ctx: ToolContext, *, write: bool) -> Decision | None:
    """The tool's own word about a path: outside of the workspace it is asked for, never taken for granted."""
    try:
        place = locate(text, ctx)
    except ToolError as error:
        return Decision("deny", str(error), "path")
    if is_inside(place.real, ctx) or (not write and is_result(place.real, ctx)):
        return None
    return Decision("ask", f"{place.named} is outside of the workspace {ctx.root}", "workspace boundary")


def shown(path: Path, ctx: ToolContext) -> str:
    """Relative to the working directory where that is shorter to read, else absolute."""
    return str(path.relative_to(ctx.cwd)) if path.is_relative_to(ctx.cwd) and path != ctx.cwd else str(path)


def on_one_line(name: str) -> str:
    """A file's name as it can be listed: what would break the line, or is no character, is written otherwise."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", name.encode("utf-8", "replace").decode())


def missing(place: Place, ctx: ToolContext) -> ToolError:
    """Names the file that is not there and, inside the workspace, one with a similar name."""
    text = f"File does not exist: {place.named}. The working directory is {ctx.cwd}."
    similar = _similar(place, ctx) if is_inside(place.real, ctx) else None
    return ToolError(f"{text} Did you mean {similar}?" if similar else text)


def _similar(place: Place, ctx: ToolContext) -> str | None:
    parent = place.real.parent
    try:
        names = sorted(os.listdir(parent))[:_SUGGESTION_POOL]
    except OSError:
        return _elsewhere(place, ctx)
    import difflib  # here, because a model seldom misses a file

    same_stem = [name for name in names if Path(name).stem == place.real.stem and name != ".git"]
    close = same_stem or difflib.get_close_matches(place.real.name, names, n=1, cutoff=0.6)
    return str(place.named.parent / close[0]) if close else _elsewhere(place, ctx)


def _elsewhere(place: Place, ctx: ToolContext) -> str | None:
    """The same path with leading folders left out: models often repeat the name of the workspace's own folder."""
    try:
        parts = place.named.relative_to(ctx.cwd).parts
    except ValueError:
        return None
    for start in range(1, len(parts)):
        candidate = ctx.cwd.joinpath(*parts[start:])
        if candidate.exists() and is_inside(Path(os.path.realpath(candidate)), ctx):
            return str(candidate)
    return None
