"""`logs`: what happened in a run, as lines or as records; to the end, or until the run is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import RunArgument, StateOption, next_command, runs_of
from retinue.tools.errors import StateError

if TYPE_CHECKING:
    from retinue.orchestrator.ledger.frames import Record
    from retinue.orchestrator.state.paths import RunDir

LOST_S = 20.0
"""A run that was live and whose lock is free for so long has lost its team; a restart takes a few seconds."""
LOOK_S = 0.1
_OVER = ("done", "failed", "stopped")


def logs(
    run: RunArgument,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only this agent, or `team`.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records, one JSON document a line.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Show what happened in a run, one line for each thing.

    Example:

    retinue logs demo ada -f
    """
    found = runs_of(state_dir).find(run)
    log = _Log(found, agent, state_dir, _print_json if as_json else _line_printer())
    log.take()
    if agent is not None:
        log.check_agent(agent)
    if follow and not log.over:
        log.follow()


class _Log:
    """One pass over a ledger that can go on."""

    def __init__(
        self, run: RunDir, only: str | None, state_dir: Path | None, printer: Callable[[Record], None]
    ) -> None:
        from retinue.orchestrator.ledger.reader import Tail

        self._run = run
        self._only = only
        self._state_dir = state_dir
        self._printer = printer
        self._tail = Tail(run.ledger)
        self._known = {"team"}
        self.over = False

    def take(self) -> None:
        for record in self._tail.poll():
            if record.kind == "phase_changed":
                self.over = record.body.get("phase") in _OVER
            about = _about(record)
            self._known |= about
            if self._only is None or self._only in about:
                self._printer(record)

    def check_agent(self, agent: str) -> None:
        if agent not in self._known:
            listed = ", ".join(sorted(name for name in self._known if "~" not in name))
            raise StateError(f"nobody in run {self._run.run_id} is named {agent!r}; there are: {listed}")

    def follow(self) -> None:
        live_at = time.monotonic() if self._run.is_live() else None
        while not self.over:
            now = time.monotonic()
            if self._run.is_live():
                live_at = now
            elif live_at is None or now - live_at > LOST_S:
                self.take()
                if not self.over:
                    again = next_command(f"resume {self._run.run_id}", self._state_dir)
                    output.note(f"run {self._run.run_id} has no process any more; go on with it: {again}")
                return
            time.sleep(LOOK_S)
            self.take()


def _about(record: Record) -> frozenset[str]:
    """Whom a record is about: who wrote it, whose mail it is, and of whom the team says something. Ids and names."""
    from retinue.agents.identity import name_of
    from retinue.orchestrator.ledger.history import mail_recipient

    boot = record.body.get("boot")
    told = (record.body.get("agent"), boot.get("agent") if isinstance(boot, dict) else None)
    ids = {record.writer, mail_recipient(record) or record.writer, *(agent for agent in told if isinstance(agent, str))}
    return frozenset(ids) | {name_of(agent) for agent in ids}


def _print_json(record: Record) -> None:
    output.write_json_line(
        {
            "at": output.iso(record.at),
            "writer": record.writer,
            "incarnation": record.incarnation,
            "n": record.n,
            "kind": record.kind,
            "body": dict(record.body),
        }
    )


def _line_printer() -> Callable[[Record], None]:
    from retinue.orchestrator.ledger.parse import parse_record
    from retinue.orchestrator.view.follow import show_line
    from retinue.orchestrator.view.lines import line_of

    console = output.console()

    def show(record: Record) -> None:
        typed = parse_record(record.kind, record.body)
        line = None if typed is None else line_of(record.writer, record.at, typed)
        if line is not None:
            show_line(console, line)

    return show


def register(app: typer.Typer) -> None:
    app.command()(logs)
