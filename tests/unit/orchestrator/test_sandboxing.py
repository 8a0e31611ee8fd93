"""How a spec and what works on a machine become the sandbox of a run, and how that is said."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from retinue.orchestrator.cli.plan_text import plan_lines
from retinue.orchestrator.cli.up import ask_trust
from retinue.orchestrator.sandboxing import Sight, agent_policy, plan_sandbox, sandbox_text, use_of
from retinue.orchestrator.spec import load_spec_text
from retinue.orchestrator.team.plan import CheckCommand, LaunchPlan, SandboxPlan
from retinue.tools.errors import SpecError
from retinue.tools.shell.sandbox.result import Probe
from support.teams import boot_of

HOME = Path("/home/ada")
BUBBLEWRAP = Probe(mechanism="bubblewrap", program="/usr/bin/bwrap")
LANDLOCK = Probe(mechanism="landlock")
NONE = Probe(mechanism=None, why=("bubblewrap: it is not there.", "Landlock: not either."))
SPEC = """\
version: 1
name: x
model: script:s.yaml
permissions: {mode: acceptEdits}
agents:
  ada: {prompt: hi}
  ben: {prompt: hi, permissions: {mode: default}}
"""


def planned(more: str = "", probe: Probe = BUBBLEWRAP, *, there: tuple[str, ...] = (), spec: str = SPEC) -> SandboxPlan:
    sight = Sight(HOME, lambda path: path, lambda path: str(path) in there)
    private = (HOME / ".ssh", HOME / ".cache/huggingface/token")
    return plan_sandbox(load_spec_text(spec + more, env={}).spec, probe, private, (), HOME / "shop", sight)


def launch(sandbox: SandboxPlan) -> LaunchPlan:
    return LaunchPlan(
        run="r",
        team="t",
        day="2026-12-01",
        repo="/home/ada/shop",
        base_kind="head",
        base_sha="",
        strategy="merge",
        into=None,
        members=(boot_of("ada"),),
        verify=(CheckCommand(command="make test", timeout_s=60),),
        sandbox=sandbox,
        script_folder="/",
        locks_dir="/",
    )


def test_by_default_the_sandbox_is_on_without_a_network() -> None:
    plan = planned()
    assert (plan.state, plan.probe, plan.team.network, plan.allow_unconfined) == ("on", BUBBLEWRAP, "off", False)
    assert sandbox_text(plan) == "bubblewrap, network off"


def test_where_nothing_works_the_sandbox_is_broken_and_never_merely_off() -> None:
    plan = planned(probe=NONE)
    assert (plan.state, plan.why) == ("broken", "bubblewrap: it is not there.; Landlock: not either.")
    use = use_of(plan, boot_of("ada"))
    assert (use.state, use.why) == ("broken", plan.why)
    assert "every command of an agent is a question" in sandbox_text(plan)


def test_only_the_spec_switches_it_off_and_that_is_said() -> None:
    plan = planned("sandbox: {enabled: false}\n")
    assert use_of(plan, boot_of("ada")).state == "off"
    assert sandbox_text(plan) == "off, since the spec says so: commands run with all your rights"


@pytest.mark.parametrize(
    ("more", "ada", "ben"),
    [
        ("", True, False),
        ("sandbox: {network: [packages.example.net]}", True, False),
        ("sandbox: {network: full}", False, False),
        ("sandbox: {network: full, auto_allow: true}", True, True),
        ("sandbox: {auto_allow: false}", False, False),
    ],
)
def test_unasked_runs_what_is_confined_where_edits_are_unasked_unless_all_of_the_network_is_open(
    more: str, ada: bool, ben: bool
) -> None:
    plan = planned(more)
    assert [use_of(plan, boot_of(name)).auto_allow for name in ("ada", "ben")] == [ada, ben]


def test_what_the_spec_says_reaches_the_shell_tool() -> None:
    use = use_of(planned("sandbox: {allow_unsandboxed: true, excluded_commands: [docker ps]}\n"), boot_of("ada"))
    assert (use.allow_unconfined, use.excluded) == (True, ("docker ps",))


def test_an_agent_has_its_own_terms_and_a_sub_agent_those_of_its_ancestor() -> None:
    spec = SPEC.replace(
        "ada: {prompt: hi}", "ada: {prompt: hi, sandbox: {network: full, hidden: [~/x], writable: [~/.npm]}}"
    )
    plan = planned("sandbox: {writable: [~/.cache]}\n", spec=spec)
    ada, ben = (agent_policy(plan, boot_of(name)) for name in ("ada", "ben"))
    assert (ada.network, ben.network) == ("full", "off")
    assert {HOME / ".cache", HOME / ".npm"} <= set(ada.writable)
    assert HOME / ".npm" not in ben.writable
    assert HOME / "x" in ada.hidden
    child = boot_of("ada-1").model_copy(update={"role": "child", "member": "ada"})
    assert agent_policy(plan, child).network == "full"
    assert sandbox_text(plan) == (
        "bubblewrap, network off; /home/ada/.cache may be changed; ada: network full, /home/ada/.npm may be changed"
    )


def test_a_private_place_that_is_not_there_is_not_made_in_a_folder_that_commands_may_change() -> None:
    token = str(HOME / ".cache/huggingface/token")
    writable = "sandbox: {writable: [~/.cache]}\n"
    assert token in planned().private
    assert token not in planned(writable).private
    assert token in planned(writable, there=(token,)).private


@pytest.mark.parametrize(
    ("spec", "place"),
    [
        (SPEC + "sandbox: {network: [packages.example.net]}\n", "sandbox.network"),
        (
            SPEC.replace("ada: {prompt: hi}", "ada: {prompt: hi, sandbox: {network: [packages.example.net]}}"),
            "agents.ada.sandbox.network",
        ),
    ],
)
def test_a_mechanism_that_cannot_hold_a_list_of_hosts_refuses_the_launch(spec: str, place: str) -> None:
    with pytest.raises(SpecError, match=rf"^{place}: landlock, .* write off or full, or have one of bubblewrap"):
        planned(spec=spec, probe=LANDLOCK)
    assert planned(spec=spec).state == "on"


class Terminal:
    def __init__(self, there: bool) -> None:
        self.there = there

    def isatty(self) -> bool:
        return self.there


def test_with_a_working_sandbox_the_commands_of_a_spec_need_no_trust(capsys: pytest.CaptureFixture[str]) -> None:
    ask_trust(launch(planned()), trust=False)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("sandbox", [planned(probe=NONE), planned("sandbox: {enabled: false}\n")])
def test_without_one_they_are_listed_and_refused_where_nobody_can_answer(
    sandbox: SandboxPlan, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(there=False))
    with pytest.raises(SpecError, match="pass --trust"):
        ask_trust(launch(sandbox), trust=False)
    assert "merge.verify: make test" in capsys.readouterr().err
    ask_trust(launch(sandbox), trust=True)


def test_plan_says_where_the_commands_run() -> None:
    tools = {"ada": ("Bash",)}
    confined = plan_lines(launch(planned()), "", tools)
    assert "  sandbox   bubblewrap, network off" in confined
    assert "runs these commands, in the sandbox" in confined
    free = plan_lines(launch(planned(probe=NONE)), "", tools)
    assert "runs these commands, outside of any sandbox (`up` asks first, or takes --trust)" in free
