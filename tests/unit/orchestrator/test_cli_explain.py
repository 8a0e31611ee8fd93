"""`explain-command`: for people, and one JSON object a line for programs."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from retinue.orchestrator.cli.main import main


def ask(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *args: str
) -> list[dict]:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    assert main(["explain-command", "--jsonl", *args]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def row(name: str, command: str, **more: object) -> str:
    return json.dumps({"id": name, "command": command, "shell": "bash", "cwd": "/t/w", "home": "/t", **more})


def test_each_line_is_answered_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"allow": ["Bash(make:*)"], "ask": [], "deny": ["Bash(curl:*)"]}
    answers = ask(
        [
            row("a", "ls -la | head"),
            row("b", "make all", rules=rules),
            row("c", "curl x", rules=rules),
            row("d", "rm -rf ~", rules=rules),
            row("e", "npm run x > y"),
            row("f", "grep x a", exit_code=1),
        ],
        monkeypatch,
        capsys,
    )
    assert [(each["id"], each["verdict"]) for each in answers] == [
        ("a", "read-only"),
        ("b", "allow"),
        ("c", "deny"),
        ("d", "hard-stop"),
        ("e", "ask"),
        ("f", "read-only"),
    ]
    assert answers[0]["class"] == "list" or answers[0]["class"] == "read"
    assert answers[0]["parts"][1] == {"assignments": [], "argv": ["head"], "redirects": [], "connector": "|"}
    assert answers[0]["suggest"] == []
    assert {"kind": "check", "check": 10, "text": "output redirection"} in answers[4]["reasons"]
    assert answers[4]["suggest"] == ["Bash(npm run:*)"]
    assert answers[5]["is_error"] is False
    assert "is_error" not in answers[0]


def test_a_line_that_is_no_request_is_never_approved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        "[1]",
        "x",
        json.dumps({"id": "a"}),
        row("b", "ls", rules=[]),
        row("c", "ls", rules={"deny": "x"}),
        row("d", "ls"),
    ]
    answers = ask(lines, monkeypatch, capsys)
    assert [each["verdict"] for each in answers] == ["ask"] * 5 + ["read-only"]


def test_links_can_be_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [row("a", "cat out/x"), row("b", "cat o*/x"), row("c", "cat key"), row("d", "cat other")]
    answers = ask(lines, monkeypatch, capsys, "--link", "out=/etc", "--link", "key=~/.ssh/id")
    assert [each["verdict"] for each in answers] == ["ask", "ask", "ask", "read-only"]


def test_a_person_sees_parts_checks_and_rules(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-command", "git push -f > x", "--deny", "Bash(curl:*)"]) == 0
    out = capsys.readouterr().out
    assert "verdict: ask" in out
    assert '"git" "push" "-f" >x' in out
    assert "10 output redirection: output redirection" in out
    assert "may overwrite remote history" in out
    assert "Bash(git push:*)" in out


def test_the_deciding_rule_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-command", "curl x", "--deny", "Bash(curl:*)"]) == 0
    assert "verdict: deny, by the rule Bash(curl:*)" in capsys.readouterr().out


def test_a_command_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-command"]) == 2
    assert main(["explain-command", "ls", "--shell", "fish"]) == 2
    assert "--jsonl" in capsys.readouterr().err


def test_links_of_the_disk_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "w" / "in").mkdir(parents=True)
    (tmp_path / "w" / "in" / "a").write_text("a")
    (tmp_path / "w" / "out").symlink_to("/etc")
    here = {"cwd": str(tmp_path / "w"), "home": str(tmp_path)}
    rules = {"deny": ["Read(a)"]}
    rows = [
        row("a", "cat out/x", **here),
        row("b", "cat in/x", **here),
        row("c", "cat o*/x", **here),
        row("d", "cat in/*", **here, rules=rules),
        row("e", "grep -r x .", **here, rules=rules),
        row("f", "cat x/y", **here, links={"x": "~"}),
        row("g", "cat x", **here, links=["x"]),
    ]
    verdicts = [each["verdict"] for each in ask(rows, monkeypatch, capsys)]
    assert verdicts == ["ask", "read-only", "ask", "deny", "deny", "ask", "ask"]


def test_the_reason_comes_first_and_checks_that_found_nothing_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain-command", "ls > x"]) == 0
    out = capsys.readouterr().out
    assert out.index("why it is not simply approved") < out.index("commands, as the shell")
    assert "the other 22 found nothing" in out


@pytest.mark.parametrize(
    ("line", "said"),
    [("[]", "a line is one JSON object"), ("{}", '"command" is missing'), ('{"command": 1}', "no text")],
)
def test_a_line_that_asks_nothing_is_told_what_it_lacks(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(line + "\n"))
    assert main(["explain-command", "--jsonl"]) == 0
    assert said in json.loads(capsys.readouterr().out)["reasons"][0]["text"]
