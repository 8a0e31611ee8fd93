"""The shells of a run's processes are confined as its launch decided: agents, set-up, checks, and lists of hosts."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.agents.boot import AgentBoot, WorkspaceBoot
from retinue.orchestrator.run_files import PrivateEnv, RunFiles
from retinue.orchestrator.runtime.confined import Shells, tidy
from retinue.orchestrator.state.paths import StateDir
from retinue.orchestrator.team.plan import LaunchPlan, MemberSandbox, SandboxPlan
from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.result import Probe
from support.teams import boot_of

ASK_A_HOST = """\
python3 - <<'END'
import urllib.error, urllib.request
try:
    urllib.request.urlopen("http://elsewhere.example/", timeout=20)
except urllib.error.HTTPError as error:
    print("the proxy says", error.code)
END
"""


def run_of(folder: Path, sandbox: SandboxPlan) -> tuple[RunFiles, AgentBoot]:
    """A run with one agent in a checkout, on disk; nothing of it is alive."""
    state = StateDir(folder / "state")
    run = state.create("r")
    checkout = folder / "checkout"
    (checkout / ".git").mkdir(parents=True)
    boot = boot_of("ada").model_copy(
        update={
            "workspace": WorkspaceBoot(root=str(checkout), isolation="none"),
            "repo": str(checkout),
            "run_dir": str(run.root),
        }
    )
    plan = LaunchPlan(
        run="r",
        team="t",
        day="2026-12-01",
        repo=str(checkout),
        base_kind="none",
        base_sha="",
        strategy="none",
        into=None,
        members=(boot,),
        sandbox=sandbox.model_copy(update={"private": (str(state.root),)}),
        script_folder="/",
        locks_dir=str(folder / "locks"),
    )
    files = RunFiles(run)
    files.write(plan, PrivateEnv(base={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)}))
    return files, boot


def working(**more: object) -> SandboxPlan:
    return SandboxPlan(state="on", probe=probe("bubblewrap")).model_copy(update=more)


async def said(files: RunFiles, boot: AgentBoot, shell: KeeperShell, command: str) -> ShellOutcome:
    return await shell.run(
        ShellRequest(
            command=command,
            cwd=Path(boot.workspace.root),
            env=files.environment_of(boot, "ada"),
            timeout_s=60,
            output_file=files.dir.tmp / "out",
        )
    )


async def test_a_command_has_a_temp_folder_that_it_can_write_and_sees_no_file_of_the_run(tmp_path: Path) -> None:
    files, boot = run_of(tmp_path, working())
    shell = await Shells(files, boot.agent).of_agent(boot)
    done = await said(files, boot, shell, 'echo x > "$TMPDIR/x" && mktemp > made && cat "$(mktemp)" && echo y > new')
    assert done.exit_code == 0, done.output
    assert (files.dir.tmp / boot.agent / "x").read_text() == "x\n"
    assert (tmp_path / "checkout/new").read_text() == "y\n"
    refused = await said(files, boot, shell, f"cat {files.dir.env}")
    assert refused.exit_code != 0


async def test_what_took_the_place_of_absent_files_is_gone_when_the_run_is(tmp_path: Path) -> None:
    files, boot = run_of(tmp_path, working())
    shell = await Shells(files, boot.agent).of_agent(boot)
    await said(files, boot, shell, "true")
    (tmp_path / "checkout/.claude").chmod(0o755)  # the user's own by now
    tidy(files)
    assert sorted(path.name for path in (tmp_path / "checkout").iterdir()) == [".claude", ".git"]


@pytest.mark.parametrize("state", ["off", "broken"])
async def test_where_the_launch_found_or_wanted_no_sandbox_a_shell_has_none(tmp_path: Path, state: str) -> None:
    files, boot = run_of(tmp_path, SandboxPlan.model_validate({"state": state}))
    shells = Shells(files, boot.agent)
    assert await shells.of_agent(boot) == await shells.of_checks() == KeeperShell()


async def test_a_mechanism_that_is_gone_since_the_launch_lets_nothing_run(tmp_path: Path) -> None:
    gone = Probe(mechanism="bubblewrap", program=str(tmp_path / "gone"), form="own user namespace")
    files, boot = run_of(tmp_path, SandboxPlan(state="on", probe=gone))
    shell = await Shells(files, boot.agent).of_agent(boot)
    done = await said(files, boot, shell, "echo ran > made; echo ran")
    assert (done.exit_code, "No such file" in done.output) == (126, True)
    assert not (tmp_path / "checkout/made").exists()


async def test_a_plan_that_says_on_without_a_mechanism_makes_no_shell(tmp_path: Path) -> None:
    files, boot = run_of(tmp_path, SandboxPlan(state="on"))
    with pytest.raises(EnvironmentProblem, match="No sandbox works here"):
        await Shells(files, boot.agent).of_agent(boot)


async def test_a_list_of_hosts_is_held_by_a_proxy_of_the_process_that_runs_the_commands(tmp_path: Path) -> None:
    files, boot = run_of(tmp_path, working(team=MemberSandbox(network=("pypi.example",))))
    shells = Shells(files, boot.agent)
    shell = await shells.of_agent(boot)
    assert "the proxy says 403" in (await said(files, boot, shell, ASK_A_HOST)).output
    assert [path.name for path in files.dir.tmp.glob("*.proxy-*")] == [f"{boot.agent}.proxy-0"]
    assert (await shells.of_agent(boot)).confinement == shell.confinement
    await shells.close()
    assert list(files.dir.tmp.glob("*.proxy-*")) == []


async def test_without_a_network_nothing_can_be_asked(tmp_path: Path) -> None:
    files, boot = run_of(tmp_path, working())
    shell = await Shells(files, boot.agent).of_agent(boot)
    done = await said(files, boot, shell, ASK_A_HOST)
    assert (done.exit_code, "the proxy says" in done.output) == (1, False)


async def test_a_run_that_a_link_leads_to_is_confined_in_its_real_place(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    files, boot = run_of(tmp_path / "link", working())
    tree = files.dir.root / "wt" / boot.agent
    tree.mkdir(parents=True)
    repository = files.dir.root / "agents" / f"{boot.agent}.git"
    for folder in ("objects/info", "info"):
        (repository / folder).mkdir(parents=True)
    there = WorkspaceBoot(root=str(tree), isolation="worktree", git_dir=str(repository))
    boot = boot.model_copy(update={"workspace": there})
    shell = await Shells(files, boot.agent).of_agent(boot)
    done = await said(files, boot, shell, 'echo x > "$TMPDIR/x" && echo y > new && pwd -P')
    assert (done.exit_code, done.output.strip()) == (0, str(tree.resolve())), done.output
    assert (tree / "new").read_text() == "y\n"
    assert (await said(files, boot, shell, f"cat {files.dir.env}")).exit_code != 0
