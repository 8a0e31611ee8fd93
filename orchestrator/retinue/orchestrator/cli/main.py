"""The command line: which commands there are, and what the exit code is.

0 done · 1 the team failed · 2 wrong usage or spec · 3 environment · 130 interrupted · 141 the reader of a pipe left

Modules of commands import only typer at their top; what a command needs it imports when it runs, so that `--help` and
completion answer at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.core import TyperGroup

from retinue.orchestrator.cli import (
    cleaning,
    clusters,
    control,
    doctor,
    explain,
    logs,
    models,
    planning,
    results,
    run,
    runs,
    specs,
    tools,
    trust,
    up,
    why,
)
from retinue.orchestrator.cli.sections import Sections, keep_examples_whole
from retinue.tools.errors import RetinueError
from retinue.tools.text import for_terminal

INTERRUPTED = 130
READER_LEFT = 141
_NEWCOMER = """\
retinue runs a team of coding agents, each in a git worktree of its own, and merges their work.

Start here, inside a git repository:

  retinue doctor         is everything there that it needs?
  retinue init           write a team to team.yaml, and make it yours
  retinue up team.yaml   start the team and watch it work

All commands: retinue --help
"""


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"retinue {version('retinue')}")
        raise typer.Exit


def _root(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Run teams of coding agents from one YAML spec, each in its own git worktree, up to merged work.

    Example:

    retinue up team.yaml
    """
    del version
    if ctx.invoked_subcommand is None:
        typer.echo(_NEWCOMER, nl=False)


def make_app() -> typer.Typer:
    """All commands, in no order that matters: `sections` says how `--help` shows them."""
    app = typer.Typer(
        name="retinue",
        cls=Sections,
        callback=_root,
        invoke_without_command=True,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # Commands that reach into a cluster.
    up.register(app)
    run.register(app)
    control.register(app)
    # Commands that read what is on disk.
    for module in (
        specs,
        planning,
        runs,
        logs,
        results,
        cleaning,
        models,
        clusters,
        doctor,
        explain,
        tools,
        trust,
        why,
    ):
        module.register(app)
    return app


def make_command() -> TyperGroup:
    """All commands, ready to run."""
    command = typer.main.get_command(make_app())
    assert isinstance(command, TyperGroup)
    keep_examples_whole(command)
    return command


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and answer its exit code."""
    try:
        code = _run(sys.argv[1:] if args is None else args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _reader_left()
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(args: Sequence[str]) -> int:
    try:
        make_command().main(args=list(args), prog_name="retinue")
    except SystemExit as ended:
        return _code_of(ended)
    except RetinueError as error:
        typer.echo(f"retinue: {for_terminal(str(error))}", err=True)
        return error.exit_code
    return 0


def _code_of(ended: SystemExit) -> int:
    """The command library ends by itself; what it handled then says more than its exit code."""
    match ended.__context__:
        case typer.Abort():  # Ctrl-C or end of input at a question
            return INTERRUPTED
        case BrokenPipeError():
            return _reader_left()
        case _:
            return ended.code if isinstance(ended.code, int) else 0


def _reader_left() -> int:
    """`retinue … | head -1`: no error for a person. What is still buffered must go nowhere, or Python complains."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return READER_LEFT
