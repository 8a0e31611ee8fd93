"""Sees to an agent's background commands: each has an end, the end is recorded, and the agent hears of it.

An agent is told of an end by one envelope from itself, whose id derives from the task: stored, processed and recovered
like any other mail, and needless once the result of a call has told the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.background.state import BackgroundTasks
from retinue.agents.journal import Journal
from retinue.agents.mail.envelopes import BackgroundEnd, Envelope, end_of
from retinue.agents.records import BackgroundEnded, BackgroundStarted
from retinue.tools.errors import Aborted, EnvironmentProblem, ToolError
from retinue.tools.ports import RunningCommand, ShellOutcome
from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.shell.background.words import TAIL_CHARS, last_lines
from retinue.tools.shell.running import read_part
from retinue.tools.threads import in_thread

CLOSE_S = 5.0
"""How long the ends of commands may take to be recorded when their agent ends; else they count as lost."""


@dataclass(slots=True)
class _Kept:
    """`stopped` says who ended it, and is empty while nobody has; `begun` is set when its start is recorded."""

    command: RunningCommand
    failed: Callable[[int], bool]
    begun: asyncio.Future[None]
    ended: asyncio.Event
    stopped: str = ""


class Background:
    """Implements `BackgroundPort` for one incarnation of an agent. `on_mail` is called when word of an end has come."""

    def __init__(self, agent: str, journal: Journal, folder: Path, after_s: float | None) -> None:
        self.after_s = after_s
        self.folder = folder
        self.on_mail: Callable[[], None] = _nobody
        self._agent = agent
        self._journal = journal
        self._kept: dict[str, _Kept] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._closing = False

    @property
    def _tasks(self) -> BackgroundTasks:
        return self._journal.conversation.background

    # --- for tools ---

    def output_file(self, task_id: str) -> Path:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ToolError(f"The folder for output, {self.folder}, cannot be made: {error.strerror}.") from None
        return self.folder / f"{task_id}.output"

    def all(self) -> tuple[BackgroundTask, ...]:
        return self._tasks.all()

    async def adopt(
        self, task: BackgroundTask, command: RunningCommand, failed: Callable[[int], bool]
    ) -> BackgroundTask:
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        kept = self._kept[task.id] = _Kept(command, failed, begun, asyncio.Event())
        watching = asyncio.create_task(self._watch(task, kept), name=f"background {task.id}")
        self._watching.add(watching)
        try:
            await asyncio.wait([begun, watching], return_when=asyncio.FIRST_COMPLETED)
            if not begun.done():
                watching.result()
            if self._closing:
                raise Aborted("The agent ends: nothing goes on in the background.")
        except BaseException:
            kept.stopped = kept.stopped or "since its call was called off"
            await command.stop()
            raise
        return task

    async def wait(self, task_id: str, timeout_s: float) -> BackgroundTask:
        kept = self._kept.get(task_id)
        if kept is not None:
            try:
                async with asyncio.timeout(timeout_s):
                    await kept.ended.wait()
            except TimeoutError:
                pass
        return self._tasks.get(task_id)

    async def stop(self, task_id: str) -> BackgroundTask:
        kept = self._kept.get(task_id)
        if kept is not None:
            kept.stopped = kept.stopped or "by TaskStop"
            await kept.command.stop()
            await kept.ended.wait()
        return self._tasks.get(task_id)

    # --- for the agent ---

    async def recover(self) -> None:
        """What ran in an earlier process is gone, and is not run again; ends that nobody was told of are told."""
        for task in self._tasks.running():
            size = await in_thread(_size, Path(task.output_file))
            lost = task.model_copy(update={"status": "lost", "output_bytes": size})
            await self._journal.commit(BackgroundEnded(task=lost))
        for task in self._tasks.untold(self._journal.conversation.mailbox.knows):
            await self._tell(task)

    async def close(self, reason: str) -> None:
        """End all of them. The agent's next process tells of it; what cannot be recorded in time counts as lost."""
        self._closing = True
        for kept in self._kept.values():
            kept.stopped = kept.stopped or reason
        await asyncio.gather(*(kept.command.stop() for kept in self._kept.values()))
        if self._watching:
            _, late = await asyncio.wait(self._watching, timeout=CLOSE_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._watching, return_exceptions=True)

    # --- one task ---

    async def _watch(self, task: BackgroundTask, kept: _Kept) -> None:
        try:
            await self._journal.commit(BackgroundStarted(task=task))
            kept.begun.set_result(None)
            ended = await self._end(task, kept)
            await self._journal.commit(BackgroundEnded(task=ended))
        finally:
            kept.ended.set()
            del self._kept[task.id]
        if not self._closing:
            await self._tell(ended)

    async def _end(self, task: BackgroundTask, kept: _Kept) -> BackgroundTask:
        try:
            return _after(task, await kept.command.wait(), kept)
        except (ToolError, EnvironmentProblem) as error:
            size = await in_thread(_size, Path(task.output_file))
            return task.model_copy(update={"status": "failed", "detail": str(error), "output_bytes": size})

    async def _tell(self, task: BackgroundTask) -> None:
        """Whatever the disk says: the word of an end is not lost while this process lives."""
        envelope = Envelope(
            id=end_of(task.id),
            sender=self._agent,
            recipient=self._agent,
            body=BackgroundEnd(task=task, tail=await in_thread(_tail, Path(task.output_file))),
            causation=task.call_id,
        )

        async def store() -> str:
            receipt = await self._journal.store(envelope)
            if receipt.outcome == "failed":
                raise EnvironmentProblem(receipt.text)
            return receipt.outcome

        if await self._journal.patiently(store) == "stored":
            self.on_mail()


def _nobody() -> None:
    """Nobody waits for mail yet."""


def _after(task: BackgroundTask, outcome: ShellOutcome, kept: _Kept) -> BackgroundTask:
    code = outcome.exit_code
    failed = kept.failed(code) or outcome.timed_out
    return task.model_copy(
        update={
            "status": "stopped" if kept.stopped else "failed" if failed else "completed",
            "exit_code": None if kept.stopped else code,
            "detail": kept.stopped or ("its time was up" if outcome.timed_out else ""),
            "output_bytes": outcome.output_bytes,
            "duration_s": outcome.duration_s,
        }
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _tail(path: Path) -> str:
    try:
        return last_lines(read_part(path, 2 * TAIL_CHARS).text)
    except OSError:
        return ""
