"""Puts one agent together from its boot, its records and its surroundings: the same in an actor and in a test."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.agents.background.keeping import Background
from retinue.agents.boot import AgentBoot
from retinue.agents.history import Conversation
from retinue.agents.hooks.wiring import HookPorts, hooked
from retinue.agents.identity import call_key
from retinue.agents.inner import Beside
from retinue.agents.journal import Journal
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.own.ways import ways_of
from retinue.agents.own.worktrees import WorktreeGit
from retinue.agents.prompt import Facts, system_prompt
from retinue.agents.records import AgentRecord, ToolFinished
from retinue.agents.side import SideQuestions
from retinue.agents.snip import OwnHistory
from retinue.agents.standing import Standing
from retinue.agents.steps import Timing, Toolbox
from retinue.agents.toolbelt import Toolbelt
from retinue.tools.base import AnyTool, Behavior, Progress, ToolContext
from retinue.tools.execution.calls import LeasePort, ToolCall
from retinue.tools.execution.inner import calls_of_code, wrapped
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.extension.skills.book import NO_SKILLS, SkillBook
from retinue.tools.files.state import FileState
from retinue.tools.lasting import Lasting
from retinue.tools.mcp.ports import McpPort
from retinue.tools.people.ports import HumanPort
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.classifier import ModelClassifier
from retinue.tools.permissions.denials import Denials
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.ports import (
    BoardPort,
    ChildPort,
    LanguagePort,
    MailPort,
    SearchProvider,
    ServerSearchPort,
    ShellPort,
)
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.deferral import SEARCH_TOOL
from retinue.tools.registry.filters import PoolFilter, PoolMode
from retinue.tools.registry.needs import LACKS, lacking
from retinue.tools.registry.pool import ToolPool
from retinue.tools.registry.pool import assemble as assemble_pool
from retinue.tools.results.store import ResultStore
from retinue.tools.settings.model import NO_SETTINGS, Settings
from retinue.tools.shell.sandbox.policy import NO_SANDBOX, SandboxUse
from retinue.tools.team.crew_ports import PeersPort, TeamAdminPort


@dataclass(frozen=True, slots=True)
class ToolPorts:
    """What an agent's tools ask of their surroundings. None: this agent has no such thing.

    search  makes what searches the web, given the search that the model's provider may have itself
    """

    leases: LeasePort
    shell: ShellPort
    board: BoardPort | None = None
    mail: MailPort | None = None
    children: ChildPort | None = None
    mcp: McpPort | None = None
    human: HumanPort | None = None
    worktrees: WorktreeGit | None = None
    peers: PeersPort | None = None
    team_admin: TeamAdminPort | None = None
    languages: LanguagePort | None = None
    search: Callable[[ServerSearchPort], SearchProvider | None] | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """For people who look on: text as it is spoken, and what running calls show."""

    text: Callable[[str], None] | None = None
    progress: Callable[[ToolCall, Progress], None] | None = None


def assemble_agent(
    boot: AgentBoot,
    records: Iterable[AgentRecord],
    ports: AgentPorts,
    tool_ports: ToolPorts,
    facts: Facts,
    *,
    env: Mapping[str, str],
    tools: Iterable[AnyTool] | None = None,
    timing: Timing | None = None,
    redact: Callable[[str], str] = str,
    watch: Watch | None = None,
    sandbox: SandboxUse = NO_SANDBOX,
    settings: Settings = NO_SETTINGS,
    skills: SkillBook = NO_SKILLS,
) -> AgentLoop:
    """`records` is everything that the ledger has of this agent, in order. Raises SpecError for a rule that is none.

    env      the whole environment of its commands; `HOME` in it is where `~` of a rule leads
    sandbox  how its commands use the sandbox that its shell has, or has not
    settings what settings files say; its rules and modes are in the boot already
    skills   what there is to be used, as it was read at the launch
    """
    timing = timing or Timing()
    watch = watch or Watch()
    records = tuple(records)
    conversation = Conversation.of(records)
    lasting = Lasting()
    standing = Standing(boot, conversation, ports.status, lasting.alive)
    journal = Journal(ports.ledger, conversation, standing.blocked, sleep=timing.sleep)
    policy = replace(permission_policy(boot, Path(env.get("HOME", "/nonexistent"))), denials=denials_of(records))
    side = SideQuestions(
        boot, ports.model, ports.budget, journal, clock=timing.clock, sleep=timing.sleep, chance=timing.chance
    )
    store = ResultStore(results_dir(boot), redact)
    hooks = hooked(
        boot,
        settings,
        policy,
        tool_ports.board,
        HookPorts(tool_ports.shell, env, side, journal, store, timing.clock),
    )
    policy = hooks.policy
    root = Path(boot.workspace.root)
    background = Background(boot.agent, journal, background_dir(boot), boot.background_after_s)
    human, git = tool_ports.human, tool_ports.worktrees
    ways = ways_of(boot, journal, standing, policy, store.folder, timing.sleep, human, git)
    context = ToolContext(
        agent=boot.agent,
        cwd=root,
        root=root,
        files=FileState(conversation.seen),
        shell=tool_ports.shell,
        board=hooks.board,
        mail=tool_ports.mail,
        children=tool_ports.children,
        background=background,
        extra_dirs=tuple(map(Path, boot.extra_dirs)),
        env=env,
        results_dir=store.folder,
        sandbox=sandbox,
        may_read=policy.may_read,
        history=OwnHistory(journal),
        mcp=tool_ports.mcp,
        peers=tool_ports.peers,
        team_admin=tool_ports.team_admin,
        lasting=lasting,
        side=side,
        search=tool_ports.search(side) if tool_ports.search is not None else None,
        languages=tool_ports.languages,
        web=settings.web,
        skills=skills,
        learn=_learner(boot, policy),
    )
    context = ways.into(context)
    tools = _all_tools(boot, tools)
    belt = Toolbelt(
        lambda others: tool_pool(boot, policy, tools, others, useless=useless_in(context, boot)),
        boot.tools.loading,
        conversation.loaded,
        mcp=tool_ports.mcp,
        strict=boot.tools.strict,
    )
    pipeline = Pipeline(
        belt,
        policy,
        tool_ports.leases,
        journal,
        store,
        opinions=hooks.life.opinions,
        afterwards=hooks.life.afterwards,
        classifier=ModelClassifier(side, settings.classifier) if settings.classifier.enabled else None,
        on_progress=watch.progress or _unseen,
        key_of=lambda ctx, call: call_key(boot.run, ctx.agent, conversation.turn, call.id),
        clock=timing.clock,
    )
    inner = tool_pool(boot, policy, wrapped(tools), useless=useless_in(context, boot))
    toolbox = Toolbox(
        system=system_prompt(boot, facts, belt.names, skills.listing()),
        belt=belt,
        runner=pipeline,
        context=replace(
            context,
            catalog=belt if boot.tools.loading != "all" else None,
            code=calls_of_code(tools, inner, pipeline, policy, Beside(journal)),
        ),
        store=store,
        ways=ways,
        lasting=lasting,
    )
    return AgentLoop(boot, ports, journal, standing, toolbox, timing, background, watch.text, hooks.life)


def denials_of(records: Iterable[AgentRecord]) -> Denials:
    """The counters of denials as an earlier incarnation left them."""
    denials = Denials()
    for record in records:
        if isinstance(record, ToolFinished) and record.result.denied:
            denials.denied()
        elif isinstance(record, ToolFinished) and record.result.ran:
            denials.allowed()
    return denials


def _learner(boot: AgentBoot, policy: PermissionPolicy) -> Callable[[Behavior, str], None]:
    """Skills may give rules to an agent; to a sub-agent only such as deny, since its parent's rights bound its own."""

    def learn(behavior: Behavior, rule: str) -> None:
        if behavior == "deny" or boot.role != "child":
            policy.learn(behavior, rule)

    return learn


def useless_in(context: ToolContext, boot: AgentBoot) -> Callable[[AnyTool], str]:
    """Which tools have nothing to work with: what they ask for is not there, or nothing is deferred."""
    unsearched = LACKS["catalog"] if boot.tools.loading == "all" else ""
    return lambda tool: unsearched if tool.name == SEARCH_TOOL else lacking(tool, context)


def tool_pool(
    boot: AgentBoot,
    policy: PermissionPolicy,
    tools: Iterable[AnyTool] | None = None,
    others: Iterable[AnyTool] = (),
    useless: Callable[[AnyTool], str] | None = None,
) -> ToolPool:
    """What the model sees: less what no set of rights would ever let pass. All built-in tools when none are given."""
    denied = [name for rights in policy.rights for name in rights.book.denied_tools()]
    own = boot.tools
    return assemble_pool(
        _all_tools(boot, tools),
        others,
        denied=denied,
        chosen=PoolFilter(own.allow, own.deny),
        mode=PoolMode(simple=own.simple, repl=own.repl, nested=boot.role == "child"),
        useless=useless,
    )


def _all_tools(boot: AgentBoot, given: Iterable[AnyTool] | None) -> tuple[AnyTool, ...]:
    return builtin_tools(embedded_search=boot.tools.embedded_search) if given is None else tuple(given)


def permission_policy(boot: AgentBoot, home: Path) -> PermissionPolicy:
    """All of `boot.rights` must allow; the first are the agent's own."""
    anchors = Anchors(Path(boot.workspace.root), home)
    return PermissionPolicy(
        tuple(
            Rights(
                RuleBook.of(
                    [
                        RuleTexts(each.source, each.allow, each.ask, each.deny, Path(each.base) if each.base else None)
                        for each in rights.rules
                    ],
                    anchors,
                ),
                rights.mode,
                whose="" if index == 0 else (boot.parent or ""),
            )
            for index, rights in enumerate(boot.rights)
        )
    )


def results_dir(boot: AgentBoot) -> Path:
    """Where results and messages that were too large lie; the agent may read there."""
    return Path(boot.run_dir) / "tool-results" / boot.agent


def background_dir(boot: AgentBoot) -> Path:
    """Where the output of its background tasks lies; the agent may read there."""
    return Path(boot.run_dir) / "tasks" / boot.agent


def _unseen(call: ToolCall, progress: Progress) -> None:
    del call, progress
