"""`clean`: takes runs away that are over, so that they can be brought back."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import StateOption, complete_run, next_command, runs_of
from retinue.tools.errors import Aborted, SpecError, StateError

if TYPE_CHECKING:
    from retinue.orchestrator.state.paths import RunDir, StateDir
    from retinue.orchestrator.workspaces.clean import Cleaned
    from retinue.orchestrator.workspaces.facts import DepotFacts

_AGE = re.compile(r"([0-9]{1,6})\s*(m|h|d|w)\Z")
_UNITS = {"m": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0}


def seconds_of_age(text: str) -> float:
    found = _AGE.match(text.strip())
    if found is None:
        raise SpecError(f"--older {text!r} is no age: write 90m, 12h, 7d or 2w")
    return int(found[1]) * _UNITS[found[2]]


def clean(
    runs: Annotated[
        list[str] | None, typer.Argument(metavar="[RUN]...", help="The runs.", autocompletion=complete_run)
    ] = None,
    older: Annotated[
        str | None, typer.Option("--older", metavar="AGE", help="All that were last active so long ago: 12h, 7d, 2w.")
    ] = None,
    undo: Annotated[str | None, typer.Option("--undo", metavar="RUN", help="Bring a run back from the trash.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    state_dir: StateOption = None,
) -> None:
    """Move runs that are not live to the trash. Their work stays whole, and `--undo` brings them back.

    Example:

    retinue clean --older 7d
    """
    state = runs_of(state_dir)
    if undo is not None:
        back = state.from_trash(undo)
        output.say(f"run {back.run_id} is back in {back.root}")
        return
    chosen = _chosen(state, runs or [], older)
    if not chosen:
        output.note("nothing to clean")
        return
    if older is not None and not yes:
        _ask(chosen)
    for run in chosen:
        _clean(state, run)
    output.note(f"bring it back: {next_command(f'clean --undo {chosen[0].run_id}', state_dir)}")


def _chosen(state: StateDir, named: list[str], older: str | None) -> list[RunDir]:
    if not named and older is None:
        raise SpecError("say which runs: `retinue clean RUN`, or `retinue clean --older 7d`; `retinue ps` lists them")
    chosen = {run.run_id: run for run in map(state.find, named)}
    for run in chosen.values():
        if run.is_live():
            raise StateError(f"run {run.run_id} is live: end it first with `retinue down {run.run_id}`")
    if older is not None:
        before = time.time() - seconds_of_age(older)
        chosen |= {run.run_id: run for run in state.all() if _last_active(run) < before and not run.is_live()}
    return list(chosen.values())


def _last_active(run: RunDir) -> float:
    """When the last record was written, or the run made."""
    for path in (run.ledger, run.control_key, run.root):
        try:
            return path.stat().st_mtime
        except FileNotFoundError:
            continue
    return time.time()


def _ask(chosen: list[RunDir]) -> None:
    output.note("These go to the trash:", *(f"  {run.run_id}" for run in chosen))
    if not sys.stdin.isatty():
        raise SpecError("nobody is there to be asked: pass --yes")
    if not typer.confirm("Go on?", default=True, err=True):
        raise Aborted("nothing was moved")


def _clean(state: StateDir, run: RunDir) -> None:
    from retinue.orchestrator.ledger.lock import RunLock

    facts = _depot_facts(run)
    if facts is not None and not Path(facts.user_objects).is_dir():
        # No git can read such a Depot, so it is moved as it is.
        output.say(f"{run.run_id}: moved to {state.to_trash(run).root}")
        output.say(f"  it borrows from {facts.user_root}, which is gone: it can be read again once that is back")
        return
    # Held to the end, so that nobody resumes what is being moved.
    with RunLock.acquire(run.lock):
        cleaned, kept_branch = asyncio.run(_move(state, run, facts))
    output.say(f"{run.run_id}: moved to {cleaned.trashed}")
    for removal in cleaned.removals:
        if removal.kept is not None:
            output.say(f"  kept the workspace of {removal.agent}: {removal.kept}")
    if kept_branch:
        output.say(f"  its result stays on the branch {kept_branch}")


def _depot_facts(run: RunDir) -> DepotFacts | None:
    """None for a run without a Depot."""
    from retinue.orchestrator.workspaces.facts import DepotFacts, RunPaths

    try:
        return DepotFacts.model_validate_json((RunPaths(run.root).own / "depot.json").read_text())
    except FileNotFoundError:
        return None


async def _move(state: StateDir, run: RunDir, facts: DepotFacts | None) -> tuple[Cleaned, str]:
    """Also answers the branch with the result, if the user still has it."""
    from retinue.orchestrator.workspaces import names
    from retinue.orchestrator.workspaces.clean import clean_run
    from retinue.orchestrator.workspaces.git import Git
    from retinue.orchestrator.workspaces.user_repo import UserRepo

    git, user = Git(), None
    if facts is not None:
        # A repository that became unusable keeps its pin; the run must not stay because of that.
        with contextlib.suppress(SpecError):
            user = await UserRepo.open(git, Path(facts.user_root))
    cleaned = await clean_run(git, run.root, state.trash, user)
    has_result = user is not None and await user.commit_of(names.result_ref(run.run_id)) is not None
    return cleaned, names.result_branch(run.run_id) if has_result else ""


def register(app: typer.Typer) -> None:
    app.command()(clean)
