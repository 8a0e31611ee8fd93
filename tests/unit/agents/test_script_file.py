"""The script's document: what it may say, and what a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from pydantic import JsonValue
from ruamel.yaml import YAML

from retinue.agents.model.script import script_schema
from retinue.agents.model.script_file import load_script, parse_script
from retinue.tools.errors import SpecError

FULL = """
version: 1
pace: {tokens_per_second: 50, first_token_s: 0.2}
agents:
  lead:
    - think: which first?
      say: I begin.
      calls:
        - Read: {file_path: a.py}
        - Read: {file_path: b.py}
      when: begin
      expect: {matches: begin}
      capture: {word: 'begin (\\w+)'}
      repeat: 2
      pace: {tokens_per_second: 10}
      fail: {status: 429, retry_after: 2, times: 3}
      usage: {input: 10}
      stop_reason: tool_use
    - wait_for: [{mail_from: "worker-*"}, {mail_from: "worker-*", matches: done}]
      calls: {Grep: [{pattern: x}, {pattern: y}], TaskList: }
  worker-*:
    - {say: hello, fail: drop}
  "*":
    - {say: no part in this, repeat: true}
"""


def test_a_script_may_say_all_that_the_page_names():
    script = parse_script(FULL)
    first, second = script.agents["lead"]
    assert [(call.tool, call.input) for call in first.calls] == [
        ("Read", {"file_path": "a.py"}),
        ("Read", {"file_path": "b.py"}),
    ]
    assert [(call.tool, call.input) for call in second.calls] == [
        ("Grep", {"pattern": "x"}),
        ("Grep", {"pattern": "y"}),
        ("TaskList", {}),
    ]
    assert first.when[0].matches == "begin"
    assert first.fail is not None
    assert (first.fail.status, first.fail.retry_after, first.fail.times) == (429, 2, 3)


def test_the_exact_name_goes_before_a_pattern_and_a_pattern_before_the_star():
    script = parse_script('agents: {"*": [{say: star}], w-*: [{say: pattern}], w-1: [{say: exact}]}')
    said = {name: turns[0].say for name in ("w-1", "w-2", "x") if (turns := script.turns_for(name))}
    assert said == {"w-1": "exact", "w-2": "pattern", "x": "star"}
    assert parse_script("agents: {a: [{say: x}]}").turns_for("b") is None


WRONG = [
    ("agents: [", "s.yaml:1:10: not YAML: "),
    ("- a", "s.yaml:1: a script is a mapping with the key `agents`"),
    ("", "s.yaml:1: a script is a mapping with the key `agents`"),
    ("version: 1", "s.yaml:1: agents: is missing"),
    ("version: 2\nagents: {a: [{say: x}]}", "s.yaml:1: version: input should be 1 (found: 2)"),
    ("agents:\n  a: [{say: x, say: y}]", 's.yaml:2:16: not YAML: found duplicate key "say"'),
    ("agents:\n  a:\n    - sya: x", "s.yaml:3: agents.a[0].sya: no such key; did you mean say? allowed: calls,"),
    ("agents:\n  a:\n    - say: 3", "s.yaml:3: agents.a[0].say: input should be a valid string (found: 3)"),
    ("agents:\n  a:\n    - {}", "s.yaml:3: agents.a[0]: a turn needs `say` or `calls`"),
    (
        "agents:\n  a:\n    - say: x\n      when: {mail_form: b}",
        "s.yaml:4: agents.a[0].when.mail_form: no such key; did you mean mail_from? allowed: error,",
    ),
    (
        "agents:\n  a:\n    - say: x\n      when: {}",
        "s.yaml:4: agents.a[0].when: an empty matcher; give one of mail_from,",
    ),
    ("agents:\n  a:\n    - say: x\n      when: '('", "s.yaml:4: agents.a[0].when.matches: not a regular expression: "),
    (
        "agents:\n  a:\n    - say: x\n      capture: {n: 'x'}",
        "s.yaml:4: agents.a[0].capture.n: needs exactly one group, as in `line (\\d+)`; this has 0 (found: 'x')",
    ),
    (
        "agents:\n  a:\n    - say: ${n}\n",
        "s.yaml:2: agents.a: turn 1 uses ${n}, which no turn up to it captures; write $${n} for the text itself",
    ),
    (
        "agents:\n  a:\n    - {say: x, repeat: true}\n    - say: y",
        "s.yaml:2: agents.a: turn 1 repeats without end and without `when`: no turn after it can be taken",
    ),
    ("agents:\n  a:\n    - {say: x, repeat: false}", "s.yaml:3: agents.a[0]: `repeat: false` says nothing; "),
    ("agents:\n  a:\n    - calls: Read", "s.yaml:3: agents.a[0].calls: calls are written `TOOL: {input}`, "),
    (
        "agents:\n  a:\n    - calls: {Read: x}",
        "s.yaml:3: agents.a[0].calls: the input of Read must be a mapping of its parameters",
    ),
    ("agents:\n  a:\n    - {say: x, fail: dorp}", "s.yaml:3: agents.a[0].fail.kind: input should be 'drop', 'close', "),
    ("agents:\n  a:\n    - {say: x, fail: 418}", "s.yaml:3: agents.a[0].fail.status: input should be 400, "),
    (
        "agents:\n  a:\n    - {say: x, fail: malformed}",
        "s.yaml:3: agents.a[0]: `fail` names call 1, and this turn has 0",
    ),
    (
        "agents:\n  a:\n    - {say: x, fail: {kind: drop, block: 2}}",
        "s.yaml:3: agents.a[0]: `fail` names block 2, and this turn has 1",
    ),
    ("agents:\n  a:\n    - {say: x, fail: {times: 2}}", "s.yaml:3: agents.a[0].fail: needs either `status`"),
    (
        "agents:\n  a:\n    - {say: x, pace: {tokens_per_second: 0}}",
        "s.yaml:3: agents.a[0].pace.tokens_per_second: input should be greater than 0 (found: 0)",
    ),
    ("agents: {}", "s.yaml:1: agents: dictionary should have at least 1 item"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_a_wrong_script_is_told_file_line_place_and_remedy(text: str, said: str):
    with pytest.raises(SpecError) as caught:
        parse_script(text, "s.yaml")
    assert str(caught.value).startswith(said)


def test_all_errors_are_told_at_once():
    with pytest.raises(SpecError) as caught:
        parse_script("agents:\n  a:\n    - sya: x\n  b:\n    - say: [x]\n", "s.yaml")
    lines = str(caught.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["s.yaml:3", "s.yaml:5"]


def test_a_file_that_is_not_there_or_not_text_is_a_spec_error(tmp_path: Path):
    with pytest.raises(SpecError, match=r"none\.yaml: no such script"):
        load_script(tmp_path / "none.yaml")
    (tmp_path / "bin.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpecError, match="cannot be read"):
        load_script(tmp_path / "bin.yaml")


def _document(text: str) -> JsonValue:
    return YAML(typ="safe", pure=True).load(text)


def test_the_schema_takes_what_the_loader_takes_and_refuses_a_wrong_key():
    schema = script_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert list(validator.iter_errors(_document(FULL))) == []
    assert list(validator.iter_errors(_document("agents: {a: [{sya: x}]}"))) != []
