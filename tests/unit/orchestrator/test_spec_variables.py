"""`${VAR}`, secrets, and the flags that change a spec."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.orchestrator.spec import InvalidSpec, LoadedSpec, load_spec, load_spec_text

SMALL = """\
version: 1
name: small
model: script:s.yaml
agents:
  coder: {prompt: hi}
"""


def load(text: str, env: dict[str, str] | None = None, **kwargs) -> LoadedSpec:
    return load_spec_text(text, "team.yaml", env=env or {}, salt="salt", **kwargs)


def test_a_variable_is_filled_in_and_a_default_stands_in_for_one_that_is_not_set_or_empty() -> None:
    text = SMALL + 'repo: {base: "${B:-main}", path: "${HOME}/x", setup: ["${A:-}${E:-e}"]}\n'
    repo = load(text, {"HOME": "/h", "E": ""}).spec.repo
    assert (repo.base, repo.path, repo.setup) == ("main", "/h/x", ("e",))


def test_a_number_may_come_from_a_variable() -> None:
    limits = load(SMALL + 'limits: {turns: "${N}", usd: "${USD:-2.5}", wall: "${W:-5m}"}\n', {"N": "7"}).spec.limits
    assert (limits.turns, limits.usd, limits.wall) == (7, 2.5, 300)


def test_two_dollars_are_one() -> None:
    assert load(SMALL + "merge: {verify: 'echo $${HOME} $HOME'}\n").spec.merge.verify == ("echo ${HOME} $HOME",)


def test_what_is_written_for_the_model_is_left_alone() -> None:
    text = SMALL.replace("prompt: hi", "prompt: 'say ${HOME}', description: '${A}'")
    text += "description: 'a ${B}'\ntasks: [{subject: '${C}', description: '${D}'}]\n"
    spec = load(text, {"HOME": "/h"}).spec
    assert spec.agents["coder"].prompt == "say ${HOME}"
    assert (spec.agents["coder"].description, spec.description) == ("${A}", "a ${B}")
    assert (spec.tasks[0].subject, spec.tasks[0].description) == ("${C}", "${D}")


def test_the_text_that_is_kept_holds_no_value_of_a_variable() -> None:
    loaded = load(SMALL + 'env: {TOKEN: "${TOKEN}"}\n', {"TOKEN": "abcdefgh1"})
    assert loaded.spec.env == {"TOKEN": "abcdefgh1"}
    assert "abcdefgh1" not in loaded.source_text
    assert "abcdefgh1" not in loaded.variables.model_dump_json()


def test_a_changed_variable_is_noticed_without_its_value_being_kept() -> None:
    variables = load(SMALL + 'env: {A: "${A}", B: "${B:-b}", C: "${C:-c}"}\n', {"A": "1", "B": "2"}).variables
    assert variables.changed({"A": "1", "B": "2"}) == ()
    assert variables.changed({"A": "1", "B": "3"}) == ("B",)
    assert variables.changed({"C": "now set", "A": "1"}) == ("B", "C")
    assert variables.hashes["C"] is None


def test_the_same_value_has_another_hash_under_another_salt() -> None:
    text, env = SMALL + 'env: {A: "${A}"}\n', {"A": "1"}
    first, second = (load_spec_text(text, "x", env=env).variables for _ in range(2))
    assert first.salt != second.salt
    assert first.hashes != second.hashes


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("GITHUB_TOKEN", "12345678", ("12345678",)),
        ("DB_PASSWORD", "1234567", ()),
        ("SERVICE", "sk-ant-0123456789abcdefghij", ("sk-ant-0123456789abcdefghij",)),
        ("DATABASE_URL", "postgres://me:hunter22@db/x", ("postgres://me:hunter22@db/x", "hunter22")),
        ("PROJECT", "/home/me/some/long/folder1", ()),
        ("KEYBOARD", "qwertyuiop", ()),
    ],
)
def test_secrets_are_known_by_their_name_or_their_look(name: str, value: str, secrets: tuple[str, ...]) -> None:
    assert load(SMALL + f'env: {{{name}: "${{{name}}}"}}\n', {name: value}).secrets == secrets


def test_a_variable_under_another_name_is_as_secret_as_under_its_own() -> None:
    loaded = load(SMALL + 'env: {PLAIN: "x${API_KEY}"}\n', {"API_KEY": "abcdefgh"})
    assert "abcdefgh" in loaded.secrets


def test_a_secret_that_is_written_into_the_spec_is_hidden_and_warned_about() -> None:
    loaded = load(SMALL + "env: {API_TOKEN: abcdefgh}\n")
    assert loaded.secrets == ("abcdefgh",)
    assert [str(warning) for warning in loaded.warnings] == [
        "team.yaml:6:18: env.API_TOKEN: API_TOKEN looks like a secret, and stands in the spec; "
        "write ${API_TOKEN} and set it in the environment: copies of the spec keep what is written"
    ]


def test_a_flag_takes_the_place_of_what_is_written() -> None:
    text = SMALL + "tasks: [{subject: a}, {subject: b}]\n"
    flags = ["limits.usd=2", "tasks[1].owner=coder", "tasks.0.subject=new one", "merge.verify=[make a, make b]"]
    spec = load(text, overrides=[*flags, "agents.coder.limits.turns=3", "merge.into=main", "merge.into="]).spec
    assert spec.limits.usd == 2
    assert [(task.subject, task.owner) for task in spec.tasks] == [("new one", None), ("b", "coder")]
    assert spec.merge.verify == ("make a", "make b")
    assert spec.agents["coder"].limits.turns == 3
    assert spec.merge.into is None


def test_a_flag_may_add_to_a_list_and_to_the_agents() -> None:
    flags = ["tasks[0].subject=first", "tasks[1].subject=second", "agents.helper={replicas: 2}"]
    spec = load(SMALL, overrides=flags).spec
    assert [task.subject for task in spec.tasks] == ["first", "second"]
    assert [member.name for member in spec.members()] == ["coder", "helper-1", "helper-2"]


def test_a_flag_may_use_variables() -> None:
    loaded = load(SMALL, {"B": "dev"}, overrides=["repo.base=${B}"])
    assert loaded.spec.repo.base == "dev"
    assert "B" in loaded.variables.hashes


def test_the_model_flag_is_for_every_agent() -> None:
    text = SMALL.replace("prompt: hi", "prompt: hi, model: 'anthropic:other'")
    loaded = load(text, model="anthropic:m")
    assert [member.model.use for member in loaded.spec.members()] == ["anthropic:m"]
    assert loaded.model == "anthropic:m"


def test_the_model_flag_keeps_the_server_of_the_same_provider_only() -> None:
    text = SMALL.replace("script:s.yaml", "{use: 'anthropic:a', base_url: 'http://127.0.0.1:1'}")
    same, other = load(text, model="anthropic:b").spec.model, load(text, model="script:s.yaml").spec.model
    assert same is not None
    assert other is not None
    assert (same.use, same.base_url) == ("anthropic:b", "http://127.0.0.1:1")
    assert (other.use, other.base_url) == ("script:s.yaml", None)


def test_a_script_in_the_model_flag_starts_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "team.yaml").write_text(SMALL)
    monkeypatch.chdir(tmp_path)
    path = Path("specs/team.yaml")
    written, flag = load_spec(path, env={}), load_spec(path, env={}, model="script:s.yaml")
    assert written.spec.model is not None
    assert flag.spec.model is not None
    assert written.file(written.spec.model.name) == Path("specs/s.yaml")
    assert flag.file(flag.spec.model.name) == tmp_path / "s.yaml"


def test_a_flag_that_is_wrong_leaves_the_others_to_be_checked() -> None:
    with pytest.raises(InvalidSpec) as refused:
        load(SMALL, overrides=["nonsense", "limits.usd=0"])
    assert [problem.kind for problem in refused.value.problems] == ["override", "value"]
