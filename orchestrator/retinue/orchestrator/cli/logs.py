"""`logs`: what happened in a run, as lines or as records; to the end, or until the run is over."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import RunArgument, StateOption, next_command, runs_of
from retinue.tools.errors import StateError

if TYPE_CHECKING:
    from retinue.orchestrator.ledger.frames import Record
    from retinue.orchestrator.state.paths import RunDir
    from retinue.orchestrator.view.narrate import Told

LOST_S = 20.0
"""A run that was live and whose lock is free for so long has lost its team; a restart takes a few seconds."""
LOOK_S = 0.1
_OVER = ("done", "failed", "stopped")


def logs(
    run: RunArgument,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only this agent, or `team`.")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Show calls with what they found and changed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the records, one JSON document a line.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Show what happened in a run, one line for each thing.

    Example:

    retinue logs demo ada -f
    """
    found = runs_of(state_dir).find(run)
    log = _Log(found, agent, state_dir, _Documents() if as_json else _Lines(full=full))
    log.take()
    if agent is not None:
        log.check_agent(agent)
    if follow and not log.over:
        log.follow()


class _Log:
    """One pass over a ledger that can go on."""

    def __init__(self, run: RunDir, only: str | None, state_dir: Path | None, printer: _Printer) -> None:
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
                self._printer.show(record)
        self._printer.rest()

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


class _Printer(Protocol):
    def show(self, record: Record) -> None: ...
    def rest(self) -> None:
        """Nothing more has come for now."""
        ...


class _Documents:
    def show(self, record: Record) -> None:
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

    def rest(self) -> None:
        return None


class _Lines:
    def __init__(self, *, full: bool) -> None:
        from retinue.orchestrator.view.narrate import Narrator

        self._full = full
        self._narrator = Narrator()
        self._console = output.console()

    def show(self, record: Record) -> None:
        from retinue.orchestrator.ledger.parse import parse_record

        typed = parse_record(record.kind, record.body)
        if typed is not None:
            self._print(self._narrator.take(record.writer, record.at, typed))

    def rest(self) -> None:
        self._print(self._narrator.rest())

    def _print(self, told: Iterable[Told]) -> None:
        from retinue.orchestrator.view.follow import show_full, show_line

        for each in told:
            if self._full:
                show_full(self._console, each)
            else:
                show_line(self._console, each.line)


def register(app: typer.Typer) -> None:
    app.command()(logs)
