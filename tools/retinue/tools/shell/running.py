"""One command under its keeper, from its start until its whole process tree is gone."""

from __future__ import annotations

import asyncio
import marshal
import os
import time
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from retinue.tools.errors import ToolError
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.output import Shown, shown, window_bytes
from retinue.tools.shell.protocol import HAND_OVER, HANDED_OVER, KeeperReport
from retinue.tools.shell.reap import reap
from retinue.tools.text import TextStream
from retinue.tools.threads import in_thread

_FOLLOW_S = 0.1
_FOLLOW_BYTES = 256 * 1024
_CHUNK = 65_536


class KeptCommand:
    """Implements `RunningCommand`."""

    def __init__(
        self,
        request: ShellRequest,
        process: Process,
        message: bytes,
        tag: str,
        cwd_file: Path,
        on_output: Callable[[str], None] | None,
        max_chars: int,
    ) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.output_file = request.output_file
        self._request = request
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._tag = tag
        self._cwd_file = cwd_file
        self._max_chars = max_chars
        self._started = time.monotonic()
        self._handed_over = asyncio.get_running_loop().create_future()
        self._stdin.write(message)
        self._keeping = asyncio.ensure_future(self._keep())
        self._following = asyncio.ensure_future(self._follow(on_output)) if on_output else None
        self._ending = asyncio.ensure_future(self._end())
        self._ending.add_done_callback(_looked_at)

    async def wait(self) -> ShellOutcome:
        return await asyncio.shield(self._ending)

    async def stop(self) -> None:
        """Also when the caller is cancelled meanwhile."""
        self._stdin.close()
        cancelled = False
        while not self._ending.done():
            try:
                await asyncio.wait([self._ending])
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    async def hand_over(self, output_file: Path) -> bool:
        if self._keeping.done():
            return False
        self._move_output(output_file)
        self._stdin.write(HAND_OVER)
        await asyncio.wait([self._handed_over, self._keeping], return_when=asyncio.FIRST_COMPLETED)
        if not self._handed_over.done():
            return False
        self._unfollow()
        return True

    def _move_output(self, target: Path) -> None:
        """At once, so that nobody looks for the file in between. Where it cannot be moved to, it stays."""
        if target != self.output_file:
            with suppress(OSError):
                os.replace(self.output_file, target)
                self.output_file = target

    async def _keep(self) -> KeeperReport | None:
        """The keeper's report once it is gone; None when it went without one."""
        report = b""
        while data := await self._stdout.read(_CHUNK):
            report += data
            if report.startswith(HANDED_OVER) and not self._handed_over.done():
                report = report.removeprefix(HANDED_OVER)
                self._handed_over.set_result(None)
        await self._process.wait()
        self._stdin.close()
        try:
            return marshal.loads(report) if report else None
        except (EOFError, ValueError):
            return None

    async def _end(self) -> ShellOutcome:
        report = None
        try:
            report = await asyncio.shield(self._keeping)
        finally:
            self._unfollow()
            if report is None:
                await in_thread(reap, self._tag)
                self._cwd_file.unlink(missing_ok=True)
        if report is None:
            raise ToolError("The command's keeper was killed, and the command with it: how far it came is unknown.")
        if report["failure"]:
            raise ToolError(f"The command was stopped, since {report['failure']}.")
        part = await in_thread(read_part, self.output_file, self._max_chars)
        return _outcome(self._request, report, part, time.monotonic() - self._started)

    async def _follow(self, on_output: Callable[[str], None]) -> None:
        """Pass on what the command prints, while it prints."""
        stream = TextStream()
        position = 0
        while True:
            await asyncio.sleep(_FOLLOW_S)
            data = await in_thread(_read_from, self.output_file, position)
            position += len(data)
            text = stream.feed(data)
            if text:
                on_output(text)

    def _unfollow(self) -> None:
        if self._following is not None:
            self._following.cancel()


def _looked_at(ending: asyncio.Future[ShellOutcome]) -> None:
    """Nobody has to wait for a command that was stopped."""
    if not ending.cancelled():
        ending.exception()


def _read_from(path: Path, position: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(position)
            return file.read(_FOLLOW_BYTES)
    except FileNotFoundError:
        return b""


def read_part(path: Path, max_chars: int) -> Shown:
    """What is shown of an output file, also of one that still grows."""
    size = window_bytes(max_chars)
    with path.open("rb") as file:
        total = os.fstat(file.fileno()).st_size
        head = file.read(size)
        if total <= 2 * size:
            return shown(head + file.read(), b"", total, max_chars)
        file.seek(-size, os.SEEK_END)
        return shown(head, file.read(), total, max_chars)


def _outcome(request: ShellRequest, report: KeeperReport, part: Shown, seconds: float) -> ShellOutcome:
    notes = {
        "too much output": f"[stopped: more than {request.max_file_bytes:,} bytes of output]",
        "called off": "[stopped from outside]",
    }
    note = notes.get(report["reason"], "")
    return ShellOutcome(
        exit_code=report["exit"],
        output=f"{part.text.rstrip()}\n{note}\n" if note else part.text,
        output_bytes=report["bytes"],
        truncated=part.truncated,
        timed_out=report["reason"] == "timeout",
        duration_s=seconds,
        cwd=Path(report["cwd"]) if report["cwd"] else None,
        killed=report["killed"],
    )
