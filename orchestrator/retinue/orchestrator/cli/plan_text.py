"""A launch plan as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from retinue.agents.boot import AgentBoot, AgentLimits, Rights
from retinue.orchestrator.launch import executes
from retinue.orchestrator.sandboxing import sandbox_text
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.workspaces.names import result_branch
from retinue.tools.ports import TaskView

Tools = Mapping[str, tuple[str, ...]]


def plan_lines(plan: LaunchPlan, base: str, tools: Tools) -> list[str]:
    """`base` in words; `tools` by the name of the agent. Agents that differ in their names only are told once."""
    lines = [f"team {plan.team}", *_table(_team(plan, base))]
    for group in _alike(plan.members, tools):
        first = group[0]
        kind = first.role if first.definition == first.role else f"{first.role} ({first.definition})"
        lines += ["", f"{', '.join(m.name for m in group)}: {kind} on {first.model}"]
        lines += _table(_agent(first, tools[first.name], len(group)))
    if plan.tasks:
        lines += ["", "tasks", *(_task(task) for task in plan.tasks)]
    commands = executes(plan)
    if commands:
        confined = plan.sandbox.state == "on"
        where = "in the sandbox" if confined else "outside of any sandbox (`up` asks first, or takes --trust)"
        lines += ["", f"runs these commands, {where}"]
        lines += [f"  {command}" for command in commands]
    return lines


def _team(plan: LaunchPlan, base: str) -> Iterator[tuple[str, str]]:
    yield "works in", plan.repo
    yield "from", base or "the folder as it is"
    yield "result", _result(plan)
    yield "sandbox", sandbox_text(plan.sandbox)
    yield "limits", _limits(plan.limits) or "none"


def _result(plan: LaunchPlan) -> str:
    if not plan.has_depot:
        return "written into the folder; nothing is merged"
    if plan.strategy == "none":
        return "stays on the agents' branches"
    own = f"branch {result_branch(plan.run)}, by {plan.strategy}"
    return f"{own}; at the end branch {plan.into}" if plan.into else own


def _agent(boot: AgentBoot, tools: tuple[str, ...], count: int) -> Iterator[tuple[str, str]]:
    if boot.workspace.isolation == "none":
        yield "works in", f"writes in your checkout, {boot.workspace.root}"
    else:
        yield "works in", "a worktree each" if count > 1 else "a worktree of its own"
    yield "tools", ", ".join(tools) or "none"
    yield from _rights(boot.rights)
    limits = _limits(boot.limits)
    if limits:
        yield "limits", limits


def _rights(rights: tuple[Rights, ...]) -> Iterator[tuple[str, str]]:
    for right in rights:
        yield "rights", f"mode {right.mode}"
        for word in ("deny", "ask", "allow"):
            rules = [rule for given in right.rules for rule in getattr(given, word)]
            if rules:
                yield word, ", ".join(rules)


def _limits(limits: AgentLimits) -> str:
    parts = [
        "" if limits.usd is None else f"{limits.usd:g} USD",
        "" if limits.requests is None else f"{limits.requests} model requests",
        "" if limits.tokens is None else f"{limits.tokens} tokens",
        "" if limits.wall_s is None else f"{limits.wall_s / 60:g} min",
    ]
    return ", ".join(part for part in parts if part)


def _task(task: TaskView) -> str:
    owner = task.owner or "anyone"
    after = f", after {', '.join(task.blocked_by)}" if task.blocked_by else ""
    return f"  {task.id}: {task.subject} ({owner}{after})"


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:<9} {value}" for name, value in rows]


def _alike(members: tuple[AgentBoot, ...], tools: Tools) -> list[list[AgentBoot]]:
    """Neighbours that differ only in their names."""

    def looks(boot: AgentBoot) -> str:
        shown = boot.model_dump_json(include={"role", "definition", "model", "rights", "limits"})
        return f"{shown} {boot.workspace.isolation} {tools[boot.name]}"

    return [list(group) for _, group in groupby(members, looks)]
