"""`trust`: a person accepts what a repository brings, or takes that back."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, StateOption


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
    from retinue.orchestrator.cli.trusting import brought_lines, look, store_of

    store = store_of(state_dir)
    found = look(path, base, store)
    if revoke:
        was = store.revoke(found.repository)
        output.say(f"{found.repository}: {'trusted no longer' if was else 'it was not trusted'}")
        return
    if not show:
        store.record(found.repository, found.part, date.today().isoformat())
    state = found.standing.state if show else "trusted"
    brings = brought_lines(found, found.settings(trusted=False))
    if as_json:
        changes: list[JsonValue] = list(found.standing.changes) if show else []
        output.write_json(
            {
                "repository": str(found.repository),
                "state": state,
                "files": [*sorted(found.part)],
                "brings": [*brings],
                "changes": changes,
            }
        )
        return
    output.say(
        f"{found.repository}: {state}",
        *(f"  {change}" for change in (found.standing.changes if show else ())),
        *(f"  {each}" for each in (brings or ("nothing that needs trust",))),
        *(f"  file {each}" for each in (sorted(found.part) if show else ())),
    )


def register(app: typer.Typer) -> None:
    app.command()(trust)
