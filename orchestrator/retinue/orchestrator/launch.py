"""From a checked spec to the plan of one run: names, paths, rights, commands. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.boot import AgentBoot, AgentLimits, Peer, Rights, RuleSet, ToolFilter, WorkspaceBoot
from retinue.agents.definition import AgentDefinition
from retinue.agents.model.messages import Usage
from retinue.agents.model.prices import cost_usd
from retinue.agents.model.router import tool_loading
from retinue.orchestrator.mcp.servers import StdioServer
from retinue.orchestrator.settings.apply import extra_dirs, rule_sets
from retinue.orchestrator.settings.load import NOTHING_SET, LaunchSettings
from retinue.orchestrator.spec.model import Member, ModelSpec, TeamSpec, ToolsSpec
from retinue.orchestrator.team.plan import CheckCommand, LaunchPlan
from retinue.orchestrator.workspaces.facts import RunPaths
from retinue.orchestrator.workspaces.names import agent_branch
from retinue.orchestrator.workspaces.user_repo import Base
from retinue.tools.errors import SpecError
from retinue.tools.ports import TaskView
from retinue.tools.settings.model import Settings

DefinitionOf = Callable[[str], AgentDefinition]
OUTPUT_TOKENS = 8_000
BLOCKING_S = 15.0
"""How long a command may keep a lead, or the agent of `run`, from its mail; then it goes on in the background."""


@dataclass(frozen=True, slots=True)
class Where:
    """The places of one run. `repo` is the top of the checkout, or the folder itself where nothing is a repository."""

    run: str
    day: str
    run_dir: Path
    repo: Path
    locks_dir: Path
    script_folder: Path
    home: Path = Path("/nonexistent")


def plan_launch(
    spec: TeamSpec,
    where: Where,
    base: Base | None,
    definitions: DefinitionOf,
    cli_rules: RuleSet,
    settings: LaunchSettings = NOTHING_SET,
) -> LaunchPlan:
    """`spec` has its open ends filled in from settings. SpecError: what only shows when everything comes together."""
    members = spec.members()
    _refuse_unknown_prices(spec, members)
    roster = tuple(Peer(name=m.name, role=m.role, description=_described(m, definitions)) for m in members)
    return LaunchPlan(
        run=where.run,
        team=spec.name,
        day=where.day,
        repo=str(where.repo),
        base_kind=base.kind if base else "none",
        base_sha=base.sha if base else "",
        strategy=spec.merge.strategy,
        into=spec.merge.into,
        members=tuple(_boot(spec, m, where, base, definitions, roster, cli_rules, settings) for m in members),
        prompts={m.name: m.spec.prompt for m in members if m.spec.prompt},
        tasks=_tasks(spec),
        done_when={
            t.id: CheckCommand(command=t.done_when.command, timeout_s=t.done_when.timeout)
            for t in spec.tasks
            if t.done_when
        },
        verify=tuple(CheckCommand(command=c, timeout_s=spec.merge.verify_timeout) for c in spec.merge.verify),
        setup=tuple(CheckCommand(command=c, timeout_s=spec.repo.setup_timeout) for c in spec.repo.setup),
        limits=AgentLimits(
            requests=spec.limits.turns, tokens=spec.limits.tokens, usd=spec.limits.usd, wall_s=spec.limits.wall
        ),
        endpoints=_endpoints(spec, members),
        mcp=_servers(spec),
        skills=settings.skills,
        settings=_with_spec(spec, settings.settings),
        definitions=dict(settings.definitions),
        script_folder=str(where.script_folder),
        locks_dir=str(where.locks_dir),
    )


def _with_spec(spec: TeamSpec, settings: Settings) -> Settings:
    """What the spec says of the web takes the place of the settings; its language servers come before theirs."""
    own = {name: language.server() for name, language in spec.lsp.items()}
    rest = {name: server for name, server in settings.lsp.items() if name not in own}
    web = spec.web.settings() if "web" in spec.model_fields_set else settings.web
    return settings.model_copy(update={"web": web, "lsp": {**own, **rest}})


def _refuse_unknown_prices(spec: TeamSpec, members: tuple[Member, ...]) -> None:
    """A limit in dollars cannot be kept where nobody knows what a request costs."""
    small = spec.small_model
    if small is not None and spec.limits.usd is not None and cost_usd(small.use, Usage(input=1)) is None:
        raise SpecError(
            f"limits.usd: the price of {small.use} is not known; write usd: none, and limits.tokens to have a limit"
        )
    for member in members:
        use = member.model.use
        if cost_usd(use, Usage(input=1)) is not None:
            continue
        if spec.limits.usd is not None:
            raise SpecError(
                f"limits.usd: the price of {use} is not known; write usd: none, and limits.tokens to have a limit"
            )
        if member.spec.limits.usd is not None:
            at = f"agents.{member.key}.limits"
            raise SpecError(f"{at}.usd: the price of {use} is not known; leave it out, and write {at}.tokens")


def _described(member: Member, definitions: DefinitionOf) -> str:
    return member.spec.description or definitions(member.spec.definition).description


def _boot(
    spec: TeamSpec,
    member: Member,
    where: Where,
    base: Base | None,
    definitions: DefinitionOf,
    roster: tuple[Peer, ...],
    cli_rules: RuleSet,
    settings: LaunchSettings,
) -> AgentBoot:
    definition = definitions(member.spec.definition)
    agent = f"{member.name}~1"
    limits = member.spec.limits
    permissions = member.permissions
    rules = RuleSet(source="spec", allow=permissions.allow, ask=permissions.ask, deny=permissions.deny)
    return AgentBoot(
        run=where.run,
        team=spec.name,
        agent=agent,
        name=member.name,
        incarnation=0,
        role=member.role,
        definition=definition.name,
        description=member.spec.description or definition.description,
        prompt=definition.prompt,
        hooks=definition.hooks,
        model=member.model.use,
        small_model=spec.small_model.use if spec.small_model is not None else "",
        max_tokens=member.model.max_output_tokens or OUTPUT_TOKENS,
        roster=roster,
        tools=_tools(member.spec.tools, definition, member.model),
        rights=(Rights(mode=permissions.mode, rules=rule_sets(settings.settings, rules, cli_rules)),),
        limits=AgentLimits(requests=limits.turns, tokens=limits.tokens, usd=limits.usd, wall_s=limits.wall),
        workspace=_workspace(member, where, base, agent),
        repo=str(where.repo),
        run_dir=str(where.run_dir),
        extra_dirs=extra_dirs(settings.settings, where.repo, where.home),
        notes=settings.settings.notes,
        background_after_s=BLOCKING_S if member.role == "lead" else None,
    )


def _servers(spec: TeamSpec) -> tuple[StdioServer, ...]:
    """Without their environment: secrets may be in it, and the plan holds none."""
    return tuple(
        StdioServer(
            name=name,
            command=server.command,
            args=server.args,
            timeout_s=server.timeout,
            always_load=server.always_load,
            network=server.network,
        )
        for name, server in spec.mcp_servers.items()
    )


def _tools(own: ToolsSpec, definition: AgentDefinition, model: ModelSpec) -> ToolFilter:
    """What the definition gives, narrowed by the spec."""
    allow = own.allow if own.allow is not None else definition.tools
    return ToolFilter(
        allow=allow,
        deny=(*definition.disallowed_tools, *own.deny),
        simple=own.simple,
        repl=own.repl,
        embedded_search=own.embedded_search,
        loading=tool_loading(model.use, model.base_url) if own.loading == "auto" else own.loading,
        strict=own.strict,
    )


def _workspace(member: Member, where: Where, base: Base | None, agent: str) -> WorkspaceBoot:
    if member.spec.isolation == "none":
        return WorkspaceBoot(root=str(where.repo), isolation="none")
    if base is None:
        raise SpecError(f"agents.{member.key}: worktrees need a git repository at {where.repo}")
    paths = RunPaths(where.run_dir)
    return WorkspaceBoot(
        root=str(paths.worktree(agent)),
        isolation="worktree",
        git_dir=str(paths.repository(agent)),
        branch=agent_branch(where.run, agent),
        base_sha=base.sha,
    )


def _tasks(spec: TeamSpec) -> tuple[TaskView, ...]:
    blocks: dict[str, list[str]] = {}
    for task in spec.tasks:
        for blocker in task.blocked_by:
            blocks.setdefault(blocker, []).append(task.id)
    names = {name: key for name, key, _index in spec.names()}
    return tuple(
        TaskView(
            id=task.id,
            subject=task.subject,
            description=task.description or "",
            owner=_owner(task.owner, names),
            blocked_by=task.blocked_by,
            blocks=tuple(blocks.get(task.id, ())),
        )
        for task in spec.tasks
    )


def _owner(owner: str | None, names: Mapping[str, str]) -> str | None:
    """A key with replicas stands for the first of them that is free, which the team decides."""
    return owner if owner in names else None


def _endpoints(spec: TeamSpec, members: tuple[Member, ...]) -> dict[str, str]:
    found: dict[str, ModelSpec] = {}
    small = [("small_model", spec.small_model)] if spec.small_model is not None else []
    for place, model in (*small, *((f"agents.{member.key}.model", member.model) for member in members)):
        known = found.setdefault(model.use, model)
        if known.base_url != model.base_url:
            raise SpecError(
                f"{place}: {model.use} is reached at two addresses, {known.base_url} and {model.base_url}; "
                "one run needs one"
            )
    return {use: model.base_url for use, model in found.items() if model.base_url}


def executes(plan: LaunchPlan) -> tuple[str, ...]:
    """Commands of the spec that run code of the repository or of agents, for the question whether they are trusted."""
    commands = [("repo.setup", c.command) for c in plan.setup]
    commands += [(f"tasks.{task}.done_when", c.command) for task, c in plan.done_when.items()]
    commands += [("merge.verify", c.command) for c in plan.verify]
    commands += [(f"mcp_servers.{each.name}", " ".join((each.command, *each.args))) for each in plan.mcp]
    commands += [(f"lsp.{name}", " ".join((s.command, *s.args))) for name, s in plan.settings.lsp.items()]
    return tuple(f"{where}: {command}" for where, command in commands)
