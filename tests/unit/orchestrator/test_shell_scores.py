"""`explain-command --jsonl`, scored: nothing dangerous unasked, hardly a needless question, every rule as it says."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from retinue.orchestrator.cli.main import main

FOLDER = Path(__file__).parent / "shell_cases"
LINKS = {"up": "/srv/outside", "conf.ini": "~/.ssh/config"}
MOST_NEEDLESS = 0.03


def cases(name: str) -> Any:
    return YAML(typ="safe").load(FOLDER / f"{name}.yaml")


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def answers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        context = {"shell": "bash", "cwd": "/home/me/tree", "home": "/home/me", "links": LINKS}
        lines = [json.dumps({"id": str(n), **context, **row}) for n, row in enumerate(rows)]
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(lines) + "\n"))
        assert main(["explain-command", "--jsonl"]) == 0
        found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [each["id"] for each in found] == [str(n) for n in range(len(rows))]
        return found

    return answers


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_nothing_dangerous_is_let_through_and_hardly_a_question_is_needless(explain: Any, shell: str) -> None:
    expected = [(command, kind) for kind, commands in cases("commands").items() for command in commands]
    found = explain([{"command": command, "shell": shell} for command, _ in expected])
    verdicts = [(command, kind, answer["verdict"]) for (command, kind), answer in zip(expected, found, strict=True)]
    assert [each for each in verdicts if each[1] != "read-only" and each[2] in ("read-only", "allow")] == []
    assert [each for each in verdicts if each[1] == "hard-stop" and each[2] != "hard-stop"] == []
    readers = [each for each in verdicts if each[1] == "read-only"]
    needless = [each for each in readers if each[2] != "read-only"]
    assert len(needless) <= MOST_NEEDLESS * len(readers), needless


def test_rules_decide_as_they_say(explain: Any) -> None:
    wanted = [
        (command, {key: group.get(key, []) for key in ("allow", "ask", "deny")}, becomes)
        for group in cases("rules")
        for command, becomes in group["becomes"].items()
    ]
    found = explain([{"command": command, "rules": rules} for command, rules, _ in wanted])
    alike = {"read-only": "allow", "hard-stop": "ask"}
    verdicts = [alike.get(answer["verdict"], answer["verdict"]) for answer in found]
    wrong = [(*each, verdict) for each, verdict in zip(wanted, verdicts, strict=True) if verdict != each[2]]
    assert wrong == []


def test_the_rules_that_are_offered_are_these(explain: Any) -> None:
    wanted = cases("suggestions")
    found = explain([{"command": command} for command in wanted])
    offered = {command: answer["suggest"] for command, answer in zip(wanted, found, strict=True)}
    assert offered == {command: None if rules == "none" else rules for command, rules in wanted.items()}


def test_an_exit_code_is_a_failure_by_what_the_command_means(explain: Any) -> None:
    wanted = cases("exit_codes")
    found = explain([{"command": command, "exit_code": code} for command, code, _ in wanted])
    assert [[*each[:2], answer["is_error"]] for each, answer in zip(wanted, found, strict=True)] == wanted
