"""Puts a team together from a run's directory: a new one, a resumed one, or one whose process was restarted."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.agents.definition import AgentDefinition, builtin_definitions
from retinue.agents.mail.envelopes import TEAM, Envelope, Prompt
from retinue.agents.model.prices import cost_usd
from retinue.agents.records import MailStored
from retinue.orchestrator.ledger.lock import RunLock
from retinue.orchestrator.ledger.records import MemberAdded, RunOpened, TaskChanged
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.orchestrator.merging.recovery import recover
from retinue.orchestrator.merging.submission import parse_submission, place_of, submission_script
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.confined import Shells, tidy
from retinue.orchestrator.runtime.port import AgentRuntime
from retinue.orchestrator.state.redact import Redactor
from retinue.orchestrator.team.checks import ShellChecks, run_setup
from retinue.orchestrator.team.core import TeamCore
from retinue.orchestrator.team.journal import LedgerJournal, Recovered, recover_team
from retinue.orchestrator.team.merges import MergeDriver
from retinue.orchestrator.team.plan import LaunchPlan
from retinue.orchestrator.team.service import Ended, TeamService
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.git import Git
from retinue.orchestrator.workspaces.landing import land_into
from retinue.orchestrator.workspaces.names import result_branch, result_ref
from retinue.orchestrator.workspaces.user_repo import UserRepo
from retinue.tools.errors import EnvironmentProblem, RetinueError, StateError
from retinue.tools.ports import ShellPort
from retinue.tools.text import one_line

log = logging.getLogger(__name__)
CHECK_S = 120.0
LOCK_S = 20.0
"""How long a restarted team waits for the lock of its predecessor, whose process may take a moment to be gone."""


class NoMerges:
    """Implements `MergePort` for a run in which nothing is merged."""

    busy = False

    async def catch_up(self) -> None:
        """Nothing is ever left undone."""

    def submit(self, task_id: str, agent: str, submission: object) -> None:
        raise AssertionError(f"task {task_id} of {agent} was submitted in a run that merges nothing: {submission}")


@dataclass(slots=True)
class TeamHost:
    """One running team and what it holds open. The run's lock is given back by the death of this process alone."""

    files: RunFiles
    service: TeamService
    writer: LedgerWriter
    lock: RunLock
    shells: Shells

    async def close(self) -> None:
        """The run is over or stopped: nothing is written or run any more, and no key is needed."""
        await self.shells.close()
        self.writer.close()
        tidy(self.files)
        try:
            self.files.forget_credentials()
        except EnvironmentProblem as problem:
            log.warning("the run's credentials could not be removed: %s", problem)


async def open_team(
    files: RunFiles, runtime: AgentRuntime, now: Callable[[], float] = time.time, *, restarted: bool = False
) -> TeamHost:
    """Holds the run's lock from here on. Raises StateError when another process has it.

    restarted   the team's process died, and this is the next one, which nobody asked for
    """
    lock = await _lock(files.dir.lock)
    try:
        recovered = await asyncio.to_thread(recover_team, files.dir.ledger, now())
        redact = Redactor(files.private.secrets).body
        writer = LedgerWriter.open(files.dir.ledger, "team", recovered.incarnation + 1, now, redact=redact)
        return await _assemble(files, runtime, now, lock, recovered, writer, restarted=restarted)
    except BaseException:
        lock.release()
        raise


async def _assemble(
    files: RunFiles,
    runtime: AgentRuntime,
    now: Callable[[], float],
    lock: RunLock,
    recovered: Recovered,
    writer: LedgerWriter,
    *,
    restarted: bool,
) -> TeamHost:
    plan = files.plan
    core = TeamCore(plan, recovered.state, LedgerJournal(writer), _environments(files, recovered), now)
    if recovered.state.opened is None:
        await _begin(core)
    budget = recovered.budget(plan.limits, cost_usd)
    git = Git(search_path=files.private.base.get("PATH", os.defpath))
    depot = await Depot.open(git, files.dir.root) if plan.has_depot else None
    shells = Shells(files, TEAM)
    finisher = Finisher(files, git, depot, shells)
    service = TeamService(
        core, runtime, budget, _kinds(plan).get, finisher.finish, recovered.started_at, recovered.uptime
    )
    if depot is not None:
        await run_setup(core, depot, shells.of_agent, files)
    merges = await _merges(core, depot, files, finisher, service, await shells.of_checks())
    await service.open(merges, restarted=restarted)
    if isinstance(merges, MergeDriver):
        core.own(merges.run())
    return TeamHost(files, service, writer, lock, shells)


def _kinds(plan: LaunchPlan) -> Mapping[str, AgentDefinition]:
    """What a sub-agent may be: what was found at the launch, and the built-in kinds."""
    return {**builtin_definitions(), **plan.definitions}


def _environments(files: RunFiles, recovered: Recovered) -> Callable[[AgentBoot], dict[str, str]]:
    def environment(boot: AgentBoot) -> dict[str, str]:
        owner = boot
        while owner.parent is not None and owner.parent in recovered.state.members:
            owner = recovered.state.members[owner.parent].boot
        return files.environment_of(boot, owner.name)

    return environment


async def _begin(core: TeamCore) -> None:
    """The first records of a run: what it is, who is in it, what is to be done, what each is told first."""
    plan = core.plan
    await core.record(
        RunOpened(
            run=plan.run,
            team=plan.team,
            repo=plan.repo,
            base_kind=plan.base_kind,
            base_sha=plan.base_sha,
            result_ref=result_ref(plan.run),
            strategy="merge" if plan.strategy == "merge" else "rebase" if plan.strategy == "rebase" else "none",
            usd=plan.limits.usd,
            requests=plan.limits.requests,
            tokens=plan.limits.tokens,
            wall_s=plan.limits.wall_s,
        ),
        *(MemberAdded(boot=boot) for boot in plan.members),
        *(TaskChanged(task=task, by="spec") for task in plan.tasks),
        *(
            MailStored(envelope=_prompt(boot.agent, plan.prompts[boot.name]))
            for boot in plan.members
            if boot.name in plan.prompts
        ),
    )


def _prompt(agent: str, text: str) -> Envelope:
    return Envelope(id=f"{agent}/prompt", sender=TEAM, recipient=agent, body=Prompt(text=text))


async def _merges(
    core: TeamCore,
    depot: Depot | None,
    files: RunFiles,
    finisher: Finisher,
    service: TeamService,
    shell: ShellPort,
) -> MergeDriver | NoMerges:
    if depot is None or core.plan.strategy == "none":
        return NoMerges()
    state = core.state
    withdrawn = [t.id for t in state.board.tasks.values() if t.status in ("deleted", "failed")]
    gone = [m.boot.agent for m in state.members.values() if m.ended is not None]
    leads = [m.boot.agent for m in state.living() if m.boot.role == "lead"]
    queue, effects = recover(
        state.queue,
        base=core.plan.base_sha,
        actual_tip=await depot.tip(),
        lead=leads[0] if leads else None,
        gone=gone,
        withdrawn=withdrawn,
    )
    checks = ShellChecks(shell, files.environment_of_checks(core.plan.members[0]), files.dir, core.plan.run)
    driver = MergeDriver(core, depot, queue, checks, finisher.mirror, service)
    driver.push(effects)
    return driver


@dataclass(slots=True)
class Finisher:
    """What the team does in the user's repository: show the result, and at the end move `merge.into`."""

    files: RunFiles
    git: Git
    depot: Depot | None
    shells: Shells

    async def mirror(self, tip: str) -> None:
        user = await self._user()
        plan = self.files.plan
        assert self.depot is not None
        known = await user.commit_of(result_ref(plan.run))
        if known != tip:
            await user.mirror_result(self.depot.paths.depot, plan.run, tip, known)

    async def finish(self, ok: bool) -> Ended:
        plan = self.files.plan
        if self.depot is None or plan.strategy == "none":
            return Ended("")
        if ok and plan.solo:
            try:
                await self._take_solo(self.depot)
            except RetinueError as error:
                return Ended(f"the work is in the agent's worktree and could not be taken: {error}")
        try:
            tip = await self.depot.tip()
            if tip == plan.base_sha:
                return Ended("nothing was changed" if plan.solo else "nothing was merged")
            await self.mirror(tip)
            if ok and plan.into is not None:
                landing = await land_into(await self._user(), plan.run, plan.into, tip, plan.into_sha)
                if landing.moved:
                    return Ended(f"{plan.into} holds the work", plan.into)
                left = f"{plan.into} was left alone ({landing.reason}); take the work with: {landing.command}"
                return Ended(left, result_branch(plan.run))
        except RetinueError as error:
            return Ended(f"the work is in the run's Depot, and your repository was left alone: {error}")
        return Ended(f"the work is on {result_branch(plan.run)}", result_branch(plan.run))

    async def _take_solo(self, depot: Depot) -> None:
        """The one agent of a run without tasks hands nothing in: what is in its worktree is its work."""
        boot = self.files.plan.members[0]
        if boot.workspace.isolation != "worktree":
            return
        shell = await self.shells.of_agent(boot)
        checks = ShellChecks(shell, self.files.environment_of(boot, boot.name), self.files.dir, self.files.plan.run)
        prompt = self.files.plan.prompts.get(boot.name, boot.name)
        script = submission_script(one_line(prompt, 72), place_of(depot.workspace(boot.agent)))
        outcome = await checks.run(script, Path(boot.workspace.root), CHECK_S)
        handed = parse_submission(outcome.output)
        tip = await depot.tip()
        if handed.sha != tip:
            await depot.take(boot.agent, handed.branch, handed.sha)
            await depot.advance_tip(tip, handed.sha)

    async def _user(self) -> UserRepo:
        return await UserRepo.open(self.git, Path(self.files.plan.repo))


async def _lock(path: Path) -> RunLock:
    deadline = asyncio.get_running_loop().time() + LOCK_S
    while True:
        try:
            return await asyncio.to_thread(RunLock.acquire, path)
        except StateError:
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(0.2)
