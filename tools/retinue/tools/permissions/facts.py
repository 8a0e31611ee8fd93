"""What the permission chain must know of a call and only the disk can tell: where its path really leads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Literal

from retinue.tools.base import AnyTool, Decision, NameSubject, PathSubject, ToolContext, ToolInput
from retinue.tools.permissions.protected import protected_part
from retinue.tools.permissions.rules import ResolvedPath, RuleBook

MAX_ENTRIES = 20_000
"""How many files are looked at to find one that may not be read."""

Touches = Literal["read", "write", "network", "other"]


@dataclass(frozen=True, slots=True)
class Facts:
    """The same for every set of rights. `path` is None for a call that is not about a path."""

    subject: PathSubject | NameSubject
    touches: Touches
    read_only: bool
    path: ResolvedPath | None = None
    tool_says: Decision | None = None
    forced_ask: str | None = None
    outside: bool = False
    protected: str | None = None


async def facts_of(
    tool: AnyTool, args: ToolInput, subject: PathSubject | NameSubject, ctx: ToolContext, forced_ask: str | None
) -> Facts:
    """Links are followed now: a rule that allows must fit the name and the place that it leads to."""
    says = await tool.check_permissions(args, ctx)
    read_only = tool.is_read_only(args)
    if not isinstance(subject, PathSubject):
        return Facts(
            subject, "network" if subject.outward else "other", read_only, tool_says=says, forced_ask=forced_ask
        )
    path = resolved(subject.path, reading=not subject.write)
    homes = (ctx.root, *ctx.extra_dirs) if subject.write else (ctx.root, *ctx.extra_dirs, ctx.results_dir)
    return Facts(
        subject,
        "write" if subject.write else "read",
        read_only,
        path=path,
        tool_says=says,
        forced_ask=forced_ask,
        outside=not any(_is_below(path.real, _real(home)) for home in homes),
        protected=_protected(path, ctx.root) if subject.write else None,
    )


def resolved(path: Path, *, reading: bool) -> ResolvedPath:
    """`..` goes first, as the file tools do; what is left is followed through its links."""
    named = os.path.abspath(path)
    real = os.path.realpath(named)
    return ResolvedPath(Path(named), Path(real), reading and os.path.isdir(real))


@lru_cache(maxsize=64)
def _real(folder: Path) -> Path:
    """Of the few folders that an agent may act in. One that is later swapped for a link keeps its first place."""
    return Path(os.path.realpath(folder))


def _is_below(path: Path, folder: Path) -> bool:
    text, prefix = str(path), str(folder)
    return text == prefix or text.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def hidden_inside(book: RuleBook, tool: AnyTool, folder: Path) -> Decision | None:
    """The first file under a folder that a rule keeps from this tool. Looks at the disk; denies what is too much."""
    if not book.hides_files(tool):
        return None
    seen = 0
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            seen += 1
            path = Path(place, name)
            subject, resolved_path = PathSubject(path, write=False), ResolvedPath(path, path)
            rule = book.first("deny", tool, subject, resolved_path) or book.first("ask", tool, subject, resolved_path)
            if rule is not None:
                why = f"it holds {path}, which the {rule.source} rule {rule} keeps from you; name a place without it"
                return Decision("deny", why, f"{rule.source} rule {rule}")
            if seen >= MAX_ENTRIES:
                return Decision("deny", "it holds too many files to look through; name a smaller place", "rules")
    return None


def _protected(path: ResolvedPath, root: Path) -> str | None:
    """By either name. Inside of the workspace only what is below its root counts."""
    for each in (path.named, path.real):
        if part := protected_part(_below(each, root)):
            return part
    return None


def _below(path: Path, root: Path) -> PurePath:
    for base in (root, _real(root)):
        if _is_below(path, base):
            return path.relative_to(base)
    return path
