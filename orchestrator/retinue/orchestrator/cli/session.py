"""One run on a cluster, seen from a terminal: start its actors, watch the ledger, pass on Ctrl-C. Only a viewer."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from retinue.agents.model.prices import cost_usd
from retinue.orchestrator.cluster import own
from retinue.orchestrator.cluster.own import ClusterHandle
from retinue.orchestrator.ledger.reader import Tail
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.view.follow import LOOK_S, Follower, follow, read_along
from retinue.orchestrator.view.lines import Line
from retinue.orchestrator.view.run_state import RunView
from retinue.orchestrator.view.tables import summary
from retinue.orchestrator.workspaces.names import result_branch
from retinue.tools.errors import EnvironmentProblem, RetinueError, StateError

LOST_S = 20.0
"""A run without a team for so long has lost it; Ray restarts a team within a few seconds."""
GONE_S = 30.0
"""How long after the last record the run's processes may take to be gone."""


@dataclass(slots=True)
class Interrupts:
    """Ctrl-C once: drain to a state that can be resumed. Twice: stop hard."""

    first: asyncio.Event = field(default_factory=asyncio.Event)
    second: asyncio.Event = field(default_factory=asyncio.Event)

    def press(self) -> None:
        (self.second if self.first.is_set() else self.first).set()


@asynccontextmanager
async def interrupts() -> AsyncGenerator[Interrupts]:
    pressed = Interrupts()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, pressed.press)
    try:
        yield pressed
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def attach(cluster: ClusterHandle) -> None:
    """Connect this process. Ray reads its environment when it is imported, and its import is paid here only."""
    os.environ.update(cluster.env)
    from retinue.orchestrator.actors.cluster import connect

    connect(cluster.address)


def start_actors(files: RunFiles) -> object:
    """Make the run's actors on the cluster that this process is attached to, or find them."""
    from retinue.orchestrator.actors import driver

    return driver.spawn_run(files)


async def opened(team: object) -> None:
    """Wait until every agent has a process."""
    from retinue.orchestrator.actors import driver

    await driver.opened(team)


def phase_of(files: RunFiles) -> str:
    """How the ledger says that the run stands; empty while it has said nothing."""
    return Phase(files.dir.ledger).now()


@contextmanager
def starting(files: RunFiles) -> Generator[Callable[[], None]]:
    """One command at a time makes the actors of a run. Yields what lets the next one in; the end of this one does too.

    The lock of the run itself is its team's, and free until that has come up.
    """
    fd = os.open(files.dir.root / "starting", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(fd, fcntl.LOCK_UN)
    finally:
        os.close(fd)


async def has_left(files: RunFiles) -> None:
    """A team that is about to leave is waited for; one that works is not."""
    phase = Phase(files.dir.ledger)
    for _ in range(int(GONE_S / LOOK_S)):
        if not files.dir.is_live() or phase.now() in ("", "running"):
            return
        await asyncio.sleep(LOOK_S)


async def _has_begun(files: RunFiles, opening: asyncio.Task[None]) -> None:
    """Until the team holds the run's lock and has said that the run goes on. Before, a resumed run looks stopped."""
    phase = Phase(files.dir.ledger)
    while not (files.dir.is_live() and phase.now() in ("", "running")):
        done, _ = await asyncio.wait({opening}, timeout=LOOK_S)
        if done:
            return


class Phase:
    """What the ledger says now; empty while it has said nothing."""

    def __init__(self, ledger: Path) -> None:
        self._tail = Tail(ledger, kinds=("phase_changed",))
        self._phase = ""

    def now(self) -> str:
        for record in self._tail.poll():
            self._phase = str(record.body.get("phase", ""))
        return self._phase


async def watch(
    files: RunFiles, team: object, console: Console, notes: Console, flags: str, started: Callable[[], None]
) -> int:
    """Show the run until it is over, or until the second Ctrl-C. The exit code says how it ended.

    `started` is called once the team is at work.
    """
    view = RunView(cost_usd)
    follower = Follower(files.dir.ledger, view)

    async def show(stop: asyncio.Event) -> None:
        started()
        await follow(follower, console, stop=stop, over=_over(view, files))

    code = await _until_over(files, team, view, notes, show, flags)
    console.print()
    console.print(summary(view, state_path=str(files.dir.root), next_steps=next_steps(view, files, flags)))
    return code


async def watch_quietly(files: RunFiles, team: object, follower: Follower, notes: Console, flags: str) -> int:
    """The same without a screen: who follows shows what it wants."""

    async def show(stop: asyncio.Event) -> None:
        await read_along(follower, stop=stop, over=_over(follower.view, files), show=_nothing)

    return await _until_over(files, team, follower.view, notes, show, flags)


def _nothing(lines: list[Line]) -> None:
    del lines


async def _until_over(
    files: RunFiles,
    team: object,
    view: RunView,
    notes: Console,
    show: Callable[[asyncio.Event], Coroutine[None, None, None]],
    flags: str,
) -> int:
    from retinue.orchestrator.actors import driver

    stop = asyncio.Event()
    async with interrupts() as pressed:
        ordering = asyncio.create_task(_orders(files, pressed, notes))
        opening = asyncio.create_task(driver.opened(team))
        failing = asyncio.create_task(_unless_opened(opening, stop))
        try:
            await _has_begun(files, opening)
            await show(stop)
        finally:
            for task in (ordering, failing, opening):
                task.cancel()
            results = await asyncio.gather(opening, ordering, failing, return_exceptions=True)
    failure = results[0]
    if isinstance(failure, RetinueError) and not view.over:
        raise EnvironmentProblem(str(failure))
    if not view.over:
        raise EnvironmentProblem(lost_words(files, flags))
    await _gone(files)
    if pressed.first.is_set():
        return 130
    return 0 if view.team.phase == "done" else 1


def lost_words(files: RunFiles, flags: str) -> str:
    """Why a run that is not over is no longer live, and what to do."""
    run = files.dir.run_id
    try:
        own.recall_cluster(files.dir.root)
        gone = "its team's process"
    except StateError:
        gone = "its cluster"
    return f"run {run} is not over, but {gone} is gone; `retinue resume {run}{flags}` goes on with it"


def _over(view: RunView, files: RunFiles) -> Callable[[], bool]:
    """Over when the ledger says so, or when the run's lock is free for longer than a restart of the team takes."""
    last_live: float | None = None

    def over() -> bool:
        nonlocal last_live
        now = time.monotonic()
        if files.dir.is_live():
            last_live = now
        return view.over or (last_live is not None and now - last_live > LOST_S)

    return over


async def _unless_opened(opening: asyncio.Task[None], stop: asyncio.Event) -> None:
    """A team that cannot open writes nothing that would end the view; so its failure does."""
    with contextlib.suppress(asyncio.CancelledError):
        done, _ = await asyncio.wait({opening})
        if any(t.exception() is not None for t in done if not t.cancelled()):
            stop.set()


async def _orders(files: RunFiles, pressed: Interrupts, notes: Console) -> None:
    from retinue.orchestrator.actors import driver

    await pressed.first.wait()
    notes.print("stopping: every agent finishes its step. Ctrl-C again stops hard.")
    draining = asyncio.create_task(_order(driver.give_order(files, "drain"), notes))
    hard = asyncio.create_task(pressed.second.wait())
    await asyncio.wait({draining, hard}, return_when=asyncio.FIRST_COMPLETED)
    if hard.done():
        draining.cancel()
        notes.print("stopping hard")
        await _order(driver.give_order(files, "stop"), notes)
    hard.cancel()


async def _order(giving: Awaitable[object], notes: Console) -> None:
    try:
        await giving
    except RetinueError as error:
        notes.print(f"retinue: {error}")


async def _gone(files: RunFiles) -> None:
    """Wait for the run's lock: when it is free, nothing of the run is left but its directory."""
    for _ in range(int(GONE_S / LOOK_S)):
        if not files.dir.is_live():
            return
        await asyncio.sleep(LOOK_S)


def next_steps(view: RunView, files: RunFiles, flags: str) -> tuple[str, ...]:
    """What to type next; `flags` are those that find the run again."""
    run = files.dir.run_id
    steps = [f"retinue logs {run}{flags}", f"retinue diff {run}{flags}"]
    if not view.over or view.team.phase == "stopped":
        return (f"retinue resume {run}{flags}", *steps)
    if view.team.result == result_branch(run):
        return (f"retinue land {run}{flags}", *steps)
    return tuple(steps)
