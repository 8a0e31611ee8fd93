"""`send`, `stop` and `down`: what the human tells a running team. Each needs the key in the run's directory."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli.context import RunArgument, StateOption, next_command, view_of
from retinue.tools.errors import StateError
from retinue.tools.text import one_line

if TYPE_CHECKING:
    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.state.paths import RunDir


def _reach(run: str, state_dir: Path | None) -> RunFiles:
    """Attach to the cluster of a live run."""
    from retinue.orchestrator.cli.session import attach
    from retinue.orchestrator.cli.up import place_of
    from retinue.orchestrator.cluster import own
    from retinue.orchestrator.run_files import RunFiles

    files = RunFiles(place_of(state_dir).state.find(run))
    if not files.dir.is_live():
        raise StateError(_not_live(files.dir, state_dir))
    attach(own.recall_cluster(files.dir.root))
    return files


def _not_live(run: RunDir, state_dir: Path | None) -> str:
    team = view_of(run).team
    if team.phase in ("done", "failed"):
        how = f"{team.phase}: {one_line(team.detail, 300)}" if team.detail else team.phase
        return f"run {run.run_id} has ended ({how}); `{next_command(f'logs {run.run_id}', state_dir)}` tells more"
    return f"run {run.run_id} is not live; `{next_command(f'resume {run.run_id}', state_dir)}` goes on with it"


def send(
    run: RunArgument,
    agent: Annotated[str, typer.Argument(help="Name of an agent, a role (lead, teammate), or * for all.")],
    text: Annotated[str, typer.Argument(help="What to say.")],
    state_dir: StateOption = None,
) -> None:
    """Send mail to an agent; it reads it between two steps, or wakes up for it.

    Example:

    retinue send demo ada "Look at the rounding in split() as well"
    """
    files = _reach(run, state_dir)
    from retinue.orchestrator.actors import driver

    receipt = asyncio.run(driver.send_mail(files, f"human/{secrets.token_hex(8)}", agent, text))
    if receipt.outcome not in ("stored", "duplicate"):
        raise StateError(receipt.text or receipt.outcome)
    typer.echo(f"stored for {receipt.text or agent}")


def stop(
    run: RunArgument,
    agent: Annotated[str | None, typer.Argument(help="One agent only; it ends for good, its tasks are free.")] = None,
    now: Annotated[bool, typer.Option("--now", help="Do not let steps finish.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Stop a run so that it can be resumed, or end one of its agents.

    Example:

    retinue stop demo
    """
    files = _reach(run, state_dir)
    from retinue.orchestrator.actors import driver

    what = "stop_agent" if agent else "stop" if now else "drain"
    done = asyncio.run(driver.give_order(files, what, agent or ""))
    for line in done.lines:
        typer.echo(line)
    if not agent:
        typer.echo(f"stopped; go on with: {next_command(f'resume {files.plan.run}', state_dir)}")


def down(run: RunArgument, state_dir: StateOption = None) -> None:
    """End every process of a run, whatever state it is in. Its directory and work stay.

    Example:

    retinue down demo
    """
    from retinue.orchestrator.cli.session import attach
    from retinue.orchestrator.cli.up import place_of
    from retinue.orchestrator.cluster import own
    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.runtime.port import Unreachable
    from retinue.tools.shell.reap import reap

    files = RunFiles(place_of(state_dir).state.find(run))
    killed = 0
    if files.dir.is_live():
        attach(own.recall_cluster(files.dir.root))
        from retinue.orchestrator.actors import driver

        try:
            asyncio.run(driver.give_order(files, "stop"))
        except (StateError, Unreachable) as error:
            typer.echo(f"the team did not answer ({error}); ending its processes", err=True)
        killed = driver.kill_run(files.plan.run)
    killed += reap(f"{files.plan.run}/")
    typer.echo(f"run {files.plan.run} is down" + (f"; {killed} processes had to be killed" if killed else ""))


def register(app: typer.Typer) -> None:
    app.command()(send)
    app.command()(stop)
    app.command()(down)
