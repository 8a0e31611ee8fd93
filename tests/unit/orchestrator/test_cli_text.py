"""Small things that commands print: times, ages, states, plans."""

from __future__ import annotations

import pytest

from retinue.agents.boot import AgentBoot, AgentLimits, Rights, RuleSet, WorkspaceBoot
from retinue.orchestrator.cli.cleaning import seconds_of_age
from retinue.orchestrator.cli.context import standing_of
from retinue.orchestrator.cli.output import ago, iso, span
from retinue.orchestrator.cli.plan_text import plan_lines
from retinue.orchestrator.team.plan import CheckCommand, LaunchPlan
from retinue.tools.errors import SpecError
from retinue.tools.ports import TaskView
from support.past_runs import boot


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_599, "59 min"), (7_200, "2 h"), (86_400 * 9, "9 d")],
)
def test_a_span_of_time_has_one_unit(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_a_clock_that_was_put_back_shows_no_negative_time() -> None:
    assert ago(2_000.0, 1_000.0) == "0 s ago"


def test_what_never_began_has_no_time() -> None:
    assert ago(None, 1.0) == ""
    assert iso(None) is None


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5_400), ("12h", 43_200), ("7d", 604_800), (" 2w ", 1_209_600)])
def test_an_age_is_a_number_with_a_unit(text: str, seconds: float) -> None:
    assert seconds_of_age(text) == seconds


@pytest.mark.parametrize("text", ["", "7", "d", "1.5d", "-7d", "7 days", "7D", "9999999d"])
def test_anything_else_is_no_age(text: str) -> None:
    with pytest.raises(SpecError, match="90m"):
        seconds_of_age(text)


@pytest.mark.parametrize(
    ("phase", "live", "state"),
    [
        ("running", True, "live"),
        ("draining", True, "live"),
        ("running", False, "lost"),
        ("draining", False, "lost"),
        ("stopped", False, "stopped"),
        ("done", True, "done"),
        ("failed", False, "failed"),
    ],
)
def test_a_run_is_live_lost_or_over(phase: str, live: bool, state: str) -> None:
    assert standing_of(phase, live=live) == state


def plan_of(*members: AgentBoot, **changes: object) -> LaunchPlan:
    plain = {
        "run": "RUN",
        "team": "shop",
        "day": "2025-06-15",
        "repo": "/repo",
        "base_kind": "head",
        "base_sha": "b" * 40,
        "strategy": "merge",
        "into": None,
        "members": members,
        "script_folder": "/repo",
        "locks_dir": "/state/locks",
    }
    known = {key: value for key, value in (plain | changes).items() if key in LaunchPlan.model_fields}
    return LaunchPlan.model_validate(known)


def lines_of(plan: LaunchPlan) -> list[str]:
    return plan_lines(plan, "main at bbbbbbbbbb", {member.name: ("Bash", "Read") for member in plan.members})


def test_agents_that_differ_only_in_their_names_are_told_once() -> None:
    lines = lines_of(plan_of(boot("r", "ada"), boot("r", "ben"), boot("r", "cleo", "lead")))
    assert "ada, ben: teammate (coder) on script:play.yaml" in lines
    assert "  works in  a worktree each" in lines
    assert "cleo: lead (coder) on script:play.yaml" in lines
    assert lines.count("  tools     Bash, Read") == 2


def test_rights_are_told_with_deny_first() -> None:
    rules = (RuleSet(allow=("Read",), deny=("Bash(rm -rf /)",)), RuleSet(source="cli", ask=("Write",)))
    member = boot("r", "ada").model_copy(update={"rights": (Rights(mode="dontAsk", rules=rules),)})
    lines = lines_of(plan_of(member))
    at = lines.index("  rights    mode dontAsk")
    assert lines[at + 1 : at + 4] == ["  deny      Bash(rm -rf /)", "  ask       Write", "  allow     Read"]


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ({}, "branch retinue/RUN/result, by merge"),
        ({"into": "main"}, "branch retinue/RUN/result, by merge; at the end branch main"),
        ({"strategy": "none"}, "stays on the agents' branches"),
    ],
)
def test_the_place_of_the_result_is_told(changes: dict[str, object], result: str) -> None:
    assert f"  result    {result}" in lines_of(plan_of(boot("r", "ada"), **changes))


def test_an_agent_that_writes_in_the_checkout_is_told_as_such() -> None:
    member = boot("r", "ada").model_copy(update={"workspace": WorkspaceBoot(root="/repo", isolation="none")})
    lines = lines_of(plan_of(member))
    assert "  works in  writes in your checkout, /repo" in lines
    assert "  result    written into the folder; nothing is merged" in lines


def test_limits_tasks_and_commands_are_told() -> None:
    plan = plan_of(
        boot("r", "ada").model_copy(update={"limits": AgentLimits(tokens=1_000)}),
        limits=AgentLimits(usd=5.0, requests=200, wall_s=90.0),
        tasks=(TaskView(id="b", subject="Mend", owner="ada", blocked_by=("a",)), TaskView(id="a", subject="Look")),
        verify=(CheckCommand(command="make test", timeout_s=1.0),),
    )
    lines = lines_of(plan)
    assert "  limits    5 USD, 200 model requests, 1.5 min" in lines
    assert "  limits    1000 tokens" in lines
    assert "  b: Mend (ada, after a)" in lines
    assert "  a: Look (anyone)" in lines
    assert "  merge.verify: make test" in lines
