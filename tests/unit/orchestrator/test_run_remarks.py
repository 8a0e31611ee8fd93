"""What is said beside a run's answer: why it failed, what was denied, what to type next."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.agents.model.prices import cost_usd
from retinue.orchestrator.cli.run import Mode, remarks, spec_of
from retinue.orchestrator.cli.session import lost_words, next_steps
from retinue.orchestrator.ledger.records import PhaseChanged, RunPhase
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.state.paths import RunDir
from retinue.orchestrator.team.ending import Finish, at_rest
from retinue.orchestrator.view.run_state import RunView
from retinue.tools.errors import SpecError
from retinue.tools.ports import TaskView
from retinue.tools.text import counted

FILES = RunFiles(RunDir(Path("/nowhere/demo")))


def test_a_run_that_did_not_succeed_says_why() -> None:
    assert remarks("failed", "agent: no answer", []) == ["retinue: run failed: agent: no answer"]
    assert remarks("done", "all agents have finished", []) == []


def test_what_was_denied_is_said_with_what_allows_it() -> None:
    assert remarks("done", "", ["Edit", "Bash", "Bash"]) == [
        "3 calls were denied (Edit, Bash): --permission-mode acceptEdits allows edits, "
        "--allow 'Bash(…)' allows a command"
    ]
    assert remarks("done", "", ["Write"]) == ["1 call was denied (Write): --permission-mode acceptEdits allows edits"]


@pytest.mark.parametrize(
    ("phase", "result", "first"),
    [
        ("done", "retinue/demo/result", "retinue land demo --state-dir s"),
        ("failed", "retinue/demo/result", "retinue land demo --state-dir s"),
        ("done", "", "retinue logs demo --state-dir s"),
        ("done", "main", "retinue logs demo --state-dir s"),
        ("stopped", "", "retinue resume demo --state-dir s"),
    ],
)
def test_landing_is_the_next_step_only_where_a_result_waits(phase: RunPhase, result: str, first: str) -> None:
    view = RunView(cost_usd)
    view.apply("team", 1.0, PhaseChanged(phase=phase, result=result))
    assert next_steps(view, FILES, " --state-dir s")[0] == first


def test_a_run_without_its_cluster_says_so_and_how_to_go_on() -> None:
    assert lost_words(FILES, "") == (
        "run demo is not over, but its cluster is gone; `retinue resume demo` goes on with it"
    )


def test_one_is_not_plural() -> None:
    assert [counted(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
    done = TaskView(id="a", subject="A", status="merged")
    assert at_rest([done], [], {}) == [Finish(ok=True, detail="1 task merged or done")]


@pytest.mark.parametrize(("model", "usd"), [("anthropic:any-name", None), ("anthropic:claude-sonnet-5-5", 5.0)])
def test_a_model_without_a_known_price_has_no_limit_in_dollars(model: str, usd: float | None) -> None:
    spec = spec_of("Mend it", model, Mode.DEFAULT, in_place=False, turns=7).spec
    assert (spec.limits.usd, spec.limits.turns) == (usd, 7)


def test_a_prompt_without_words_is_refused() -> None:
    with pytest.raises(SpecError, match="PROMPT is empty"):
        spec_of(" \n", "script:s.yaml", Mode.DEFAULT, in_place=False, turns=7)
