"""`why`: what would become of one call, and every step that leads there. Nothing runs, and nobody is asked."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import JsonValue, TypeAdapter, ValidationError

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, StateOption, runs_of
from retinue.tools.errors import SpecError

if TYPE_CHECKING:
    from retinue.agents.boot import AgentBoot
    from retinue.orchestrator.spec.load import LoadedSpec
    from retinue.orchestrator.team.plan import LaunchPlan
    from retinue.tools.base import AnyTool, ToolContext, ToolInput
    from retinue.tools.permissions.explain import Explanation, Step

_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
_ALONE = "agent"


@dataclass(frozen=True, slots=True)
class _Asked:
    boot: AgentBoot
    plan: LaunchPlan
    tool: AnyTool
    args: ToolInput


def why(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="An agent of the spec or run, or a kind of agent.")],
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name.")],
    given: Annotated[str, typer.Argument(metavar="JSON", help="The input, as one JSON object.")],
    spec: Annotated[Path | None, typer.Option("--spec", metavar="FILE", help="The spec that the agent is in.")] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="RUN", help="The run that the agent is in.")] = None,
    state_dir: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what would become of a call: the rule that wins, where it is from, and each step of the decision.

    Without --spec and --run: for one agent of that kind in this folder.

    Exit code 0 when the call would run unasked, else 1.

    Example:

    retinue why coder Bash '{"command": "git push"}'
    """
    if spec is not None and run is not None:
        raise SpecError("--spec and --run: give one of them")
    asked = _asked(agent, tool, given, spec, run, state_dir)
    found = asyncio.run(_explained(asked))
    if as_json:
        output.write_json(_document(asked, found))
    else:
        output.say(*lines_of(asked.tool.name, found))
    if found.decision.behavior != "allow":
        raise typer.Exit(1)


def lines_of(tool: str, found: Explanation) -> list[str]:
    """The verdict first, then what led to it."""
    decision = found.decision
    lines = [f"{tool}: {decision.behavior}, by {decision.source or 'the tool'}", f"  {decision.reason}"]
    question = decision.question
    if question is not None:
        lines += [f"  careful: {warning}" for warning in question.warnings]
        lines += [f"  would be needless with the rule {rule}" for rule in question.suggestions]
    return [*lines, "", *(_line(step) for step in found.steps)]


def _line(step: Step) -> str:
    whose = f" (rights of {step.whose})" if step.whose else ""
    return f"  {step.part:<10} {step.says:<5} {step.text}{whose}"


def _document(asked: _Asked, found: Explanation) -> JsonValue:
    decision, question = found.decision, found.decision.question
    return {
        "agent": asked.boot.name,
        "tool": asked.tool.name,
        "decision": decision.behavior,
        "source": decision.source,
        "reason": decision.reason,
        "firm": decision.firm,
        "suggestions": list(question.suggestions) if question is not None else [],
        "warnings": list(question.warnings) if question is not None else [],
        "steps": [
            {"part": step.part, "says": step.says, "text": step.text, "whose": step.whose} for step in found.steps
        ],
    }


def _asked(agent: str, tool: str, given: str, spec: Path | None, run: str | None, state_dir: Path | None) -> _Asked:
    from retinue.agents.assemble import permission_policy, tool_pool
    from retinue.tools.execution.calls import ToolCall
    from retinue.tools.execution.validate import parse
    from retinue.tools.registry.builtin import builtin_tool

    plan, name = _plan(agent, spec, run, state_dir)
    boot = next((member for member in plan.members if member.name == name), None)
    if boot is None:
        names = ", ".join(member.name for member in plan.members)
        raise SpecError(f"there is no agent {name!r} here; there are: {names}")
    found = builtin_tool(tool)
    if found is None:
        raise SpecError(f"there is no tool {tool!r}; `retinue tools list` shows all")
    try:
        values = _OBJECT.validate_json(given)
    except ValidationError:
        raise SpecError(f"the input {given!r} is no JSON object") from None
    args = parse(found, ToolCall(id="why", name=found.name, input=values))
    if isinstance(args, str):
        raise SpecError(f"{found.name} would not take this input: {args}")
    pool = tool_pool(boot, permission_policy(boot, Path.home()))
    if pool.find(found.name) is None:
        output.note(f"{boot.name} has no tool {found.name}: its model would not even see it")
    return _Asked(boot, plan, found, args)


def _plan(agent: str, spec: Path | None, run: str | None, state_dir: Path | None) -> tuple[LaunchPlan, str]:
    from retinue.orchestrator.cli.planning import draft_of
    from retinue.orchestrator.run_files import RunFiles
    from retinue.orchestrator.spec.load import load_spec

    if run is not None:
        return RunFiles(runs_of(state_dir).find(run)).plan, agent
    if spec is not None:
        return draft_of(load_spec(spec, env=os.environ), state_dir).plan, agent
    return draft_of(_of_kind(agent), state_dir, written=False).plan, _ALONE


def _of_kind(kind: str) -> LoadedSpec:
    """One agent of that kind in this folder. Which model it would have decides nothing."""
    from retinue.orchestrator.spec.load import load_spec_text

    agent = {"role": "teammate", "isolation": "none", "prompt": "-"}
    text = json.dumps({"version": 1, "name": "why", "model": "script:none.yaml", "agents": {_ALONE: agent}})
    loaded = load_spec_text(text, "why", env=os.environ, path=Path("why.yaml"))
    written = str(Path(kind).absolute()) if kind.endswith(".md") else kind
    agents = {key: each.model_copy(update={"definition": written}) for key, each in loaded.spec.agents.items()}
    return replace(loaded, spec=loaded.spec.model_copy(update={"agents": agents}))


async def _explained(asked: _Asked) -> Explanation:
    from retinue.agents.assemble import permission_policy
    from retinue.tools.permissions.explain import Around, explain

    settings = asked.plan.settings
    policy = permission_policy(asked.boot, Path.home())
    around = Around(tuple(hook.file for hook in settings.hooks), settings.classifier.enabled)
    return await explain(policy, asked.tool, asked.args, _context(asked), around)


def _context(asked: _Asked) -> ToolContext:
    from retinue.agents.assemble import permission_policy, results_dir
    from retinue.orchestrator.sandboxing import use_of
    from retinue.tools.base import ToolContext
    from retinue.tools.files.state import FileState
    from retinue.tools.shell.runner import KeeperShell

    boot = asked.boot
    root = Path(boot.workspace.root)
    return ToolContext(
        agent=boot.agent,
        cwd=root,
        root=root,
        files=FileState(),
        shell=KeeperShell(),
        extra_dirs=tuple(map(Path, boot.extra_dirs)),
        env=dict(os.environ),
        results_dir=results_dir(boot),
        sandbox=use_of(asked.plan.sandbox, boot),
        may_read=permission_policy(boot, Path.home()).may_read,
        web=asked.plan.settings.web,
    )


def register(app: typer.Typer) -> None:
    app.command()(why)
