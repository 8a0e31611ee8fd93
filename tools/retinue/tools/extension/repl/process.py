"""The process that runs an agent's code, under a keeper and in the sandbox like any command of the shell."""

from __future__ import annotations

import asyncio
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import JsonValue

from retinue.tools.base import ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.extension.repl.constants import MAX_MEMORY_KB, MAX_RAW_BYTES, START_S
from retinue.tools.extension.repl.framing import BadFrame, Decoder, Frame, Ready, encode
from retinue.tools.ports import RunningCommand, ShellOutcome, ShellRequest
from retinue.tools.shell.running import read_part
from retinue.tools.threads import in_thread

_CHUNK = 65_536
_MOST_WAITING = 32 * 1024 * 1024
_NOBODY_S = 0.02
_LAST_WORDS = 2_000


@dataclass(slots=True)
class _Pipe:
    """One end, which never blocks; closed once."""

    fd: int

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


class Process:
    """One Python process. What happens to it while nobody receives waits in its pipe."""

    def __init__(self, command: RunningCommand, incoming: _Pipe, outgoing: _Pipe) -> None:
        self._command = command
        self._incoming = incoming
        self._outgoing = outgoing
        self._decoder = Decoder()
        self._outbox = bytearray()
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Task[ShellOutcome] = asyncio.create_task(command.wait(), name="end of the REPL")
        self.ended.add_done_callback(_looked_at)

    @classmethod
    async def start(cls, ctx: ToolContext) -> Process:
        """ToolError when it does not come up: in words, with what it said."""
        folder = await in_thread(_folder, ctx)
        incoming = outgoing = None
        try:
            names = await in_thread(_pipes, folder)
            incoming = _opened(names[1], os.O_RDONLY)
            outgoing = _opened(names[0], os.O_RDWR)  # with a reader of our own, so that it can be opened at all
            output = await in_thread(_output_file, ctx)
            request = ShellRequest(
                command=_command_line(names),
                cwd=ctx.cwd if await in_thread(ctx.cwd.is_dir) else ctx.root,
                env=ctx.env,
                timeout_s=float("inf"),
                output_file=output,
                tag=f"{ctx.key or ctx.agent}/repl",
                max_file_bytes=MAX_RAW_BYTES,
            )
            process = cls(await ctx.shell.start(request), incoming, outgoing)
        except BaseException:
            for pipe in (incoming, outgoing):
                if pipe is not None:
                    pipe.close()
            raise
        else:
            await process._come_up()
            return process
        finally:
            await in_thread(_removed, folder)

    async def _come_up(self) -> None:
        try:
            async with asyncio.timeout(START_S):
                first = await self.receive()
        except TimeoutError:
            await self.close()
            raise ToolError(f"The Python process did not come up within {START_S:g} s.") from None
        except BaseException:
            await self.close()
            raise
        if not isinstance(first, Ready):
            said = await self.last_words()
            await self.close()
            raise ToolError(f"The Python process did not come up{f': {said}' if said else '.'}")

    @property
    def is_alive(self) -> bool:
        return not self.ended.done()

    def send(self, message: Mapping[str, JsonValue]) -> None:
        """It is on its way, and waits for nobody. BadFrame when the process has long read nothing."""
        if len(self._outbox) > _MOST_WAITING:
            raise BadFrame("The Python process does not read what it is told.")
        self._outbox += encode(message)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._outbox:
                del self._outbox[: os.write(self._outgoing.fd, self._outbox[:_CHUNK])]
        except BlockingIOError:
            self._loop.add_writer(self._outgoing.fd, self._flush)
        except OSError:  # it was closed meanwhile: who receives hears of it
            self._outbox.clear()
        else:
            self._loop.remove_writer(self._outgoing.fd)

    async def receive(self) -> Frame | None:
        """The next frame; None when the process has ended. BadFrame when it speaks nonsense."""
        while True:
            frame = self._decoder.next()
            if frame is not None:
                return frame
            if await self._read():
                continue
            if self.ended.done():
                return None

    async def _read(self) -> bool:
        """Whether something came; at the latest after a moment, when there is nobody at the other end."""
        try:
            data = os.read(self._incoming.fd, _CHUNK)
        except BlockingIOError:
            await self._readable()
            return not self.ended.done()
        self._decoder.feed(data)
        if not data:
            await asyncio.wait([self.ended], timeout=_NOBODY_S)
        return bool(data)

    async def _readable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._incoming.fd, lambda: ready.done() or ready.set_result(None))
        try:
            await asyncio.wait([ready, self.ended], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._loop.remove_reader(self._incoming.fd)

    def how_it_ended(self) -> str:
        if self.ended.cancelled() or self.ended.exception():
            return "it was killed"
        code = self.ended.result().exit_code
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    async def last_words(self) -> str:
        """What it said past its pipe, such as why the interpreter could not start."""
        await asyncio.wait([self.ended], timeout=1.0)
        try:
            return (await in_thread(read_part, self._command.output_file, _LAST_WORDS)).text.strip()
        except OSError:
            return ""

    async def close(self) -> None:
        """The process and all that it started are gone."""
        try:
            await self._command.stop()
        finally:
            self._outbox.clear()
            if self._outgoing.fd >= 0:
                self._loop.remove_writer(self._outgoing.fd)
            self._incoming.close()
            self._outgoing.close()
            self._command.output_file.unlink(missing_ok=True)


def _folder(ctx: ToolContext) -> Path:
    """For the pipes: where the code's own temp folder is, which is the same inside of the sandbox and outside."""
    place = Path(ctx.env.get("TMPDIR") or ctx.results_dir)
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="repl-", dir=place))
    except OSError as error:
        raise ToolError(f"No folder for the pipes of the REPL could be made in {place}: {error.strerror}.") from None


def _pipes(folder: Path) -> tuple[Path, Path]:
    names = (folder / "in", folder / "out")
    for name in names:
        os.mkfifo(name, 0o600)
    return names


def _opened(path: Path, flags: int) -> _Pipe:
    """Only what is a pipe: somebody else may write in that folder."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(fd).st_mode):
        os.close(fd)
        raise ToolError(f"{path} was exchanged for something else.")
    return _Pipe(fd)


def _removed(folder: Path) -> None:
    """Both ends are open, or there is nothing to open: nobody else shall find the pipes."""
    with suppress(OSError):
        for name in ("in", "out"):
            (folder / name).unlink(missing_ok=True)
        folder.rmdir()


def _output_file(ctx: ToolContext) -> Path:
    try:
        ctx.results_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ToolError(f"The folder for results, {ctx.results_dir}, cannot be made: {error.strerror}.") from None
    return ctx.results_dir / f"repl-{os.urandom(4).hex()}.output"


def _command_line(names: tuple[Path, Path]) -> str:
    python = os.path.realpath(sys.executable)
    words = [python, "-I", "-S", "-c", _program(), *map(str, names)]
    return f"ulimit -c 0; ulimit -v {MAX_MEMORY_KB}; exec {shlex.join(words)}"


@cache
def _program() -> str:
    """Its text, since the sandbox may hide where it lies."""
    return Path(__file__).with_name("inside.py").read_text("utf-8")


def _looked_at(ended: asyncio.Task[ShellOutcome]) -> None:
    if not ended.cancelled():
        ended.exception()
