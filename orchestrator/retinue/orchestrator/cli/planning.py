"""`plan`: what a launch would start, and where, without starting or writing anything."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption, ModelOption, SetOption, SpecArgument, StateOption, runs_of
from retinue.tools.errors import EnvironmentProblem

if TYPE_CHECKING:
    from retinue.agents.boot import AgentBoot
    from retinue.orchestrator.spec.load import LoadedSpec
    from retinue.orchestrator.spec.problems import Problem
    from retinue.orchestrator.team.plan import LaunchPlan

UNNAMED_RUN = "RUN"
"""Stands for the id that a launch would give."""


@dataclass(frozen=True, slots=True)
class Planned:
    """`base` says in words what the work starts from, empty without a repository.

    untrusted  what the repository brings that does not count
    ignored    what settings say without effect
    """

    plan: LaunchPlan
    base: str
    warnings: tuple[Problem, ...]
    untrusted: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


def plan_spec(spec: Path, overrides: Sequence[str], model: str | None, state_dir: Path | None = None) -> Planned:
    """All that `up` decides before it makes anything. Raises SpecError."""
    from retinue.orchestrator.cli.probe import check_spec_environment
    from retinue.orchestrator.spec.load import load_spec

    loaded = load_spec(spec, env=os.environ, overrides=overrides, model=model)
    return draft_of(loaded, state_dir, warnings=check_spec_environment(loaded))


def draft_of(
    loaded: LoadedSpec, state_dir: Path | None, *, written: bool = True, warnings: tuple[Problem, ...] = ()
) -> Planned:
    """`written`: the spec is a file, and can be part of the repository."""
    from retinue.agents.boot import RuleSet
    from retinue.orchestrator.cli.trusting import brought_lines, gathered_for
    from retinue.orchestrator.prepare import Launch, draft_plan, look_for_sandbox, open_repository
    from retinue.orchestrator.workspaces.git import Git

    state = runs_of(state_dir)
    gathered = gathered_for(loaded, state, os.environ, None, written=written)
    given = gathered.settings(trusted=gathered.trusted)
    launch = Launch(
        run=UNNAMED_RUN,
        day=date.today().isoformat(),
        state=state,
        env=dict(os.environ),
        rules=RuleSet(source="cli"),
        probe=look_for_sandbox(loaded.spec),
        settings=given,
    )

    async def draft() -> Planned:
        user, base = await open_repository(loaded, Git())
        run_dir = launch.state.runs / UNNAMED_RUN
        plan = await draft_plan(loaded, launch, user=user, base=base, run_dir=run_dir)
        for member in plan.members:
            tools_of(member)
        told = (*warnings, *_without_key(loaded))
        untrusted = () if gathered.trusted else brought_lines(gathered, given)
        return Planned(plan, base.description if base else "", told, untrusted, given.warnings)

    return asyncio.run(draft())


def _without_key(loaded: LoadedSpec) -> tuple[Problem, ...]:
    """What `up` would refuse in this shell, though the spec is right."""
    from retinue.orchestrator.prepare import check_access
    from retinue.orchestrator.spec.problems import Problem

    try:
        check_access(loaded.spec, os.environ)
    except EnvironmentProblem as error:
        return (loaded.placed(Problem("environment", ("model",), str(error))),)
    return ()


def tools_of(member: AgentBoot) -> tuple[str, ...]:
    """What the agent's model would see. Raises SpecError for an entry that is no name of a tool."""
    from retinue.agents.assemble import permission_policy, tool_pool

    return tool_pool(member, permission_policy(member, Path.home())).names


def plan(
    spec: SpecArgument,
    override: SetOption = None,
    model: ModelOption = None,
    state_dir: StateOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what `up` would start: agents, tools, rights, limits.

    Also the commands that it would run. Nothing is made and nothing is started.

    Example:

    retinue plan team.yaml
    """
    from retinue.orchestrator.cli.plan_text import plan_lines
    from retinue.orchestrator.cli.trusting import untrusted_line
    from retinue.orchestrator.launch import executes

    planned = plan_spec(spec, override or (), model, state_dir)
    tools = {member.name: tools_of(member) for member in planned.plan.members}
    if as_json:
        output.write_json(
            {
                "plan": planned.plan.model_dump(mode="json"),
                "base": planned.base,
                "tools": {name: list(names) for name, names in tools.items()},
                "executes": list(executes(planned.plan)),
                "untrusted": list(planned.untrusted),
                "warnings": [*(str(warning) for warning in planned.warnings), *planned.ignored],
            }
        )
        return
    output.note(*(f"warning: {warning}" for warning in (*planned.warnings, *planned.ignored)))
    if planned.untrusted:
        output.note(untrusted_line(planned.untrusted))
    output.say(*plan_lines(planned.plan, planned.base, tools), "", f"start it with: retinue up {spec}")


def register(app: typer.Typer) -> None:
    app.command()(plan)
