"""`tools list`, `tools show`, `tools call`: what agents can do, and one call as an agent would make it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption
from retinue.tools.errors import SpecError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from retinue.agents.definition import AgentDefinition
    from retinue.orchestrator.cli.tool_list import Listed
    from retinue.tools.permissions.decide import Mode

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")]
ModeOption = Annotated[
    str, typer.Option(metavar="MODE", help="default, acceptEdits, plan, dontAsk or bypassPermissions.")
]
RulesOption = Annotated[list[str] | None, typer.Option(metavar="RULE", help="Such a rule, as in Edit(/src/**).")]


def list_tools(
    agent: Annotated[
        str | None,
        typer.Option(metavar="DEFINITION", help="As an agent has them: the name of a kind, or its Markdown file."),
    ] = None,
    bare: Annotated[bool, typer.Option("--bare", help="In the simple mode: Bash, Read and Edit only.")] = False,
    repl: Annotated[bool, typer.Option("--repl", help="In the mode in which the REPL wraps other tools.")] = False,
    embedded_search: Annotated[
        bool, typer.Option("--embedded-search", help="Where the shell has a search of its own.")
    ] = False,
    deny: RulesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show all tools: what they are like, and why an agent lacks one.

    Example:

    retinue tools list --agent explore
    """
    from retinue.orchestrator.cli.tool_list import listed
    from retinue.tools.registry.filters import PoolMode

    definition = None if agent is None else _definition(agent)
    mode = PoolMode(simple=bare, repl=repl)
    found = listed(definition, mode, tuple(deny or ()), embedded_search=embedded_search)
    if as_json:
        output.write_json({"tools": [_document(each) for each in found]})
        return
    columns = ("tool", "group", "origin", "safe", "read-only", "deferred", "absent")
    output.show(output.table(columns, (_row(each) for each in found), wraps=frozenset({"absent"})))


def show_tool(name: NameArgument, as_json: JsonOption = False) -> None:
    """Show what the model is told about a tool: its prompt, and the schema of its input.

    Example:

    retinue tools show Read
    """
    from retinue.tools.registry.builtin import builtin_tool

    tool = builtin_tool(name)
    if tool is None:
        raise SpecError(f"there is no tool {name!r}; `retinue tools list` shows all")
    schema = tool.json_schema()
    if as_json:
        told: JsonValue = {"name": tool.name, "description": tool.description(), "prompt": tool.prompt()}
        output.write_json({**told, "input_schema": schema})
        return
    output.say(f"{tool.name}: {tool.description()}", "", tool.prompt(), "", json.dumps(schema, indent=2))


def call_tool(
    name: NameArgument,
    given: Annotated[str, typer.Argument(metavar="JSON", help="The input, as one JSON object.")],
    allow: RulesOption = None,
    ask: RulesOption = None,
    deny: RulesOption = None,
    mode: ModeOption = "default",
    read: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Read this file first: Edit and Write ask for that.")
    ] = None,
    sandbox: Annotated[
        bool, typer.Option("--sandbox/--no-sandbox", help="Confine commands to this folder, as in a run.")
    ] = True,
) -> None:
    """Make one call in this folder, through all checks, and print what the model would see.

    What no rule allows is asked for on a terminal, and refused without one. Exit code 1: the result is an error.

    Example:

    retinue tools call Grep '{"pattern": "TODO", "output_mode": "count"}'
    """
    from retinue.orchestrator.cli.tool_call import Call, run_call
    from retinue.tools.permissions.rules import RuleTexts

    rules = RuleTexts("cli", tuple(allow or ()), tuple(ask or ()), tuple(deny or ()))
    call = Call(name, given, rules, _mode(mode), tuple(read or ()), person=sys.stdin.isatty(), sandboxed=sandbox)
    result = run_call(call)
    output.say(result.content, *result.new_messages)
    output.note(*(f"{media.media_type} of {media.size} bytes: {media.path}" for media in result.media))
    if result.is_error:
        raise typer.Exit(1)


def _mode(text: str) -> Mode:
    from retinue.tools.permissions.decide import MODES

    for mode in MODES:
        if mode == text:
            return mode
    raise SpecError(f"--mode {text!r} is no mode; there are: {', '.join(MODES)}")


def _definition(written: str) -> AgentDefinition:
    from retinue.agents.definition import builtin_definitions, parse_definition

    builtin = builtin_definitions().get(written)
    if builtin is not None:
        return builtin
    try:
        return parse_definition(Path(written).read_text("utf-8"), written)
    except (OSError, UnicodeDecodeError):
        kinds = ", ".join(builtin_definitions())
        raise SpecError(f"--agent {written!r} is no kind of agent ({kinds}) and no file that can be read") from None


def _row(each: Listed) -> tuple[str, ...]:
    deferred = "yes" if each.deferred else "no"
    return (each.name, each.group, each.origin, each.safe, each.read_only, deferred, each.absent)


def _document(each: Listed) -> JsonValue:
    return {
        "name": each.name,
        "group": each.group,
        "origin": each.origin,
        "safe": each.safe,
        "read_only": each.read_only,
        "deferred": each.deferred,
        "absent": each.absent or None,
        "description": each.description,
    }


def register(app: typer.Typer) -> None:
    group = typer.Typer(name="tools", callback=_tools, no_args_is_help=True)
    group.command("list")(list_tools)
    group.command("show")(show_tool)
    group.command("call")(call_tool)
    app.add_typer(group)


def _tools() -> None:
    """What agents can do.

    Example:

    retinue tools list
    """
