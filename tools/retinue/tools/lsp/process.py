"""Starts the process of a language server behind its guard."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from retinue.tools.errors import EnvironmentProblem, ToolError
from retinue.tools.ports import Confinement
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread

_ROOT = str(Path(__file__).parents[3])
_START = f"import sys; sys.path.append({_ROOT!r}); from retinue.tools.lsp.guard import main; main()"
_TAIL_BYTES = 4_096
_KILL_S = 5.0


class ServerProcess:
    """Its streams, the end of what it wrote as errors, and the way to end it with all that it started."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.reader: asyncio.StreamReader = process.stdout
        self.writer: asyncio.StreamWriter = process.stdin
        self._process = process
        self._tail = bytearray()
        self._draining = asyncio.create_task(self._drain())

    @property
    def complaint(self) -> str:
        """The last line of its errors."""
        lines = self._tail.decode("utf-8", "replace").strip().splitlines()
        return one_line(lines[-1], 300) if lines else ""

    async def ended(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._process.wait()
                return True
        return False

    async def end(self) -> None:
        """The whole tree is gone when this returns."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        if not await self.ended(_KILL_S):
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        await asyncio.wait([self._draining], timeout=_KILL_S)
        self._draining.cancel()

    async def _drain(self) -> None:
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_TAIL_BYTES):
            self._tail += data
            del self._tail[:-_TAIL_BYTES]


def guarded(argv: Sequence[str], owner: int) -> list[str]:
    """The command that runs `argv` behind a guard: all of it ends when it ends, and when the process `owner` does."""
    return [sys.executable, "-I", "-S", "-E", "-c", _START, str(owner), *argv]


async def start(
    argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], confinement: Confinement | None
) -> ServerProcess:
    """ToolError when there is no such program. The environment is exactly `env`."""
    if "/" in argv[0] and not argv[0].startswith("/"):
        raise ToolError(
            f"The language server's command {one_line(argv[0])} is relative: a workspace could put another program in "
            "its place. Write its name, or its whole path, in the settings."
        )
    program = shutil.which(argv[0], path=env.get("PATH", ""))
    if program is None:
        raise ToolError(
            f"There is no program {one_line(argv[0])} on the search path of tools: install the language server, or "
            "mend its command in the settings."
        )
    whole = [program, *argv[1:]]
    if confinement is not None:
        whole = await in_thread(confinement.wrap, whole)
    try:
        process = await asyncio.create_subprocess_exec(
            *guarded(whole, os.getpid()),
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            start_new_session=True,
            cwd=cwd,
            env=dict(env),
        )
    except OSError as error:
        raise EnvironmentProblem(f"No process could be started for a language server: {error.strerror}.") from None
    return ServerProcess(process)
