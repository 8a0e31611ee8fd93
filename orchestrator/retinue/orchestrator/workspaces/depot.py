"""The Depot: a bare repository of the run's own, from which every workspace is added and in which all merging happens.

It borrows the user's objects and copies nothing. It never borrows from an agent: an agent's work is taken by a checked
fetch. No git of ours runs in it, or in an agent's repository, while their configuration is not as we wrote it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.bare import BareRepository
from retinue.orchestrator.workspaces.facts import DepotFacts, RunPaths, Workspace
from retinue.orchestrator.workspaces.git import (
    FETCH_FLAGS,
    Git,
    GitError,
    GitRefused,
    GitResult,
    Identity,
    lacks,
    upload_pack_command,
)
from retinue.orchestrator.workspaces.include import copy_included, exclude_text, included_files
from retinue.orchestrator.workspaces.snapshot import Snapshots, commit_tree
from retinue.orchestrator.workspaces.user_repo import Base, UserRepo
from retinue.orchestrator.workspaces.worktrees import admin_folder, discard, verify_start
from retinue.tools.errors import InvariantBroken, StateError


@dataclass(slots=True)
class Depot:
    git: Git
    paths: RunPaths
    facts: DepotFacts
    workspaces: dict[str, Workspace] = field(default_factory=dict[str, Workspace])
    _checkpointing: dict[str, asyncio.Lock] = field(default_factory=dict[str, asyncio.Lock])

    # --- its life ------------------------------------------------------------------------------------------------

    @classmethod
    async def create(cls, git: Git, run_dir: Path, run: str, user: UserRepo, base: Base) -> Depot:
        """Pin the base in the user's repository and make the run's Depot. For base `worktree`, take the snapshot."""
        paths = RunPaths(absolute(run_dir))
        if paths.depot.exists():
            raise StateError(f"{paths.depot} is there already: run {run} was launched before; `retinue resume {run}`")
        include = await included_files(user)
        facts = DepotFacts(
            run=names.check_run(run),
            base_kind=base.kind,
            base_sha=base.sha,
            user_root=str(user.root),
            user_git_dir=str(user.git_dir),
            user_objects=str(user.objects),
            object_format=base.object_format,
            settings=dict(user.config.settings),
            include=include,
        )
        await user.pin(run, base.sha)
        depot = cls(git, paths, facts)
        try:
            await asyncio.to_thread(depot.write_new, exclude_text(user, include), _read_shallow(user.common_dir))
            if base.kind == "worktree":
                await depot._snapshot_user(user)
        except BaseException:
            await asyncio.to_thread(shutil.rmtree, paths.depot, ignore_errors=True)
            await user.unpin(run)
            raise
        return depot

    @classmethod
    async def open(cls, git: Git, run_dir: Path) -> Depot:
        """The Depot of a run that was launched before, with the workspaces that it has."""
        paths = RunPaths(absolute(run_dir))
        facts = await asyncio.to_thread(_read_facts, paths)
        depot = cls(git, paths, facts)
        for file in sorted((paths.own / "agents").glob("*.json")):
            workspace = Workspace.model_validate_json(file.read_text())
            depot.workspaces[workspace.agent] = workspace
        depot.guard()
        return depot

    def write_new(self, exclude: str, shallow: bytes | None) -> None:
        for folder in (self.paths.run_dir / "agents", self.paths.run_dir / "wt", self.paths.tmp):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sha = self.facts.base_sha
        self._bare().write(exclude=exclude, shallow=shallow, refs={names.TIP: sha, names.BASE: sha})
        for folder in ("index", "agents"):
            (self.paths.own / folder).mkdir(parents=True)
        self._write_facts()

    def _write_facts(self) -> None:
        (self.paths.own / "depot.json").write_text(self.facts.model_dump_json(indent=1))

    async def _snapshot_user(self, user: UserRepo) -> None:
        index = self.paths.index(".base")
        snapshots = Snapshots(self.git, self.paths.depot, user.root, index)
        await snapshots.seed(self.facts.base_sha, user.git_dir / "index")
        tree = await snapshots.tree()
        head = self.facts.base_sha
        sha = await commit_tree(
            self.git, self.paths.depot, tree, (head,), "Uncommitted changes at the launch of the run\n"
        )
        for ref in (names.TIP, names.BASE):
            await self.run(["update-ref", ref, sha, head])
        await user.fetch_from(self.paths.depot, f"+{names.BASE}:{names.pin_ref(self.facts.run)}")
        index.unlink()
        self.facts = self.facts.model_copy(update={"base_sha": sha})
        self._write_facts()

    # --- git, guarded --------------------------------------------------------------------------------------------

    def guard(self, *agents: str) -> None:
        """Raise GuardTripped when the configuration of the Depot, or of these agents' repositories, has changed."""
        self._bare().check()
        for agent in agents:
            self._agent_bare(self.workspace(agent)).check()

    def restore_configuration(self, agent: str) -> None:
        """Put the configuration of an agent's repository back to what we wrote; its hooks are removed.

        StateError: too little of the repository is left.
        """
        repository = self._agent_bare(self.workspace(agent))
        try:
            repository.restore()
        except OSError as error:
            trouble = f"the configuration of {repository.path} cannot be put back: {error}"
            raise (GitError(trouble) if lacks(error) else StateError(trouble)) from error

    async def run(
        self,
        args: Sequence[str],
        *,
        purpose: str = "",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        config: Sequence[tuple[str, str]] = (),
        stdin: str | None = None,
        check: bool = True,
    ) -> GitResult:
        """Our git in the Depot."""
        self.guard()
        return await self.git.run(
            args, purpose=purpose, git_dir=self.paths.depot, cwd=cwd, env=env, config=config, stdin=stdin, check=check
        )

    async def run_in_agent(
        self,
        agent: str,
        args: Sequence[str],
        *,
        purpose: str = "",
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> GitResult:
        """Our git in an agent's bare repository, never in its worktree."""
        self.guard(agent)
        repository = self.workspace(agent).git_dir
        return await self.git.run(args, purpose=purpose, git_dir=repository, cwd=repository, env=env, stdin=stdin)

    async def fetch_from_agent(self, agent: str, refspecs: Iterable[str], *, purpose: str) -> None:
        self.guard(agent)
        repository = self.workspace(agent).git_dir
        await self.run(
            ["fetch", *FETCH_FLAGS, f"--upload-pack={upload_pack_command()}", str(repository), *refspecs],
            purpose=purpose,
            config=[("fetch.fsckObjects", "true")],
        )

    async def commit_of(self, name: str) -> str | None:
        found = await self.run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}"], check=False
        )
        return found.line if found.code == 0 else None

    # --- the tip -------------------------------------------------------------------------------------------------

    async def tip(self) -> str:
        self.guard()
        # A loose ref is the truth wherever there is one, and reading it costs no process for each of many workspaces.
        sha = _loose(self.paths.depot / names.TIP) or await self.commit_of(names.TIP)
        if sha is None:
            raise StateError(f"{self.paths.depot} has no tip any more; the last one is in the run's ledger")
        return sha

    async def advance_tip(self, expected: str, new: str) -> None:
        """Move the tip from exactly `expected` to `new`."""
        moved = await self.run(["update-ref", "--no-deref", names.TIP, new, expected], check=False)
        if moved.code != 0:
            raise StateError(
                f"the team's tip is not at {expected[:12]} any more; nothing was merged ({moved.stderr.strip()})"
            )

    async def publish_tip(self) -> tuple[str, ...]:
        """Show the tip to every agent as `team/tip`. Answers the agents that could not be told."""
        sha = await self.tip()
        agents = list(self.workspaces)
        told = await asyncio.gather(*(self._publish(agent, sha) for agent in agents), return_exceptions=True)
        for outcome in told:
            if isinstance(outcome, BaseException) and not isinstance(outcome, GitError | StateError):
                raise outcome
        return tuple(agent for agent, outcome in zip(agents, told, strict=True) if outcome is not None)

    async def _publish(self, agent: str, sha: str) -> None:
        await self.run_in_agent(
            agent, ["update-ref", "--no-deref", names.TEAM_TIP, sha], purpose=f"showing {agent} the tip"
        )

    # --- workspaces ----------------------------------------------------------------------------------------------

    def workspace(self, agent: str) -> Workspace:
        try:
            return self.workspaces[agent]
        except KeyError:
            raise StateError(f"agent {agent} has no workspace in run {self.facts.run}") from None

    async def add_agent(
        self, agent: str, identity: Identity, *, branch: str | None = None, start: str | None = None
    ) -> Workspace:
        """A repository and a locked worktree for an agent, on a branch of its own at the tip or `start`, checked."""
        names.check_agent(agent)
        if agent in self.workspaces:
            raise InvariantBroken(f"agent {agent} has a workspace already")
        self.guard()
        tip = await self.tip()
        workspace = Workspace(
            agent=agent,
            path=self.paths.worktree(agent),
            git_dir=self.paths.repository(agent),
            branch=branch or names.agent_branch(self.facts.run, agent),
            base_sha=start or tip,
            name=identity.name,
            email=identity.email,
        )
        if not names.is_branch(workspace.branch) or not names.is_sha(workspace.base_sha):
            raise InvariantBroken(f"cannot start {agent} on branch {workspace.branch!r} at {workspace.base_sha!r}")
        try:
            await self._make(workspace, tip)
        except BaseException:
            await asyncio.to_thread(discard, workspace.path, workspace.git_dir)
            raise
        self.workspaces[agent] = workspace
        return workspace

    async def _make(self, workspace: Workspace, tip: str) -> None:
        await asyncio.to_thread(self._write_repository, workspace, tip)
        reason = f"workspace of agent {workspace.agent} in run {self.facts.run}"
        command = ["worktree", "add", "--quiet", "--lock", "--reason", reason, "--no-track", "-b", workspace.branch]
        await self.git.run(
            [*command, str(workspace.path), workspace.base_sha],
            purpose=f"making the worktree of {workspace.agent}",
            git_dir=workspace.git_dir,
        )
        await asyncio.to_thread(self._finish, workspace)

    def _write_repository(self, workspace: Workspace, tip: str) -> None:
        # Left-overs of a crash in here: no agent was ever started in them.
        discard(workspace.path, workspace.git_dir)
        exclude = (self.paths.depot / "info/exclude").read_text("utf-8", "surrogateescape")
        self._agent_bare(workspace).write(
            exclude=exclude, shallow=_read_shallow(self.paths.depot), refs={names.TEAM_TIP: tip}
        )

    def _finish(self, workspace: Workspace) -> None:
        verify_start(workspace.path, workspace.git_dir, workspace.branch, workspace.base_sha)
        shutil.copy2(admin_folder(workspace.path, workspace.git_dir) / "index", self.paths.index(workspace.agent))
        copy_included(Path(self.facts.user_root), self.facts.include, workspace.path)
        self.paths.facts_of(workspace.agent).write_text(workspace.model_dump_json(indent=1))

    def forget(self, agent: str) -> None:
        """Drop what is known of an agent whose workspace is gone."""
        del self.workspaces[agent]
        self.paths.facts_of(agent).unlink(missing_ok=True)
        self.paths.index(agent).unlink(missing_ok=True)

    async def take(self, agent: str, branch: str, sha: str) -> None:
        """Bring a submitted branch into the Depot, its objects checked, and only if it still stands at `sha`.

        StateError: what was submitted cannot be taken. Everything else is the machinery's trouble, and nobody's work.
        """
        if not names.is_branch(branch) or not names.is_sha(sha):
            raise StateError(f"{agent} submitted {branch!r} at {sha!r}, which is no branch and commit")
        ref = names.submitted_ref(agent)
        try:
            await self.fetch_from_agent(agent, [f"+refs/heads/{branch}:{ref}"], purpose=f"taking the work of {agent}")
        except GitRefused as refusal:
            await self.run(["cat-file", "-e", f"{names.TIP}^{{tree}}"], purpose="looking whether the Depot is whole")
            raise StateError(
                f"branch {branch} cannot be taken from your repository {self.workspace(agent).git_dir}. {refusal}\n"
                f"Commit your work in your worktree so that `git fsck` there is content, and complete the task again."
            ) from refusal
        arrived = await self.commit_of(ref)
        if arrived != sha:
            raise StateError(f"branch {branch} of {agent} is at {arrived}, not at the submitted {sha}; submit it again")

    # --- checkpoints ---------------------------------------------------------------------------------------------

    async def checkpoint(self, agent: str) -> str | None:
        """Record all files of an agent's worktree that are not ignored. None when nothing changed."""
        workspace = self.workspace(agent)
        async with self._checkpointing.setdefault(agent, asyncio.Lock()):
            self.guard()
            index = self.paths.index(agent)
            snapshots = Snapshots(self.git, self.paths.depot, workspace.path, index)
            if not index.is_file():
                await snapshots.seed(workspace.base_sha)
            ref = names.checkpoint_ref(agent)
            last = await self.commit_of(ref)
            parent = last or workspace.base_sha
            tree, known = await asyncio.gather(snapshots.tree(), self.run(["rev-parse", f"{parent}^{{tree}}"]))
            if tree == known.line:
                return None
            sha = await commit_tree(self.git, self.paths.depot, tree, (parent,), f"Checkpoint of {agent}\n")
            await self.run(
                ["update-ref", "--no-deref", ref, sha, last or "0" * len(sha)], purpose=f"checkpoint of {agent}"
            )
            return sha

    # --- configuration -------------------------------------------------------------------------------------------

    def _bare(self) -> BareRepository:
        facts = self.facts
        return BareRepository(
            path=self.paths.depot,
            object_format=facts.object_format,
            objects=(Path(facts.user_objects),),
            head=names.TIP,
            settings=facts.settings,
        )

    def _agent_bare(self, workspace: Workspace) -> BareRepository:
        facts = self.facts
        return BareRepository(
            path=workspace.git_dir,
            object_format=facts.object_format,
            objects=(self.paths.depot / "objects", Path(facts.user_objects)),
            head=f"refs/heads/{workspace.branch}",
            settings=facts.settings,
            extra=(
                ("user", "name", workspace.name),
                ("user", "email", workspace.email),
                ('remote "team"', "url", str(self.paths.depot)),
                ('remote "team"', "fetch", f"+{names.TIP}:{names.TEAM_TIP}"),
                ('remote "team"', "pushurl", "work-is-merged-by-completing-the-task"),
            ),
        )


def absolute(path: Path) -> Path:
    return path.resolve()


def _loose(ref: Path) -> str | None:
    sha = ref.read_text().strip() if ref.is_file() else ""
    return sha if names.is_sha(sha) else None


def _read_facts(paths: RunPaths) -> DepotFacts:
    try:
        facts = DepotFacts.model_validate_json((paths.own / "depot.json").read_text())
    except FileNotFoundError:
        raise StateError(f"{paths.run_dir}: this run has no Depot; it was never launched, or was cleaned") from None
    if not Path(facts.user_objects).is_dir() and (paths.depot / "objects/info/alternates").exists():
        raise StateError(f"run {facts.run} borrows objects from {facts.user_root}, which is gone; put it back there")
    return facts


def _read_shallow(git_dir: Path) -> bytes | None:
    file = git_dir / "shallow"
    return file.read_bytes() if file.is_file() else None
