"""`validate`, `schema`, `init`: everything about a spec that starts nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, ModelOption, SetOption, SpecArgument
from retinue.tools.errors import SpecError, StateError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from retinue.orchestrator.cli.planning import Planned
    from retinue.orchestrator.spec.problems import Problem


def validate(
    spec: SpecArgument, override: SetOption = None, model: ModelOption = None, as_json: JsonOption = False
) -> None:
    """Check a spec: everything that is wrong with it, at once.

    What it needs of this machine (repository, base, files) is checked as well.

    Exit code 0 when `retinue up` would start it, else 2.

    Example:

    retinue validate team.yaml
    """
    from retinue.orchestrator.cli.planning import plan_spec

    try:
        planned = plan_spec(spec, override or (), model)
    except SpecError as error:
        if not as_json:
            raise
        output.write_json({"ok": False, "problems": _problems_of(error), "warnings": []})
        raise typer.Exit(error.exit_code) from None
    warnings = planned.warnings
    if as_json:
        output.write_json({"ok": True, "problems": [], "warnings": [_problem(w) for w in warnings]})
        return
    output.note(*(f"warning: {warning}" for warning in warnings))
    output.say(f"{spec} is valid: {_what(planned)}")


def _what(planned: Planned) -> str:
    from retinue.tools.text import counted

    members, tasks = len(planned.plan.members), len(planned.plan.tasks)
    return f"team {planned.plan.team}, {counted(members, 'agent')}, {counted(tasks, 'task')}"


def _problems_of(error: SpecError) -> list[JsonValue]:
    from retinue.orchestrator.spec.problems import InvalidSpec

    if isinstance(error, InvalidSpec):
        return [_problem(problem) for problem in error.problems]
    return [{"kind": "environment", "file": None, "line": None, "column": None, "path": "", "message": str(error)}]


def _problem(problem: Problem) -> dict[str, JsonValue]:
    from retinue.orchestrator.spec.problems import dotted

    mark = problem.mark
    return {
        "kind": problem.kind,
        "file": mark.file,
        "line": mark.line or None,
        "column": mark.column or None,
        "path": dotted(problem.path),
        "message": problem.text,
    }


def schema(
    script: Annotated[bool, typer.Option("--script", help="Of a scripted model instead of a spec.")] = False,
) -> None:
    """Print the JSON Schema of a spec, for your editor.

    Example:

    retinue schema > team.schema.json
    """
    from retinue.agents.model.script import script_schema
    from retinue.orchestrator.spec.schema import spec_schema

    output.write_json(script_schema() if script else spec_schema())


def init(
    path: Annotated[Path, typer.Argument(metavar="[PATH]", help="The file to write, or a folder for it.")] = Path(
        "team.yaml"
    ),
) -> None:
    """Write a commented spec to start from. Never overwrites one.

    Example:

    retinue init team.yaml
    """
    from retinue.orchestrator.spec.starter import starter_spec

    file = path / "team.yaml" if path.is_dir() else path
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(starter_spec())
    except FileExistsError:
        raise StateError(
            f"{file} exists already, and was left alone; name another file, as in `retinue init other.yaml`"
        ) from None
    except OSError as error:
        raise SpecError(f"{file} cannot be written: {error.strerror}; name a file in a folder that exists") from error
    output.say(
        f"wrote {file}",
        "",
        "Say in it what has to be done, then:",
        f"  retinue validate {file}",
        f"  retinue up {file}",
    )
    if not os.environ.get("ANTHROPIC_API_KEY"):
        output.note("", "It needs a key in ANTHROPIC_API_KEY, or another `model`.")


def register(app: typer.Typer) -> None:
    app.command()(validate)
    app.command()(schema)
    app.command()(init)
