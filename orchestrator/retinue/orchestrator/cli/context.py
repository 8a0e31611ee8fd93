"""What commands that look at runs share: their options, how a run is found, and what its ledger tells."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from retinue.tools.errors import RetinueError

if TYPE_CHECKING:
    from retinue.orchestrator.state.paths import RunDir, StateDir
    from retinue.orchestrator.view.run_state import RunView

Standing = Literal["live", "stopped", "done", "failed", "lost"]
"""`lost`: the ledger says that it is not over, and no process holds its lock."""


def runs_of(state_dir: Path | None) -> StateDir:
    from retinue.orchestrator.state.paths import StateDir, state_root

    return StateDir(state_root(os.environ, state_dir))


def complete_run(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the shell: ids of runs, newest first. An unreadable state directory completes to nothing."""
    try:
        found = runs_of(ctx.params.get("state_dir")).all()
    except RetinueError:
        return []
    return [run.run_id for run in found if run.run_id.startswith(incomplete)]


StateOption = Annotated[
    Path | None, typer.Option("--state-dir", metavar="DIR", help="Where runs lie, if not in the usual place.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The run, or the beginning of its id.", autocompletion=complete_run)
]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The team's YAML file.")]
ModelOption = Annotated[
    str | None, typer.Option("--model", metavar="USE", help="Model of every agent: PROVIDER:NAME or script:FILE.")
]
SetOption = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a value of the spec: limits.usd=2.")
]


def next_command(command: str, state_dir: Path | None) -> str:
    """What a person can type next, as it stands: it looks where this command looked."""
    where = "" if state_dir is None else f" --state-dir {shlex.quote(str(state_dir))}"
    return f"retinue {command}{where}"


def standing_of(phase: str, *, live: bool) -> Standing:
    """What a person calls the state that a run is in."""
    match phase:
        case "done" | "failed" | "stopped":
            return phase
        case _:
            return "live" if live else "lost"


def view_of(run: RunDir) -> RunView:
    """Everything that the run's ledger tells so far. A run that never began has an empty one."""
    from retinue.agents.model.prices import cost_usd
    from retinue.orchestrator.ledger.parse import parse_record
    from retinue.orchestrator.ledger.reader import Tail
    from retinue.orchestrator.view.run_state import RunView

    view = RunView(cost_usd)
    with Tail(run.ledger) as tail:
        for record in tail.poll():
            typed = parse_record(record.kind, record.body)
            if typed is not None:
                view.apply(record.writer, record.at, typed)
    return view
