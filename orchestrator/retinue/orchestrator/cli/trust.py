"""`trust`: a person accepts what a repository brings, or takes that back."""

from __future__ import annotations

import asyncio
import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, StateOption

if TYPE_CHECKING:
    from retinue.orchestrator.trust.launch import Gathered
    from retinue.orchestrator.trust.store import TrustStore


def trust(
    path: Annotated[
        Path, typer.Argument(metavar="[PATH]", help="A folder of the repository, or a spec in it.")
    ] = Path(),
    base: Annotated[str, typer.Option(metavar="REF", help="What launches start from, if not HEAD.")] = "head",
    show: Annotated[bool, typer.Option("--show", help="Only list what it brings and whether it is trusted.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no longer.")] = False,
    state_dir: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Accept what a repository brings that runs, grants or routes.

    That is: settings, hooks, definitions of agents, skills, servers, and specs.
    What was accepted is exactly what is there now; when it changes, you are asked again.

    Example:

    retinue trust --show
    """
    from retinue.orchestrator.cli.trusting import brought_lines, store_of

    store = store_of(state_dir)
    found = _look(path, base, store)
    if revoke:
        was = store.revoke(found.repository)
        output.say(f"{found.repository}: {'trusted no longer' if was else 'it was not trusted'}")
        return
    if not show:
        store.record(found.repository, found.part, date.today().isoformat())
    state = found.standing.state if show else "trusted"
    brings = brought_lines(found, found.settings(trusted=False))
    if as_json:
        output.write_json(
            {
                "repository": str(found.repository),
                "state": state,
                "files": sorted(found.part),
                "brings": list(brings),
                "changes": list(found.standing.changes) if show else [],
            }
        )
        return
    output.say(
        f"{found.repository}: {state}",
        *(f"  {change}" for change in (found.standing.changes if show else ())),
        *(f"  {each}" for each in (brings or ("nothing that needs trust",))),
        *(f"  file {each}" for each in (sorted(found.part) if show else ())),
    )


def _look(path: Path, base: str, store: TrustStore) -> Gathered:
    """What the next launch there would find."""
    from retinue.orchestrator.spec.load import load_spec
    from retinue.orchestrator.trust.launch import SpecAt, gather
    from retinue.orchestrator.workspaces.git import Git
    from retinue.orchestrator.workspaces.user_repo import UserRepo
    from retinue.tools.errors import SpecError

    is_spec = path.is_file()
    folder = (path.parent if is_spec else path).resolve()
    loaded = load_spec(path, env=os.environ) if is_spec else None
    kinds = [loaded.file(a.definition) for a in loaded.spec.agents.values() if "/" in a.definition] if loaded else []
    spec = SpecAt(loaded.path, loaded.source_text, loaded.spec, tuple(kinds)) if loaded else None
    if loaded is not None:
        base = loaded.spec.repo.base

    async def look() -> Gathered:
        try:
            user = await UserRepo.open(Git(), folder)
        except SpecError:
            return await gather(None, None, folder, os.environ, store, spec=spec)
        return await gather(user, await user.resolve_base(base), folder, os.environ, store, spec=spec)

    return asyncio.run(look())


def register(app: typer.Typer) -> None:
    app.command()(trust)
