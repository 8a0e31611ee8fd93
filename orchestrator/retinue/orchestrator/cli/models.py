"""`model serve`: a scripted model behind the Messages API, for tests of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from retinue.orchestrator.cli import output


def serve(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="The script's YAML file.")],
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="Where to listen.")] = "127.0.0.1",
) -> None:
    """Serve a script as a Messages API, until Ctrl-C.

    Example:

    retinue model serve script.yaml --port 8080
    """
    from retinue.agents.model.serve import main

    main(script, output.say, port=port, host=host)


def register(app: typer.Typer) -> None:
    group = typer.Typer(name="model", callback=_model, no_args_is_help=True)
    group.command()(serve)
    app.add_typer(group)


def _model() -> None:
    """Scripted models.

    Example:

    retinue model serve script.yaml --port 8080
    """
