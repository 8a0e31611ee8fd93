"""Inside the sandbox an agent works with git as anybody does, and reaches nothing of others: not their refs, not their
objects, not what makes a git of somebody else run a program. What happened is always looked at from outside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from retinue.agents.boot import AgentBoot, WorkspaceBoot
from retinue.orchestrator.merging.submission import parse_submission, place_of, submission_script
from retinue.orchestrator.run_files import GIT_CONFIG, PrivateEnv, RunFiles
from retinue.orchestrator.sandboxing import CHECKS, agent_policy, policy_of_checks
from retinue.orchestrator.state.paths import RunDir
from retinue.orchestrator.team.plan import SandboxPlan
from retinue.orchestrator.workspaces.bare import GuardTripped
from retinue.orchestrator.workspaces.depot import Depot
from retinue.orchestrator.workspaces.facts import Workspace
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.probe import probe


@dataclass(frozen=True)
class Scene:
    """ada and bob with a worktree each; bob's first work is merged, and ada's shell is confined."""

    world: object
    depot: Depot
    ada: Workspace
    bob: Workspace
    boot: AgentBoot
    files: RunFiles
    plan: SandboxPlan

    async def run(
        self, command: str, *, confined: bool = True, policy: SandboxPolicy | None = None, cwd: Path | None = None
    ) -> ShellOutcome:
        """As ada, who knows where everything lies; `confined=False` shows what would happen without a sandbox."""
        policy = policy or agent_policy(self.plan, self.boot)
        policy.scratch.mkdir(parents=True, exist_ok=True)
        env = self.files.environment_of(self.boot, "ada") | {
            "DEPOT": str(self.depot.paths.depot),
            "OWN": str(self.ada.git_dir),
            "BOB": str(self.bob.git_dir),
            "BOBS": str(self.bob.path),
            "USERS": str(self.world.user),
            "RUN": str(self.world.run_dir),
            "BASE": self.ada.base_sha,
        }
        request = ShellRequest(
            command=command,
            cwd=cwd or self.ada.path,
            env=env,
            timeout_s=60,
            output_file=self.depot.paths.tmp / "out",
            confined=confined,
        )
        return await KeeperShell(confinement=confinement(policy, self.plan.probe)).run(request)

    async def works(self, command: str) -> str:
        outcome = await self.run(f"set -e; {command}")
        assert outcome.exit_code == 0, outcome.output
        return outcome.output.strip()

    def all_but_ada(self) -> dict[str, str]:
        """Everything that ada must not change, as text."""
        places = {
            "depot": self.depot.paths.depot,
            "bob's repository": self.bob.git_dir,
            "bob's worktree": self.bob.path,
            "user": self.world.user,
        }
        seen = {name: _content(folder) for name, folder in places.items()}
        own = ("config", "hooks", "info", "objects/info/alternates")
        seen |= {f"own {name}": _content(self.ada.git_dir / name) for name in own}
        seen |= {
            f"tree {name}": _content(self.ada.path / name) for name in (".git", ".claude", ".mcp.json", ".retinue")
        }
        return seen


def _content(place: Path) -> str:
    """Files only: an empty folder makes nobody do anything."""
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    return "\n".join(f"{path.relative_to(place)} {path.read_bytes().hex()}" for path in files)


@pytest.fixture(params=["bubblewrap", "landlock"])
async def scene(world, request: pytest.FixtureRequest) -> Scene:
    depot = await world.depot()
    ada, bob = await world.agent(depot, "ada~1"), await world.agent(depot, "bob~1")
    tip = await world.hand_in(depot, "bob~1", {"bob.txt": "bob\n"})
    await depot.advance_tip(depot.facts.base_sha, tip)
    await depot.publish_tip()
    files = RunFiles(RunDir(world.run_dir))
    files.dir.env.write_text(PrivateEnv(base=world.env).model_dump_json())
    files.git_config.write_text(GIT_CONFIG)
    boot = AgentBoot(
        run=world.run_dir.name,
        team="t",
        agent="ada~1",
        name="ada",
        incarnation=1,
        role="teammate",
        definition="d",
        description="",
        prompt="",
        model="m",
        workspace=WorkspaceBoot(root=str(ada.path), isolation="worktree", git_dir=str(ada.git_dir), branch=ada.branch),
        repo=str(world.user),
        run_dir=str(world.run_dir),
    )
    plan = SandboxPlan(state="on", probe=probe(request.param), private=(str(world.run_dir.parent),))
    return Scene(world, depot, ada, bob, boot, files, plan)


async def test_an_agent_commits_amends_rebases_stashes_branches_collects_garbage_and_looks_around(scene: Scene) -> None:
    before = scene.all_but_ada()
    await scene.works("echo 1 > one && git add one && git commit -q -m one")
    await scene.works("echo 2 >> one && git commit -q -a --amend -m 'one and two'")
    assert await scene.works("git diff --stat HEAD~ | tail -n 1") == "1 file changed, 2 insertions(+)"
    assert await scene.works("git log --format=%s -n 1; git status --porcelain; git show --format= --stat | wc -l") == (
        "one and two\n2"
    )
    await scene.works("echo 3 >> one && git stash -q && git stash pop -q && git checkout -q one")
    await scene.works("git branch side && git switch -q side && echo s > s && git add s && git commit -q -m side")
    await scene.works("git switch -q - && git merge -q --no-edit side && git branch -q -d side && git tag here")
    await scene.works("git fetch -q team && git rebase -q team/tip && git cherry-pick -n HEAD~ && git reset -q --hard")
    await scene.works("git gc -q && git fsck && git pack-refs --all && git branch -q x && git branch -q -D x")
    subjects = scene.world.sh("git log --format=%s -n 4 && cat bob.txt one s", scene.ada.path)
    assert subjects.splitlines() == ["side", "one and two", "work", "start", "bob", "1", "2", "s"]
    assert scene.all_but_ada() == before


async def test_what_an_agent_hands_in_from_the_sandbox_arrives_in_the_depot(scene: Scene) -> None:
    script = submission_script("Greet", place_of(scene.ada))
    handed = parse_submission((await scene.run(f"echo hi > greeting; {script}")).output)
    await scene.depot.take("ada~1", handed.branch, handed.sha)
    assert scene.world.sh(f"git -C {scene.depot.paths.depot} show {handed.sha}:greeting") == "hi"
    # Nothing that the sandbox put in place of what is absent was handed in.
    assert scene.world.sh(f"git -C {scene.depot.paths.depot} diff --name-only {scene.ada.base_sha} {handed.sha}") == (
        "greeting"
    )


async def test_the_guard_of_our_own_git_finds_a_confined_agents_repository_as_it_was(scene: Scene) -> None:
    await scene.works("git commit -q --allow-empty -m x; git gc -q")
    scene.depot.guard("ada~1", "bob~1")


FOR_OTHERS = {
    "the team's tip": 'git --git-dir="$DEPOT" update-ref refs/retinue/tip "$BASE"',
    "the tip, as a file": 'echo "$BASE" > "$DEPOT/refs/retinue/tip"',
    "a branch of another agent": 'git --git-dir="$BOB" branch -f mine "$BASE"',
    "the worktree of another agent": 'echo x > "$BOBS/bob.txt"',
    "the objects of the Depot, removed": 'rm -r "$DEPOT/objects"',
    "an object in the Depot, added": 'echo x | git --git-dir="$DEPOT" hash-object -w --stdin',
    "the configuration of the Depot": 'git --git-dir="$DEPOT" config core.fsmonitor /bin/false',
    "a push to the Depot": 'git push -q "$DEPOT" HEAD:refs/heads/mine',
    "a branch of the user's": 'git -C "$USERS" branch mine',
    "the configuration of the user's repository": "git -C \"$USERS\" config alias.x '!false'",
    "a hook of the user's": 'mkdir -p "$USERS/.git/hooks" && echo false > "$USERS/.git/hooks/post-checkout"',
    "the user's objects": 'rm -rf "$USERS"/.git/objects/??',
    "the user's checkout": 'echo x > "$USERS/lines.txt"',
}
OF_ITS_OWN = {
    "its own configuration": "git config core.fsmonitor /bin/false",
    "its own configuration, exchanged": 'cp "$OWN/config" "$OWN/c" && echo >> "$OWN/c" && mv -f "$OWN/c" "$OWN/config"',
    "a hook of its own": 'mkdir -p "$OWN/hooks" && echo false > "$OWN/hooks/pre-commit"',
    "hooks in a new folder": 'rm -rf "$OWN/hooks" && mkdir "$OWN/hooks" && echo false > "$OWN/hooks/pre-commit"',
    "attributes": "echo '* filter=x' > \"$OWN/info/attributes\"",
    "attributes in a new folder": 'mv "$OWN/info" "$OWN/old" && mkdir "$OWN/info" && echo x > "$OWN/info/attributes"',
    "whom it borrows from": 'echo /tmp/x >> "$OWN/objects/info/alternates"',
    "whom it borrows from, in a new folder": (
        'cd "$OWN/objects" && mv info old && mkdir info && echo > info/alternates'
    ),
    "the pointer to its repository": "rm -f .git && git init -q",
    "servers for its tools": "rm -rf .mcp.json; echo {} > .mcp.json",
    "hooks for its tools": "mkdir -p .claude && echo {} > .claude/settings.json",
    "settings of retinue": "rm -rf .retinue; mkdir .retinue && echo {} > .retinue/settings.yaml",
}


def _both(attempts: dict[str, str], *mechanisms: str) -> list[object]:
    return [
        pytest.param(mechanism, attempt, id=f"{mechanism}: {name}")
        for mechanism in mechanisms
        for name, attempt in attempts.items()
    ]


@pytest.mark.parametrize(
    ("scene", "attempt"),
    [*_both(FOR_OTHERS, "bubblewrap", "landlock"), *_both(OF_ITS_OWN, "bubblewrap")],
    indirect=["scene"],
)
async def test_an_agent_changes_nothing_that_others_rely_on(scene: Scene, attempt: str) -> None:
    before = scene.all_but_ada()
    confined = await scene.run(attempt)
    assert confined.exit_code != 0, confined.output
    assert scene.all_but_ada() == before
    for folder in (".mcp.json", ".claude", ".retinue"):
        if (scene.ada.path / folder).is_dir():
            (scene.ada.path / folder).rmdir()
    free = await scene.run(attempt, confined=False)
    assert free.exit_code == 0, free.output
    assert scene.all_but_ada() != before


@pytest.mark.parametrize("scene", ["landlock"], indirect=True)
@pytest.mark.parametrize(
    "change",
    [
        *("echo >> config", "echo false > hooks/pre-commit", "echo x > info/attributes", "echo . > commondir"),
        *("echo x > config.worktree", "echo /tmp/x >> objects/info/alternates"),
    ],
)
async def test_where_a_mechanism_cannot_protect_single_files_our_git_does_not_run_among_changed_ones(
    scene: Scene, change: str
) -> None:
    scene.depot.guard("ada~1")
    assert (await scene.run(f'cd "$OWN" && mkdir -p hooks && {change}')).exit_code == 0
    with pytest.raises(GuardTripped):
        scene.depot.guard("ada~1")
    scene.depot.restore_configuration("ada~1")
    (scene.ada.git_dir / "commondir").unlink(missing_ok=True)
    scene.depot.guard("ada~1")


HIDDEN = {
    "another agent's work": 'cat "$BOBS/bob.txt"',
    "another agent's repository": 'cat "$BOB/HEAD"',
    "the run's private file": 'cat "$RUN/env.json"',
    "the control key": 'cat "$RUN/control.key"',
    "the names of other agents": 'ls "$RUN/wt" | grep bob',
}


@pytest.mark.parametrize("look", HIDDEN.values(), ids=HIDDEN.keys())
async def test_an_agent_sees_nothing_of_others_and_of_the_run(scene: Scene, look: str) -> None:
    scene.files.dir.control_key.write_text("s3cret\n")
    confined = await scene.run(look)
    assert confined.exit_code != 0
    assert "s3cret" not in confined.output
    assert (await scene.run(look, confined=False)).exit_code == 0


async def test_a_check_reads_the_history_and_changes_no_repository(scene: Scene) -> None:
    verify = scene.depot.paths.verify
    await scene.depot.run(["worktree", "add", "--quiet", "--detach", str(verify), "HEAD"])
    policy = policy_of_checks(scene.plan, scene.world.run_dir, scene.world.user)
    assert policy.scratch.name == CHECKS
    before = scene.all_but_ada()
    attempts: dict[str, Callable[[ShellOutcome], bool]] = {
        "git log --oneline | wc -l; git status --porcelain; git diff --quiet && echo built > out": (
            lambda done: done.exit_code == 0
        ),
        'git commit -q --allow-empty -m x || git update-ref refs/heads/x HEAD || echo "$BASE" > "$DEPOT/HEAD"': (
            lambda done: done.exit_code != 0
        ),
        'echo x > "$USERS/x" || cat "$BOBS/bob.txt" "$OWN/HEAD" "$RUN/env.json"': lambda done: done.exit_code != 0,
    }
    for attempt, as_wished in attempts.items():
        outcome = await scene.run(attempt, policy=policy, cwd=verify)
        assert as_wished(outcome), outcome.output
    assert (verify / "out").read_text() == "built\n"
    assert scene.all_but_ada() == before


async def test_in_the_users_checkout_an_agent_changes_files_and_not_the_repository(scene: Scene) -> None:
    there = WorkspaceBoot(root=str(scene.world.user), isolation="none")
    policy = agent_policy(scene.plan, scene.boot.model_copy(update={"workspace": there}))
    git = _content(scene.world.user / ".git")
    done = await scene.run("echo x > src/new.txt && git status --porcelain", policy=policy, cwd=scene.world.user)
    assert (done.exit_code, done.output.strip()) == (0, "?? src/new.txt")
    for attempt in (
        "echo . > .git/commondir",
        "git commit -q --allow-empty -m x",
        "echo x >> .git/config",
        "rm -rf .git",
    ):
        refused = await scene.run(attempt, policy=policy, cwd=scene.world.user)
        assert refused.exit_code != 0, refused.output
    assert _content(scene.world.user / ".git") == git
