"""What a good spec becomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.agents.definition import builtin_definitions
from retinue.orchestrator.spec import TOOLS, TeamSpec, load_spec, load_spec_text, starter_spec
from retinue.orchestrator.spec.check import cycles_of
from retinue.tools.errors import SpecError
from retinue.tools.registry.builtin import builtin_tools

ROOT = Path(__file__).parents[3]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml")) + sorted((ROOT / "configs" / "teams").glob("*.yaml"))
SMALL = """\
version: 1
name: small
model: script:s.yaml
agents:
  coder: {prompt: hi}
"""


def load(text: str, **kwargs) -> TeamSpec:
    return load_spec_text(text, "team.yaml", env=kwargs.pop("env", {}), **kwargs).spec


def test_the_smallest_spec_gets_the_documented_defaults() -> None:
    spec = load(SMALL)
    assert (spec.limits.usd, spec.limits.turns, spec.limits.wall, spec.limits.tokens) == (5, 200, 3600, None)
    assert (spec.repo.path, spec.repo.base, spec.repo.setup) == (".", "head", ())
    assert (spec.merge.into, spec.merge.strategy, spec.merge.verify) == (None, "merge", ())
    assert (spec.permissions.mode, spec.permissions.on_ask) == ("default", "deny")
    coder = spec.agents["coder"]
    assert (coder.definition, coder.isolation, coder.replicas, coder.effective_role) == (
        "general-purpose",
        "worktree",
        1,
        "teammate",
    )


def test_no_limit_in_dollars_is_a_word_of_its_own_and_survives_a_dump() -> None:
    spec = load(f"{SMALL}limits: {{usd: none}}\n")
    assert spec.limits.usd is None
    assert TeamSpec.model_validate(spec.model_dump()) == spec
    with pytest.raises(SpecError, match="found nothing"):
        load(f"{SMALL}limits:\n  usd:\n")


def test_short_forms_become_the_long_ones() -> None:
    spec = load(SMALL + "tasks: [{subject: x, done_when: make test}]\nmerge: {verify: make test}\n")
    assert spec.model is not None
    assert (spec.model.use, spec.model.provider, spec.model.name) == ("script:s.yaml", "script", "s.yaml")
    assert spec.tasks[0].done_when is not None
    assert spec.tasks[0].done_when.command == "make test"
    assert spec.merge.verify == ("make test",)


def test_nothing_is_the_same_as_no_verification() -> None:
    assert load(SMALL + "merge: {verify: null, into: null}\n").merge.verify == ()


@pytest.mark.parametrize(
    ("written", "seconds"), [("90s", 90), ("10m", 600), ("1h", 3600), ("1.5h", 5400), ("45", 45), (30, 30), (0.5, 0.5)]
)
def test_durations_are_seconds(written: object, seconds: float) -> None:
    assert load(SMALL + f"limits: {{wall: {written}}}\n").limits.wall == seconds


def test_words_of_older_yaml_stay_words() -> None:
    spec = load(SMALL.replace("prompt: hi", "prompt: no") + "tasks: [{subject: on}, {subject: 1:30}]\n")
    assert spec.agents["coder"].prompt == "no"
    assert [task.subject for task in spec.tasks] == ["on", "1:30"]


def test_tasks_without_an_id_are_numbered_by_their_place() -> None:
    spec = load(SMALL + "tasks: [{subject: a}, {id: own, subject: b}, {subject: c, blocked_by: [t1, own]}]\n")
    assert [task.id for task in spec.tasks] == ["t1", "own", "t3"]


def test_replicas_are_spelled_out_in_order_and_share_everything_but_the_name() -> None:
    spec = load(SMALL + "  tester: {replicas: 3}\n  boss: {definition: lead}\n")
    members = spec.members()
    assert [m.name for m in members] == ["coder", "tester-1", "tester-2", "tester-3", "boss"]
    assert [m.index for m in members] == [1, 1, 2, 3, 1]
    assert [m.role for m in members] == ["teammate"] * 4 + ["lead"]
    assert {m.key for m in members[1:4]} == {"tester"}


def test_a_member_has_the_team_s_settings_and_its_own() -> None:
    spec = load(
        SMALL
        + "  own: {model: 'anthropic:m', env: {B: '2', C: '3'}, permissions: {mode: dontAsk, allow: [Edit]}}\n"
        + "env: {A: '1', B: '1'}\npermissions: {mode: acceptEdits, allow: [Read], deny: [Write]}\n"
    )
    team, own = spec.members()
    assert (team.model.use, team.permissions.mode, team.env) == ("script:s.yaml", "acceptEdits", {"A": "1", "B": "1"})
    assert (own.model.use, own.permissions.mode, own.env) == ("anthropic:m", "dontAsk", {"A": "1", "B": "2", "C": "3"})
    assert (own.permissions.allow, own.permissions.deny) == (("Read", "Edit"), ("Write",))


def test_a_team_that_is_built_without_a_model_has_no_members() -> None:
    spec = TeamSpec.model_validate({"version": 1, "name": "x", "agents": {"a": {}}})
    with pytest.raises(SpecError, match=r"agents\.a: no model"):
        spec.members()


def test_anchors_and_aliases_may_be_used() -> None:
    spec = load(SMALL + "  a: &agent {prompt: same, limits: {turns: 5}}\n  b: *agent\n")
    assert spec.agents["a"] == spec.agents["b"]


def test_a_character_that_json_writes_as_two_escapes_is_one() -> None:
    spec = load(SMALL.replace("prompt: hi", r'prompt: "\ud83d\ude00"'))
    assert spec.agents["coder"].prompt == "\U0001f600"


def test_half_a_character_is_refused() -> None:
    with pytest.raises(SpecError, match=r"team\.yaml:5:19: half of a character, escaped as in"):
        load(SMALL.replace("prompt: hi", r'prompt: "\ud83d"'))


def test_a_later_tool_may_be_denied_already() -> None:
    spec = load(SMALL + "permissions: {deny: [WebFetch, mcp__docs]}\n")
    assert spec.permissions.deny == ("WebFetch", "mcp__docs")


def test_a_model_survives_its_own_dump() -> None:
    spec = load(starter_spec())
    assert TeamSpec.model_validate(spec.model_dump()) == spec
    assert TeamSpec.model_validate_json(spec.model_dump_json()) == spec


def test_the_spec_that_init_writes_loads() -> None:
    loaded = load_spec_text(starter_spec(), "team.yaml", env={})
    assert [m.name for m in loaded.spec.members()] == ["lead", "coder-1", "coder-2", "reviewer"]
    assert loaded.warnings == ()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_every_spec_that_comes_with_the_product_loads(path: Path) -> None:
    loaded = load_spec(path, env={})
    assert loaded.warnings == ()
    assert loaded.folder == path.parent
    assert loaded.source_text == path.read_text()


@pytest.mark.parametrize("text", [starter_spec(), *(path.read_text() for path in CONFIGS)])
def test_a_task_of_a_kind_that_cannot_edit_asks_for_words(text: str) -> None:
    spec = load_spec_text(text, "team.yaml", env={}).spec
    kinds = {member.name: builtin_definitions().get(member.spec.definition or "") for member in spec.members()}
    for task in spec.tasks:
        kind = kinds.get(task.owner or "")
        if kind is not None and kind.name == "reviewer":
            assert "SendMessage" in (task.description or ""), task.subject
            assert "put right" not in f"{task.subject} {task.description}"


def test_the_tools_that_a_spec_may_name_are_the_tools_that_there_are() -> None:
    assert sorted(tool.name for tool in builtin_tools()) == list(TOOLS)


def test_a_long_chain_of_tasks_is_no_cycle_and_takes_no_recursion() -> None:
    chain = {f"t{n}": (f"t{n - 1}",) if n else () for n in range(3000)}
    assert cycles_of(chain) == []
    assert len(cycles_of({**chain, "t0": ("t2999",)})) == 1


def test_a_cycle_that_hangs_behind_other_tasks_is_found_once() -> None:
    blockers = {"a": ("b",), "b": ("c",), "c": ("b",), "d": ("a", "b")}
    assert cycles_of(blockers) == [("b", "c")]
