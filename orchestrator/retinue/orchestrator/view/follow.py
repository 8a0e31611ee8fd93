"""Watching a run from its ledger: a live screen on a terminal, plain lines when piped. Closing it changes nothing."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from textwrap import indent

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.text import Text

from retinue.orchestrator.ledger.parse import AnyRecord, parse_record
from retinue.orchestrator.ledger.reader import Tail
from retinue.orchestrator.view.lines import Line
from retinue.orchestrator.view.narrate import Narrator, Told
from retinue.orchestrator.view.run_state import RunView
from retinue.orchestrator.view.tables import agents_table, background_table, tasks_table
from retinue.tools.render.plain import as_text
from retinue.tools.render.terminal import renderable

_TONE = {"plain": "", "good": "green", "bad": "red", "note": "dim"}
LOOK_S = 0.1
"""How often a viewer looks at the ledger's length: as often as text may change, and a stat costs microseconds."""
LOG_LINES = 8


class Follower:
    """Reads a ledger from where it stopped, folds it into the view, and hands out new lines."""

    def __init__(self, ledger: Path, view: RunView, on_record: Callable[[str, AnyRecord], None] | None = None) -> None:
        self.view = view
        self._narrator = Narrator()
        self._tail = Tail(ledger)
        self._on_record = on_record

    def take(self) -> list[Line]:
        lines: list[Line] = []
        for frame in self._tail.poll():
            record = parse_record(frame.kind, frame.body)
            if record is None:
                continue
            self.view.apply(frame.writer, frame.at, record)
            if self._on_record is not None:
                self._on_record(frame.writer, record)
            lines += [told.line for told in self._narrator.take(frame.writer, frame.at, record)]
        return [*lines, *(told.line for told in self._narrator.rest())]


def show_line(console: Console, line: Line) -> None:
    clock = time.strftime("%H:%M:%S", time.localtime(line.at))
    text = Text(f"{clock} {line.who:<12} ", style="dim")
    text.append(line.text, style=_TONE[line.tone])
    console.print(text, soft_wrap=True)


def show_full(console: Console, told: Told) -> None:
    """The line, and below it what it is about, as its tool shows it."""
    show_line(console, told.line)
    if not told.blocks:
        return
    if console.is_terminal:
        console.print(Padding(renderable(told.blocks), (0, 0, 0, 2)))
    else:
        console.print(Text(indent(as_text(told.blocks), "  ")), soft_wrap=True)


def screen(view: RunView, log: deque[Line]) -> RenderableType:
    """Everything that is known, on one screen of 80 columns."""
    tail = Text()
    for line in log:
        tail.append(f"{line.who:<12} ", style="dim")
        tail.append(f"{line.text[:200]}\n", style=_TONE[line.tone])
    done = sum(t.status in ("merged", "done") for t in view.tasks())
    head = Text(f"{view.opened.run if view.opened else '…'}  {view.team.phase}  ", style="bold")
    head.append(f"{done}/{len(view.tasks())} tasks  {view.usage().total} tokens  {view.usd():.2f} USD", style="")
    background = background_table(view)
    running = () if background is None else (background, Text())
    return Group(head, agents_table(view), Text(), *running, tasks_table(view.tasks()), Text(), tail)


async def follow(follower: Follower, console: Console, *, stop: asyncio.Event, over: Callable[[], bool]) -> None:
    """Show until `over()` holds after everything that was written has been shown, or `stop` is set."""
    if console.is_terminal:
        await _follow_live(follower, console, stop, over)
        return
    await read_along(follower, stop=stop, over=over, show=lambda lines: [show_line(console, line) for line in lines])


async def _follow_live(follower: Follower, console: Console, stop: asyncio.Event, over: Callable[[], bool]) -> None:
    log: deque[Line] = deque(maxlen=LOG_LINES)

    with Live(console=console, auto_refresh=False, transient=True) as live:

        def show(lines: list[Line]) -> None:
            log.extend(lines)
            live.update(screen(follower.view, log), refresh=True)

        await read_along(follower, stop=stop, over=over, show=show)


async def read_along(
    follower: Follower, *, stop: asyncio.Event, over: Callable[[], bool], show: Callable[[list[Line]], object]
) -> None:
    """Hand every batch of new lines to `show` until `over()` holds and all was shown, or `stop` is set."""
    while True:
        ending = over() or stop.is_set()
        lines = follower.take()
        if lines:
            show(lines)
        if ending:
            return
        try:
            async with asyncio.timeout(LOOK_S):
                await stop.wait()
        except TimeoutError:
            pass
