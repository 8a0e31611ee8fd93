"""`diff`, `land` and `clean`: what becomes of a run's work, and of the run."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import RunArgument, StateOption, runs_of
from retinue.tools.errors import StateError

if TYPE_CHECKING:
    from rich.text import Text

_STYLES = {"+": "green", "-": "red", "@": "cyan", "d": "bold", "i": "bold"}


def diff(
    run: RunArgument,
    agent: Annotated[
        str | None, typer.Argument(metavar="[AGENT]", help="What this agent has now, instead of the merged result.")
    ] = None,
    stat: Annotated[bool, typer.Option("--stat", help="Only which files changed, and how much.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Show what a run changed, against what it started from. Piped, it is a patch for `git apply`.

    Example:

    retinue diff demo --stat
    """
    from retinue.orchestrator.cli.changes import changes

    found = runs_of(state_dir).find(run)
    text = asyncio.run(changes(found.root, agent, stat=stat))
    if not text:
        output.note(f"{agent or 'run ' + found.run_id} has changed nothing yet")
    elif sys.stdout.isatty():
        output.show(*(_styled(line, plain=stat) for line in text.splitlines()))
    else:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))


def _styled(line: str, *, plain: bool) -> Text:
    from rich.text import Text

    from retinue.tools.text import for_terminal

    return Text(for_terminal(line), style="" if plain else _STYLES.get(line[:1], ""))


def land(run: RunArgument, state_dir: StateOption = None) -> None:
    """Take a run's result into your checkout.

    It is your own git that merges, with your hooks and your configuration.

    Example:

    retinue land demo
    """
    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.workspaces.git import Git
    from retinue.orchestrator.workspaces.landing import land_checkout
    from retinue.orchestrator.workspaces.names import result_branch
    from retinue.orchestrator.workspaces.user_repo import UserRepo

    files = RunFiles(runs_of(state_dir).find(run))
    plan = files.plan
    if files.dir.is_live():
        raise StateError(
            f"run {plan.run} is live, and its result still moves: wait for its end, or `retinue stop {plan.run}`; "
            f"what is there now is the branch {result_branch(plan.run)}"
        )
    if not plan.has_depot:
        raise StateError(f"run {plan.run} worked in {plan.repo} itself: there is nothing to land")

    async def landed() -> str:
        user = await UserRepo.open(Git(), Path(plan.repo))
        return await land_checkout(user, plan.run, base_kind=plan.base_kind, env=os.environ)

    output.say(*asyncio.run(landed()).splitlines())


def register(app: typer.Typer) -> None:
    app.command()(diff)
    app.command()(land)
