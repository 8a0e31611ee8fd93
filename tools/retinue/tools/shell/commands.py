"""A command of an agent as the analysis sees it: by its text alone, or where it would run."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from retinue.tools.base import ToolContext
from retinue.tools.shell.analysis.case import Survey, survey
from retinue.tools.shell.analysis.display import display_class
from retinue.tools.shell.analysis.exit_codes import meaning
from retinue.tools.shell.analysis.model import DisplayClass, Request
from retinue.tools.shell.analysis.movement import is_move
from retinue.tools.shell.analysis.warnings import warnings_for
from retinue.tools.shell.disk import Disk

_NO_HOME = "/nonexistent"


@lru_cache(maxsize=256)
def by_text(command: str) -> Survey:
    """Where it runs, and which files it names, does not matter here: whether it only reads can be told without."""
    return survey(Request(command, "/", _NO_HOME))


def leaves_all_as_it_is(command: str) -> bool:
    """Whether it only reads, and does not move the agent to another folder either."""
    case = by_text(command)
    return case.only_reads and not any(map(is_move, case.reading.parts))


def in_place(command: str, ctx: ToolContext) -> Survey:
    """Where it would run, with the links of the disk followed now."""
    disk = Disk(ctx.root)
    request = _request(command, ctx, ctx.cwd if ctx.cwd.is_dir() else ctx.root)
    return survey(replace(request, real=disk.real, expand=disk.expand, below=disk.below, ours=disk.ours))


def without_disk(command: str, ctx: ToolContext) -> Survey:
    """Where it would run, if no link led anywhere: only to find what is forbidden when the disk does not answer."""
    return survey(_request(command, ctx, ctx.cwd))


def _request(command: str, ctx: ToolContext, cwd: Path) -> Request:
    home = ctx.env.get("HOME") or _NO_HOME
    return Request(command, str(cwd), home, allowed=tuple(map(str, ctx.extra_dirs)), root=str(ctx.root))


def exit_meaning(command: str, exit_code: int) -> str | None:
    """What a code other than 0 means where it is no failure."""
    reading = by_text(command).reading
    return None if reading.status == "broken" else meaning(reading.parts, exit_code)


def is_failure(command: str, exit_code: int) -> bool:
    """Whether a command that ended with this code failed."""
    return exit_code != 0 and exit_meaning(command, exit_code) is None


def display_class_of(command: str) -> DisplayClass | None:
    """What it is folded with when it is shown: searches, reads or lists."""
    case = by_text(command)
    return display_class(case.reading.parts) if case.is_simple else None


def may_destroy(command: str) -> bool:
    """Whether a person would be warned of what may be lost."""
    return bool(warnings_for(command))
