"""`retinue tools`: what agents can do, and one call as an agent would make it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from retinue.orchestrator.cli import asking
from retinue.tools.registry.builtin import builtin_tools
from support.cli import Answer, Cli


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.py").write_text("x = 1\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(work)
    return Cli(tmp_path / "state", capsys)


def listed(cli: Cli, *flags: str | Path) -> dict[str, dict[str, object]]:
    found = cli("tools", "list", "--json", *flags).json["tools"]
    assert isinstance(found, list)
    return {str(each["name"]): each for each in found if isinstance(each, dict)}  # type: ignore[misc]


def absent(cli: Cli, *flags: str | Path) -> dict[str, object]:
    return {name: each["absent"] for name, each in listed(cli, *flags).items() if each["absent"]}


# --- list and show ----------------------------------------------------------------------------------------------------


def test_all_tools_are_listed_with_what_they_are_like(cli: Cli) -> None:
    found = listed(cli)
    assert {tool.name for tool in builtin_tools()} <= set(found)
    assert (found["Read"]["safe"], found["Read"]["read_only"], found["Read"]["origin"]) == ("yes", "yes", "built-in")
    assert (found["Edit"]["safe"], found["Edit"]["read_only"]) == ("no", "no")
    assert found["Snip"]["absent"] == "Snip is not built in"


def test_what_a_spec_or_the_settings_have_to_bring_is_named(cli: Cli) -> None:
    missing = absent(cli)
    assert missing["WebSearch"] == "no web search is set (web.search)"
    assert missing["LSP"] == "no language server is set (lsp)"
    assert missing["ReadMcpResource"] == "no MCP server is set (mcp_servers)"
    assert not missing.keys() & {"WebFetch", "TaskCreate", "Agent", "SendMessage", "Read", "Bash", "TodoWrite"}


def test_an_agent_lacks_what_its_definition_leaves_out(cli: Cli, tmp_path: Path) -> None:
    definition = tmp_path / "d.md"
    definition.write_text("---\nname: small\ndescription: d\ntools: Read, Gr*\ndisallowedTools: Grep\n---\nWork.\n")
    missing = absent(cli, "--agent", definition)
    assert "Read" not in missing
    assert (missing["Grep"], missing["Bash"]) == ("the definition leaves out Grep", "the definition does not name it")
    assert "Edit" in absent(cli, "--agent", "explore")


def test_modes_and_rules_leave_tools_out_and_say_so(cli: Cli) -> None:
    bare = absent(cli, "--bare")
    assert set(listed(cli)) - set(bare) == {"Bash", "Read", "Edit"}
    assert bare["Write"] == "the simple mode"
    assert absent(cli, "--embedded-search")["Glob"] == "the shell has a search of its own"
    assert absent(cli, "--deny", "Task*")["TaskGet"] == "the deny rule Task*"


def test_the_list_is_a_table_for_people(cli: Cli) -> None:
    lines = cli("tools", "list").lines
    assert lines[0].split() == ["tool", "group", "origin", "safe", "read-only", "deferred", "absent"]
    assert ["Read", "files", "built-in", "yes", "yes", "no"] in [line.split() for line in lines]


def test_a_tool_is_shown_as_the_model_is_told_of_it(cli: Cli) -> None:
    answer = cli("tools", "show", "Edit")
    assert answer.code == 0
    assert answer.lines[0].startswith("Edit: ")
    assert '"old_string"' in answer.out
    told = cli("tools", "show", "Edit", "--json").json
    assert set(told) == {"name", "description", "prompt", "input_schema"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("show", "Nope"), "there is no tool 'Nope'"),
        (("list", "--agent", "nobody"), "--agent 'nobody' is no kind of agent"),
        (("call", "Read", "[1]"), "is no JSON object"),
        (("call", "Read", "{}", "--mode", "wild"), "--mode 'wild' is no mode"),
        (("call", "Read", "{}", "--allow", "Read("), "Read("),
        (("call", "Edit", "{}", "--read", "none.py"), "--read: File does not exist"),
    ],
)
def test_wrong_usage_is_said_and_nothing_is_printed(cli: Cli, words: tuple[str, ...], said: str) -> None:
    answer = cli("tools", *words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


# --- call -------------------------------------------------------------------------------------------------------------


def call(cli: Cli, name: str, *flags: str, **values: object) -> Answer:
    return cli("tools", "call", name, json.dumps(values), *flags)


def test_a_call_prints_what_the_model_would_see(cli: Cli) -> None:
    answer = call(cli, "Read", file_path="a.py")
    assert (answer.code, answer.err) == (0, "")
    assert "x = 1" in answer.out


def test_a_call_that_fails_ends_with_one_and_says_why(cli: Cli) -> None:
    answer = call(cli, "Read", wrong=1)
    assert answer.code == 1
    assert answer.out.startswith("<tool_use_error>InputValidationError: Read has these problems")


def test_without_a_terminal_what_no_rule_allows_is_refused(cli: Cli) -> None:
    answer = call(cli, "Write", file_path="b.py", content="y\n")
    assert answer.code == 1
    assert "no rule allows it" in answer.out
    assert not Path("b.py").exists()
    assert call(cli, "Write", "--allow", "Edit(/b.py)", file_path="b.py", content="y\n").code == 0
    assert Path("b.py").read_text() == "y\n"


def test_a_change_needs_the_file_to_be_read_first(cli: Cli) -> None:
    edit = {"file_path": "a.py", "old_string": "1", "new_string": "2"}
    assert "Read it first" in call(cli, "Edit", "--mode", "acceptEdits", **edit).out
    assert call(cli, "Edit", "--mode", "acceptEdits", "--read", "a.py", **edit).code == 0
    assert Path("a.py").read_text() == "x = 2\n"


def test_a_command_runs_and_its_failure_is_the_exit_code(cli: Cli) -> None:
    answer = call(cli, "Bash", "--mode", "bypassPermissions", command="echo hi; exit 3")
    assert answer.code == 1
    assert answer.out.splitlines() == ["hi", "[Exit code 3]"]


@pytest.mark.parametrize(("said", "code"), [(["once"], 0), (["no", "not that file"], 1)])
def test_on_a_terminal_a_person_is_asked(cli: Cli, monkeypatch: pytest.MonkeyPatch, said: list[str], code: int) -> None:
    answers = list(said)

    def prompt(text: str, **how: object) -> str:
        return answers.pop(0)

    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(asking.typer, "prompt", prompt)
    answer = call(cli, "Write", file_path="b.py", content="y\n")
    assert (answer.code, answers, Path("b.py").exists()) == (code, [], code == 0)
    assert ("the person who was asked said no: not that file" in answer.out) == (code == 1)
    assert "Write: Write b.py" in answer.err


def test_a_result_that_is_too_large_lies_whole_in_a_file_that_stays(cli: Cli) -> None:
    Path("big.txt").write_text("needle\n" * 9_000)
    answer = call(cli, "Grep", pattern="needle", path="big.txt", output_mode="content", head_limit=0)
    assert "<persisted-output>" in answer.out
    path = Path(answer.out.split("All of it is in: ")[1].splitlines()[0])
    assert path.read_text().count("needle") == 9_000
    path.unlink()
    path.parent.rmdir()


def test_code_can_be_run_with_its_tools(cli: Cli) -> None:
    code = "print(await Read('a.py'))\nBash.sync('echo hi')"
    done = cli("tools", "call", "REPL", json.dumps({"code": code}), "--mode", "bypassPermissions")
    assert "1\tx = 1" in done.out
    assert "=> 'hi'" in done.out


# --- commands, as in a run --------------------------------------------------------------------------------------------


def bash(cli: Cli, command: str, *flags: str, **more: object) -> Answer:
    return cli("tools", "call", "Bash", json.dumps({"command": command, **more}), "--allow", "Bash", *flags)


def test_a_command_sees_the_environment_of_a_run(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "RAY_ADDRESS", "TMUX", "ANYTHING"):
        monkeypatch.setenv(name, "secret-value")
    for flags in ((), ("--no-sandbox",)):
        answer = bash(cli, "env", *flags)
        assert "PATH=" in answer.out
        assert "secret-value" not in answer.out


def test_a_command_is_confined_unless_a_person_says_otherwise(cli: Cli, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (tmp_path / "work" / "script").write_text(f"touch inside\ntouch {outside}\n")
    hidden = "sh script"
    answer = bash(cli, hidden)
    assert (tmp_path / "work" / "inside").exists(), answer
    assert not outside.exists()
    answer = bash(cli, hidden, "--no-sandbox")
    assert outside.exists()
    assert "commands run with all your rights" in answer.err


def test_a_timeout_beyond_the_limit_is_said(cli: Cli) -> None:
    assert "A timeout of 700000 ms is more than a command may have" in bash(cli, "echo hi", timeout=700_000).out


def test_a_refusal_for_a_place_names_the_place(cli: Cli, tmp_path: Path) -> None:
    said = bash(cli, f"touch {tmp_path}/outside").out
    assert "lies outside of the workspace" in said
    assert "is not in the table" not in said
