"""A launch on disk: the run's directory, its Depot and worktrees, the plan. Whole, or nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import SecretStr

from retinue.agents.boot import RuleSet
from retinue.agents.definition import AgentDefinition, builtin_definitions, parse_definition
from retinue.agents.mail.envelopes import TEAM
from retinue.agents.model import router
from retinue.agents.model.router import ModelSettings
from retinue.orchestrator.cluster.identity import default_base
from retinue.orchestrator.launch import BLOCKING_S, Where, plan_launch
from retinue.orchestrator.mcp.servers import StdioServer
from retinue.orchestrator.run_files import RunFiles, lend
from retinue.orchestrator.sandboxing import Sight, plan_sandbox
from retinue.orchestrator.settings.apply import tools_env, with_settings
from retinue.orchestrator.settings.definitions import named_definition
from retinue.orchestrator.settings.load import NOTHING_SET, LaunchSettings
from retinue.orchestrator.settings.servers import filled
from retinue.orchestrator.spec.environment import repository_path
from retinue.orchestrator.spec.expand import secret_parts
from retinue.orchestrator.spec.load import LoadedSpec
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.state.paths import RunDir, StateDir, state_root, write_private
from retinue.orchestrator.team.plan import NO_PROBE, LaunchPlan, SandboxPlan
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Git, Identity
from retinue.orchestrator.workspaces.landing import branch_sha
from retinue.orchestrator.workspaces.private_places import Machine, private_places
from retinue.orchestrator.workspaces.user_repo import Base, UserRepo, borrowed_objects
from retinue.tools.errors import EnvironmentProblem, SpecError
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Probe


@dataclass(frozen=True, slots=True)
class Launch:
    """What `up` was asked for, besides the spec, and what it found out about sandboxes on this machine."""

    run: str
    day: str
    state: StateDir
    env: Mapping[str, str]
    rules: RuleSet
    solo: bool = False
    probe: Probe = NO_PROBE
    settings: LaunchSettings = NOTHING_SET

    @property
    def home(self) -> Path:
        return Path(self.env.get("HOME", "/nonexistent"))


def look_for_sandbox(spec: TeamSpec) -> Probe:
    """Once for a launch: what it says is what the whole run goes by."""
    return probe() if spec.sandbox.enabled else NO_PROBE


def definition_of(
    loaded: LoadedSpec, written: str, kinds: Mapping[str, AgentDefinition] | None = None
) -> AgentDefinition:
    """A kind of agent by its name, or a Markdown file relative to the spec. Raises SpecError.

    kinds  those besides the built-in ones
    """
    named = (kinds or {}).get(written) or builtin_definitions().get(written)
    if named is not None:
        return named
    file = loaded.file(written)
    try:
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"the definition {file} cannot be read: {error}") from None
    if file.parent.parts[-2:] == (".claude", "agents"):
        return named_definition(text.encode(), str(file))
    return parse_definition(text, str(file))


async def draft_plan(
    loaded: LoadedSpec, launch: Launch, *, user: UserRepo | None, base: Base | None, run_dir: Path
) -> LaunchPlan:
    """The plan alone, with nothing made; for a `worktree` base its commit is not known yet."""
    where = Where(
        run=launch.run,
        day=launch.day,
        run_dir=run_dir,
        repo=user.root if user is not None else repository_path(loaded.spec).resolve(),
        locks_dir=launch.state.root / "locks",
        script_folder=loaded.folder.resolve(),
        home=launch.home,
    )
    settings = launch.settings
    spec = with_settings(loaded.spec, settings, where.repo, where.home)
    kinds = settings.definitions
    plan = plan_launch(spec, where, base, lambda name: definition_of(loaded, name, kinds), launch.rules, settings)
    into = await branch_sha(user, plan.into) if plan.into is not None and user is not None else None
    sandbox = await asyncio.to_thread(_sandbox, spec, launch, where.repo, user)
    members = plan.members
    if launch.solo:
        members = tuple(boot.model_copy(update={"background_after_s": BLOCKING_S}) for boot in members)
    mcp = (*plan.mcp, *(each.model_copy(update={"env": {}}) for each in _brought_servers(loaded.spec, launch)))
    found = {"into_sha": into, "solo": launch.solo, "sandbox": sandbox, "members": members, "mcp": mcp}
    return plan.model_copy(update=found)


def _brought_servers(spec: TeamSpec, launch: Launch) -> tuple[StdioServer, ...]:
    """MCP servers of the repository, which is trusted; one of the spec takes the place of one of the same name."""
    return tuple(filled(each, launch.env) for each in launch.settings.servers if each.name not in spec.mcp_servers)


def _server_env(spec: TeamSpec, launch: Launch) -> dict[str, dict[str, str]]:
    """What each MCP server alone gets, by its name."""
    own = {name: dict(server.env) for name, server in spec.mcp_servers.items()}
    return own | {each.name: each.env for each in _brought_servers(spec, launch)}


def _sandbox(spec: TeamSpec, launch: Launch, repo: Path, user: UserRepo | None) -> SandboxPlan:
    home = launch.home
    ours = (launch.state.root, state_root(launch.env), default_base(os.getuid()))
    private = private_places(Machine(launch.env, home, os.getuid(), ours))
    borrowed = (user.common_dir, *borrowed_objects(user.objects)) if user is not None else ()
    found = environments(launch.env.get("PATH", ""), Path(sys.prefix))
    programs = (folder for folder in found if not folder.is_relative_to(repo))  # that may be where agents work
    sight = Sight(home, Path.resolve, Path.exists)
    return plan_sandbox(spec, launch.probe, private, (*borrowed, *programs), repo, sight)


def environments(search_path: str, own: Path) -> tuple[Path, ...]:
    """Folders that the search path names, whole where one belongs to a Python environment, and our own environment.

    They stay readable wherever they lie: an environment below /tmp would else be gone with /tmp.
    """
    folders = [Path(entry) for entry in search_path.split(":") if entry.startswith("/") and entry != "/"]
    whole = [folder.parent if (folder.parent / "pyvenv.cfg").is_file() else folder for folder in folders]
    return tuple(dict.fromkeys((*whole, own)))


async def draft_for_people(loaded: LoadedSpec, launch: Launch) -> LaunchPlan:
    """What a launch would decide, to be shown; nothing is made."""
    user, base = await open_repository(loaded, Git())
    return await draft_plan(loaded, launch, user=user, base=base, run_dir=launch.state.runs / launch.run)


async def open_repository(loaded: LoadedSpec, git: Git) -> tuple[UserRepo | None, Base | None]:
    """The user's repository and the base, or nothing where no agent needs one."""
    needed = any(agent.isolation == "worktree" for agent in loaded.spec.agents.values())
    try:
        user = await UserRepo.open(git, repository_path(loaded.spec))
        return user, await user.resolve_base(loaded.spec.repo.base)
    except SpecError:
        if needed:
            raise
        return None, None


async def prepare_run(loaded: LoadedSpec, launch: Launch) -> RunDir:
    """Make everything that a run needs on disk. When anything fails, nothing of it is left."""
    git = Git()
    user, base = await open_repository(loaded, git)
    run = launch.state.create(launch.run)
    try:
        plan = await draft_plan(loaded, launch, user=user, base=base, run_dir=run.root)
        if plan.has_depot and user is not None and base is not None:
            plan = await _make_worktrees(loaded, launch, plan, git, user, base, run)
        write_private(run.spec, _spec_copy(loaded))
        own = {TEAM: loaded.spec.env, **{m.name: m.env for m in loaded.spec.members()}}
        tools = {name: tools_env(launch.settings, env) for name, env in own.items()}
        servers = _server_env(loaded.spec, launch)
        private = lend(launch.env, tools, _secrets(loaded, launch.settings, servers)).model_copy(
            update={"mcp": servers}
        )
        RunFiles(run).write(plan, private)
        return run
    except BaseException:
        await _discard(user, run)
        raise


def _secrets(loaded: LoadedSpec, settings: LaunchSettings, servers: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Values that no record may show, longest first."""
    given = (settings.env, *servers.values())
    found = {part for env in given for name, value in env.items() for part in secret_parts(name, value)}
    return tuple(sorted({*loaded.secrets, *found}, key=lambda value: (-len(value), value)))


async def discard_run(loaded: LoadedSpec, run: RunDir) -> None:
    """Take back what `prepare_run` made, of a run that has not begun."""
    user, _base = await open_repository(loaded, Git())
    await _discard(user, run)


async def _discard(user: UserRepo | None, run: RunDir) -> None:
    try:
        if user is not None:
            await user.unpin(run.run_id)
    finally:
        await asyncio.to_thread(shutil.rmtree, run.root, ignore_errors=True)


def check_access(spec: TeamSpec, env: Mapping[str, str]) -> None:
    """Raises EnvironmentProblem when a model of the team needs a key that the launching shell does not have."""
    endpoint = spec.web.search.endpoint
    if endpoint is not None and endpoint.key_env is not None and not env.get(endpoint.key_env):
        raise EnvironmentProblem(
            f"web.search.endpoint.key_env: {endpoint.key_env} is not set: export it in this shell, or remove the key"
        )
    key, token = env.get("ANTHROPIC_API_KEY"), env.get("ANTHROPIC_AUTH_TOKEN")
    small = (spec.small_model,) if spec.small_model is not None else ()
    for model in (*small, *(member.model for member in spec.members())):
        settings = ModelSettings(
            base_url=model.base_url or env.get("ANTHROPIC_BASE_URL") or None,
            api_key=SecretStr(key) if key else None,
            auth_token=SecretStr(token) if token else None,
        )
        router.check_access(model.use, settings)


async def _make_worktrees(
    loaded: LoadedSpec, launch: Launch, plan: LaunchPlan, git: Git, user: UserRepo, base: Base, run: RunDir
) -> LaunchPlan:
    depot = await Depot.create(git, run.root, launch.run, user, base)
    if depot.facts.base_sha != base.sha:
        base = replace(base, sha=depot.facts.base_sha)
        plan = await draft_plan(loaded, launch, user=user, base=base, run_dir=run.root)
    members = [m for m in plan.members if m.workspace.isolation == "worktree"]
    await asyncio.gather(
        *(depot.add_agent(m.agent, Identity(m.name, f"{m.name}@{plan.run}.retinue.invalid")) for m in members)
    )
    return plan


def _spec_copy(loaded: LoadedSpec) -> str:
    """As written, variables not filled in; what flags changed, and salted hashes of the variables, as comments."""
    lines = [f"# from {loaded.path}"]
    lines += [f"# --set {override}" for override in loaded.overrides]
    lines += [f"# --model {loaded.model}"] if loaded.model else []
    lines += [f"# variables: {loaded.variables.model_dump_json()}"]
    return "\n".join((*lines, loaded.source_text))
