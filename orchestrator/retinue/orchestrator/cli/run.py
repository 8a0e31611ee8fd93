"""`run "PROMPT"`: one agent, headless, in the current repository; its last words on standard output."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.tools.errors import SpecError

if TYPE_CHECKING:
    from pydantic import JsonValue

    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.spec.load import LoadedSpec
    from retinue.orchestrator.view.run_state import RunView

AGENT = "agent"
EDITS = frozenset({"Edit", "Write", "NotebookEdit"})
_ONE_OF = {"Bash": "a command"}


class OutputFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    STREAM_JSON = "stream-json"


class Mode(StrEnum):
    DEFAULT = "default"
    ACCEPT_EDITS = "acceptEdits"
    PLAN = "plan"
    DONT_ASK = "dontAsk"
    BYPASS = "bypassPermissions"


def run(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to do.")],
    model: Annotated[str | None, typer.Option(metavar="USE", help="PROVIDER:NAME or script:FILE.")] = None,
    output: Annotated[OutputFormat, typer.Option("--output-format", help="What goes to standard output.")] = (
        OutputFormat.TEXT
    ),
    mode: Annotated[Mode | None, typer.Option("--permission-mode", help="What it may do unasked.")] = None,
    allow: Annotated[list[str] | None, typer.Option(help="A rule that allows, as in `Bash(make test)`.")] = None,
    deny: Annotated[list[str] | None, typer.Option(help="A rule that denies.")] = None,
    settings: Annotated[Path | None, typer.Option("--settings", metavar="FILE", help="One more settings file.")] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Accept, this once, what the repository brings.")] = False,
    bare: Annotated[bool, typer.Option("--bare", help="With the tools Bash, Read and Edit only.")] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Work in your checkout, not in a worktree.")] = False,
    turns: Annotated[int, typer.Option(help="At most so many model requests.")] = 100,
    run_id: Annotated[str | None, typer.Option(help="Name of the run, if not made up.")] = None,
    ephemeral: Annotated[bool, typer.Option("--ephemeral", help="On a cluster that ends with the run.")] = False,
    state_dir: Annotated[Path | None, typer.Option("--state-dir", help="Where runs lie.")] = None,
) -> None:
    """Let one agent do PROMPT in this repository, and print its answer. What it changed is on a branch to land.

    Example:

    retinue run "Mend the failing test" --model anthropic:claude-sonnet-5-5 --permission-mode acceptEdits
    """
    from retinue.agents.boot import RuleSet
    from retinue.orchestrator.cli.trusting import gathered_for, settled
    from retinue.orchestrator.cli.up import Launched, place_of, prepare_and_start
    from retinue.orchestrator.prepare import Launch, look_for_sandbox
    from retinue.orchestrator.state.paths import new_run_id

    loaded = spec_of(prompt, model, mode, in_place=in_place, turns=turns, bare=bare)
    _check_place(loaded, in_place=in_place)
    place = place_of(state_dir, ephemeral)
    today = date.today()
    rules = RuleSet(source="cli", allow=tuple(allow or ()), deny=tuple(deny or ()))
    name = run_id or new_run_id("run", today, os.urandom(8))
    found = look_for_sandbox(loaded.spec)
    if found.mechanism is None:
        why = "; ".join(found.why)
        typer.echo(f"sandbox: cannot start here ({why}): every command is a question, answered no", err=True)
    given = settled(gathered_for(loaded, place.state, os.environ, settings, written=False), place.state, trust=trust)
    launch = Launch(
        name, today.isoformat(), place.state, dict(os.environ), rules, solo=True, probe=found, settings=given
    )
    launched: Launched = prepare_and_start(loaded, launch, place)
    try:
        code = asyncio.run(_watch(launched.files, launched.team, output, place.flags))
    finally:
        launched.release()
    raise typer.Exit(code)


def spec_of(
    prompt: str, model: str | None, mode: Mode | None, *, in_place: bool, turns: int, bare: bool = False
) -> LoadedSpec:
    """The same loader and the same checks as for a file: JSON is YAML."""
    from retinue.agents.model.messages import Usage
    from retinue.agents.model.prices import cost_usd
    from retinue.orchestrator.spec.load import load_spec_text

    if not prompt.strip():
        raise SpecError('PROMPT is empty: say what to do, as in `retinue run "Mend the failing test"`')
    if model is None:
        raise SpecError("which model? --model anthropic:claude-sonnet-5-5, or --model script:FILE without a key")
    # A limit in dollars cannot be kept without a price; that in requests always is.
    limits = {"turns": turns} if cost_usd(model, Usage(input=1)) is not None else {"turns": turns, "usd": "none"}
    isolation = "none" if in_place else "worktree"
    agent = {"prompt": prompt, "isolation": isolation, "tools": {"simple": bare}}
    text = json.dumps(
        {
            "version": 1,
            "name": "run",
            **({"permissions": {"mode": mode.value}} if mode is not None else {}),
            "agents": {AGENT: agent},
            "limits": limits,
        }
    )
    return load_spec_text(text, "run", env=os.environ, model=model, path=Path("run.yaml"))


def _check_place(loaded: LoadedSpec, *, in_place: bool) -> None:
    """What a spec would be told of the machine, in the words of this command."""
    from retinue.orchestrator.cli.probe import MachineProbe, check_spec_environment

    probe, here = MachineProbe(), Path()
    if not in_place and not probe.is_repository(here):
        raise SpecError("this folder is not inside a git repository: go into one, or work here with --in-place")
    if not in_place and not probe.resolves(here, "HEAD"):
        raise SpecError("this repository has no commit yet: commit something first, or use --in-place")
    for warning in check_spec_environment(loaded):
        if warning.path != ("repo",):
            typer.echo(f"warning: {warning}", err=True)
        elif not in_place:
            what = "your checkout has changes that are not committed, and the agent does not see them"
            typer.echo(f"warning: {what}: commit them, or use --in-place", err=True)


async def _watch(files: RunFiles, team: object, output: OutputFormat, flags: str) -> int:
    from retinue.agents.model.prices import cost_usd
    from retinue.agents.records import AgentWaits, InnerFinished, ToolFinished
    from retinue.orchestrator.cli import session
    from retinue.orchestrator.cli.output import console, note
    from retinue.orchestrator.view.follow import Follower
    from retinue.orchestrator.view.run_state import RunView
    from retinue.tools.text import one_line

    view = RunView(cost_usd)
    denied: list[str] = []

    def on_record(writer: str, record: object) -> None:
        if isinstance(record, ToolFinished | InnerFinished) and record.result.denied:
            denied.append(record.result.name)
        if isinstance(record, AgentWaits):
            # Who waits for an answer learns what keeps it away.
            note(f"waits {record.seconds or 0:.1f} s: {one_line(record.what)}")
        if output is OutputFormat.STREAM_JSON:
            _stream_record(writer, record)

    follower = Follower(files.dir.ledger, view, on_record=on_record)
    code = await session.watch_quietly(files, team, follower, console(stderr=True), flags)
    _print_result(files, view, output)
    for line in remarks(view.team.phase, view.team.detail, denied):
        note(line)
    for step in session.next_steps(view, files, flags):
        typer.echo(f"next: {step}", err=True)
    return code


def _print_result(files: RunFiles, view: RunView, output: OutputFormat) -> None:
    if output is not OutputFormat.TEXT:
        typer.echo(json.dumps(_result(files, view)))
    elif text := _text_of(view):
        typer.echo(text)


def remarks(phase: str, detail: str, denied: Sequence[str]) -> list[str]:
    """What the answer does not say: why the run did not succeed, and what the agent was not allowed to do."""
    lines = [] if phase == "done" else [f"retinue: run {phase}" + (f": {detail}" if detail else "")]
    if denied:
        tools = tuple(dict.fromkeys(denied))
        hints = ["--permission-mode acceptEdits allows edits"] if EDITS.intersection(tools) else []
        hints += [f"--allow '{tool}(…)' allows {_ONE_OF.get(tool, 'a call')}" for tool in tools if tool not in EDITS]
        were = "call was" if len(denied) == 1 else "calls were"
        lines.append(f"{len(denied)} {were} denied ({', '.join(tools)}): {', '.join(hints)}")
    return lines


def _text_of(view: RunView) -> str:
    from retinue.tools.text import for_terminal

    return "\n".join(for_terminal(agent.last_text) for agent in view.agents.values() if agent.name == AGENT)


def _result(files: RunFiles, view: RunView) -> dict[str, JsonValue]:
    agents = list(view.agents.values())
    usage = view.usage()
    return {
        "type": "result",
        "run": files.plan.run,
        "ok": view.team.phase == "done",
        "detail": view.team.detail,
        "text": next((a.last_text for a in agents if a.name == AGENT), ""),
        "requests": sum(a.requests for a in agents),
        "tool_calls": sum(a.calls for a in agents),
        "usage": usage.model_dump(),
        "usd": view.usd(),
        "seconds": round(view.last_at - (view.first_at or view.last_at), 3),
        "state": str(files.dir.root),
    }


def _stream_record(writer: str, record: object) -> None:
    """One line for each block that the model spoke and each result that it got."""
    from retinue.agents.identity import name_of
    from retinue.agents.records import BlockComplete, ToolFinished

    if isinstance(record, BlockComplete):
        line = {"type": "assistant", "agent": name_of(writer), "block": record.block.model_dump(mode="json")}
    elif isinstance(record, ToolFinished):
        result = record.result
        line = {
            "type": "tool_result",
            "agent": name_of(writer),
            "tool_use_id": result.call_id,
            "content": result.content,
            "is_error": result.is_error,
        }
    else:
        return
    typer.echo(json.dumps(line))


def register(app: typer.Typer) -> None:
    app.command()(run)
