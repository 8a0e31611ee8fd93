"""What an agent, a sub-agent and a check may change, read and see: from the paths of a run, nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from retinue.orchestrator.workspaces.confinement import (
    Ground,
    Terms,
    checkout_policy,
    checks_policy,
    worktree_policy,
)
from retinue.tools.shell.sandbox.policy import SandboxPolicy

STATE = Path("/home/ada/.local/state/retinue")
RUN = STATE / "runs/shop-1"
REPO = Path("/home/ada/shop")
GROUND = Ground(RUN, REPO, (REPO / ".git/objects",), (STATE, Path("/home/ada/.ssh")))
TREE = RUN / "wt/bob~1"
PLAIN = Terms()
OWN = RUN / "agents/bob~1.git"


def of_bob(terms: Terms = PLAIN) -> SandboxPolicy:
    return worktree_policy(GROUND, "bob~1", TREE, OWN, terms)


def access(policy: SandboxPolicy, path: Path) -> str:
    """What the deepest entry says of a path, as every mechanism reads a policy."""
    kinds = {
        **dict.fromkeys(policy.hidden, "hidden"),
        **dict.fromkeys(policy.readable, "read"),
        **dict.fromkeys((*policy.writable, policy.scratch), "write"),
        **dict.fromkeys(policy.protected, "read"),
    }
    return next((kinds[place] for place in (path, *path.parents) if place in kinds), "read")


def test_an_agent_changes_its_worktree_its_own_repository_and_its_temp_folder() -> None:
    policy = of_bob()
    assert policy.scratch == RUN / "tmp/bob~1"
    changed = (TREE / "src/a.py", OWN / "refs/heads/x", OWN / "objects/12/34", OWN / "packed-refs", OWN / "gc.pid")
    changed += (RUN / "beside/bob~1/one/src/a.py",)
    assert {access(policy, path) for path in (*changed, policy.scratch / "x")} == {"write"}


def test_an_agent_changes_nothing_that_makes_git_or_an_agent_run_something() -> None:
    policy = of_bob()
    own = ("config", "hooks", "hooks/pre-commit", "info/attributes", "info/exclude", "objects/info/alternates")
    tree = (".git", ".claude/settings.json", ".retinue", ".mcp.json")
    paths = (*(OWN / name for name in own), *(TREE / name for name in tree))
    assert {access(policy, path) for path in paths} == {"read"}


def test_an_agent_sees_nothing_of_other_agents_of_keys_and_of_the_run() -> None:
    policy = of_bob()
    of_run = (
        "control.key",
        "env.json",
        "ledger.rlog",
        "plan.json",
        "lock",
        "spec.yaml",
        "wt/eve~1/a",
        "verify/a",
        "beside/eve~1/a",
    )
    others = ("agents/eve~1.git/HEAD", "tmp/eve~1/x", "tool-results/eve~1/1.txt", "tasks/eve~1/1.txt", "cluster.json")
    paths = (*(RUN / name for name in (*of_run, *others)), STATE / "runs/other/env.json", Path("/home/ada/.ssh/id"))
    assert {access(policy, path) for path in paths} == {"hidden"}


def test_an_agent_reads_what_it_borrows_its_results_and_the_users_checkout_and_changes_none_of_it() -> None:
    policy = of_bob()
    own = (RUN / "tool-results/bob~1/1.txt", RUN / "tasks/bob~1/1.txt", RUN / "gitconfig")
    paths = (RUN / "depot.git/refs/retinue/tip", REPO / "README.md", REPO / ".git/objects/12/34", *own)
    assert {access(policy, path) for path in paths} == {"read"}


def test_a_sub_agent_works_in_its_parents_worktree_with_results_of_its_own() -> None:
    policy = worktree_policy(GROUND, "bob-1~1", TREE, OWN, Terms())
    assert access(policy, TREE / "a") == "write"
    assert access(policy, RUN / "tool-results/bob-1~1/x") == "read"
    assert access(policy, RUN / "tool-results/bob~1/x") == "hidden"


def test_in_the_launch_checkout_an_agent_changes_files_and_nothing_in_the_repository() -> None:
    policy = checkout_policy(GROUND, "bob~1", REPO, Terms())
    assert access(policy, REPO / "src/a.py") == "write"
    inside = (".git/config", ".git/hooks/pre-commit", ".git/commondir", ".git/refs/heads/main", ".git/objects/a")
    assert {access(policy, REPO / name) for name in (*inside, ".mcp.json", ".claude/x")} == {"read"}
    assert access(policy, RUN / "env.json") == "hidden"


def test_a_check_changes_the_verify_worktree_and_no_repository() -> None:
    policy = checks_policy(GROUND, "team", Terms())
    assert access(policy, RUN / "verify/build/x") == "write"
    unchanged = (RUN / "verify/.git", RUN / "depot.git/worktrees/verify/HEAD", REPO / "a")
    assert {access(policy, path) for path in unchanged} == {"read"}
    assert {access(policy, path) for path in (TREE / "a", OWN / "HEAD", RUN / "env.json")} == {"hidden"}


def test_a_mechanism_that_would_close_the_folder_protects_nothing_in_a_worktree_and_all_of_a_checkouts_git() -> None:
    coarse = replace(GROUND, fine=False)
    policy = worktree_policy(coarse, "bob~1", TREE, OWN, PLAIN)
    assert {access(policy, path) for path in (TREE / ".git", TREE / ".mcp.json", OWN / "config")} == {"write"}
    assert access(policy, RUN / "wt/eve~1/a") == "hidden"
    assert access(checkout_policy(coarse, "bob~1", REPO, PLAIN), REPO / ".git/config") == "read"


def test_what_the_spec_adds_is_added() -> None:
    policy = of_bob(Terms(("packages.example.net",), (Path("/home/ada/letters"),), (Path("/home/ada/.cache/pip"),)))
    assert policy.network == ("packages.example.net",)
    assert access(policy, Path("/home/ada/letters/1")) == "hidden"
    assert access(policy, Path("/home/ada/.cache/pip/x")) == "write"
