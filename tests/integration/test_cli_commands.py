"""The command line on runs that lie on disk."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from retinue.orchestrator.ledger.lock import RunLock
from support.cli import Cli
from support.past_runs import MONEY, STOCK, PastRun, shop_done

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b31mred\u202eflip\r\nfake line [bold]not markup[/bold]"


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return Cli(tmp_path / "state", capsys)


def harmless(text: str) -> bool:
    return not any(c in text for c in "\x1b\x07\x9b\r\u202e")


# --- finding a run ----------------------------------------------------------------------------------------------------


def test_an_unknown_run_is_refused_with_the_list_of_runs(cli: Cli) -> None:
    shop_done(cli.state)
    answer = cli.at("status", "nope")
    assert answer.code == 2
    assert answer.out == ""
    assert "no run 'nope'" in answer.err
    assert "shop-done" in answer.err


def test_the_beginning_of_an_id_is_enough_unless_it_fits_several(cli: Cli) -> None:
    shop_done(cli.state, "shop-one")
    shop_done(cli.state, "shop-two")
    assert cli.at("status", "shop-o").code == 0
    answer = cli.at("status", "shop")
    assert answer.code == 2
    assert "fits several runs" in answer.err
    assert "shop-one" in answer.err
    assert "shop-two" in answer.err


def test_without_any_run_every_command_says_how_to_start_one(cli: Cli) -> None:
    for command in ("status", "logs", "tasks", "diff", "land", "clean"):
        answer = cli.at(command, "demo")
        assert (answer.code, answer.out) == (2, "")
        assert "retinue up SPEC" in answer.err


# --- ps ---------------------------------------------------------------------------------------------------------------


def states(cli: Cli) -> dict[str, str]:
    return {row["run"]: row["state"] for row in cli.at("ps", "--json").json["runs"]}


def test_ps_without_runs_says_so_on_stderr_and_prints_nothing(cli: Cli) -> None:
    answer = cli.at("ps")
    assert (answer.code, answer.out) == (0, "")
    assert "no runs" in answer.err
    assert cli.at("ps", "--json").json == {"runs": []}


def test_ps_tells_live_stopped_done_failed_and_lost_runs_apart(cli: Cli) -> None:
    shop_done(cli.state, "a-done")
    PastRun.make(cli.state, "b-failed").begin("ada").phase("failed", "out of budget").close()
    PastRun.make(cli.state, "c-stopped").begin("ada").phase("stopped").close()
    PastRun.make(cli.state, "d-lost").begin("ada").close()
    cli.state.create("e-never-began")
    live = PastRun.make(cli.state, "f-live").begin("ada").close()
    with RunLock.acquire(live.lock):
        found = states(cli)
    assert found == {
        "a-done": "done",
        "b-failed": "failed",
        "c-stopped": "stopped",
        "d-lost": "lost",
        "e-never-began": "lost",
        "f-live": "live",
    }


def test_ps_rows_carry_team_tasks_agents_start_and_folder(cli: Cli) -> None:
    run = shop_done(cli.state)
    (row,) = cli.at("ps", "--json").json["runs"]
    assert row == {
        "run": "shop-done",
        "state": "done",
        "team": "shop",
        "tasks_done": 2,
        "tasks": 2,
        "agents": 2,
        "started": "2025-06-15T15:06:41.000+00:00",
        "dir": str(run.root),
    }


def test_ps_in_a_pipe_prints_one_uncut_line_per_run(cli: Cli) -> None:
    run = shop_done(cli.state, "a-run-with-a-very-long-name-that-no-narrow-terminal-would-show-whole")
    head, row = cli.at("ps").lines
    assert head.split() == ["run", "state", "team", "tasks", "agents", "started", "dir"]
    assert row.startswith(run.run_id)
    assert row.endswith(str(run.root))
    assert "2/2" in row


def test_a_broken_ledger_is_named_and_the_other_runs_are_still_listed(cli: Cli) -> None:
    shop_done(cli.state, "good")
    cli.state.create("broken").ledger.write_bytes(b"no ledger at all" * 10)
    answer = cli.at("ps")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.lines] == ["run", "good"]
    assert "broken" in answer.err


# --- status, tasks ----------------------------------------------------------------------------------------------------


def test_status_shows_agents_tasks_and_what_to_do_next(cli: Cli) -> None:
    shop_done(cli.state)
    answer = cli.at("status", "shop")
    assert answer.lines[0] == "run shop-done is done"
    assert "2 of 2 done" in answer.out
    assert "2000 tokens" in answer.out
    assert any(line.startswith("ada ") for line in answer.lines)
    assert "Prices are rounded down" in answer.out
    assert f"retinue diff shop-done --state-dir {cli.root}" in answer.err


def test_status_of_a_lost_run_names_resume(cli: Cli) -> None:
    PastRun.make(cli.state, "gone").begin("ada").close()
    answer = cli.at("status", "gone")
    assert answer.lines[0] == "run gone is lost"
    assert "retinue resume gone" in answer.err


def test_status_as_json_is_one_document_with_stable_keys(cli: Cli) -> None:
    shop_done(cli.state)
    found = cli.at("status", "shop", "--json").json
    assert list(found) == [
        "run",
        "state",
        "detail",
        "team",
        "repo",
        "base_sha",
        "result_ref",
        "started",
        "last_record",
        "tokens",
        "usd",
        "agents",
        "tasks",
        "dir",
    ]
    assert [agent["name"] for agent in found["agents"]] == ["ada", "ben"]
    assert {task["id"]: task["status"] for task in found["tasks"]} == {"money": "merged", "stock": "merged"}
    assert found["agents"][0]["calls"] == 1


def test_a_run_that_never_began_has_a_status(cli: Cli) -> None:
    cli.state.create("early")
    assert cli.at("status", "early").lines[0] == "run early is lost"
    assert cli.at("status", "early", "--json").json["agents"] == []


def test_tasks_lists_the_board(cli: Cli) -> None:
    PastRun.make(cli.state, "shop").begin("ada", "ben", tasks=(MONEY, STOCK)).close()
    answer = cli.at("tasks", "shop")
    assert [line.split()[0] for line in answer.lines] == ["task", "#money", "#stock"]
    assert [task["id"] for task in cli.at("tasks", "shop", "--json").json["tasks"]] == ["money", "stock"]


def test_a_run_without_tasks_says_so(cli: Cli) -> None:
    PastRun.make(cli.state, "shop").begin("ada").close()
    answer = cli.at("tasks", "shop")
    assert (answer.code, answer.out) == (0, "")
    assert "no tasks" in answer.err


# --- logs -------------------------------------------------------------------------------------------------------------


def test_logs_in_full_show_what_a_call_found_below_its_line(cli: Cli) -> None:
    PastRun.make(cli.state, "shop").begin("ada").turn("ada", title=f"Read {HOSTILE}").close()
    lines = cli.at("logs", "shop", "--full").lines
    (place,) = [
        number for number, line in enumerate(lines) if line.split(maxsplit=2)[1:2] == ["ada"] and "Read" in line
    ]
    assert lines[place + 2].split() == ["1", "one"]
    assert all(harmless(line) for line in lines)
    assert len(cli.at("logs", "shop").lines) < len(lines)


def test_logs_show_one_line_for_each_thing_that_happened(cli: Cli) -> None:
    shop_done(cli.state)
    text = [line.split(maxsplit=1)[1] for line in cli.at("logs", "shop").lines]
    assert any("says: I have mended it." in line for line in text)
    assert any(line.startswith("team") and "task #money merged" in line for line in text)
    assert text[-1].split(maxsplit=1)[1] == "run done"


def test_logs_of_one_agent_leave_out_the_others(cli: Cli) -> None:
    shop_done(cli.state)
    lines = cli.at("logs", "shop", "ben").lines
    assert lines
    assert {line.split()[1] for line in lines} == {"ben", "team"}
    assert any("task #stock merged" in line for line in lines)
    assert not any("#money merged" in line for line in lines)
    assert cli.at("logs", "shop", "ben~1").lines == lines


def test_logs_of_nobody_name_those_that_there_are(cli: Cli) -> None:
    shop_done(cli.state)
    answer = cli.at("logs", "shop", "bne")
    assert answer.code == 2
    assert "ada, ben, team" in answer.err


def test_logs_as_json_are_one_record_a_line(cli: Cli) -> None:
    shop_done(cli.state)
    records = [json.loads(line) for line in cli.at("logs", "shop", "--json").lines]
    assert {"at", "writer", "incarnation", "n", "kind", "body"} == set(records[0])
    assert records[-1]["kind"] == "phase_changed"
    mine = [json.loads(line) for line in cli.at("logs", "shop", "ada", "--json").lines]
    assert {record["writer"] for record in mine} == {"ada~1", "team"}
    assert "message_closed" in {record["kind"] for record in mine}


def test_following_a_run_that_is_over_ends_at_once(cli: Cli) -> None:
    shop_done(cli.state)
    assert cli.at("logs", "shop", "-f").lines == cli.at("logs", "shop").lines


def test_following_a_run_that_has_no_process_says_how_to_go_on(cli: Cli) -> None:
    PastRun.make(cli.state, "gone").begin("ada").close()
    answer = cli.at("logs", "gone", "-f")
    assert answer.code == 0
    assert "retinue resume gone" in answer.err


# --- untrusted text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [("ps",), ("status", "shop"), ("tasks", "shop"), ("logs", "shop")], ids=lambda command: command[0]
)
@pytest.mark.parametrize("as_json", [False, True], ids=["lines", "json"])
def test_nothing_that_agents_wrote_is_obeyed_by_the_terminal(cli: Cli, command: tuple[str, ...], as_json: bool) -> None:
    task = MONEY.model_copy(update={"subject": HOSTILE, "owner": HOSTILE, "status": "failed", "note": HOSTILE})
    past = PastRun.make(cli.state, "shop").begin("ada", tasks=(task,)).turn("ada", HOSTILE, title=HOSTILE)
    past.mail("ada", "ada", HOSTILE).phase("failed", HOSTILE).close()
    answer = cli.at(*command, *(["--json"] if as_json else []))
    assert answer.code == 0
    assert harmless(answer.out.replace("\\r", ""))
    assert harmless(answer.err)


def test_text_in_brackets_is_no_markup(cli: Cli) -> None:
    task = MONEY.model_copy(update={"subject": "[bold]loud[/bold] [/] [link=x]y"})
    PastRun.make(cli.state, "shop").begin("ada", tasks=(task,)).close()
    assert "[bold]loud[/bold] [/] [link=x]y" in cli.at("tasks", "shop").out


# --- specs ------------------------------------------------------------------------------------------------------------

SPEC = """\
version: 1
name: shop
model: script:play.yaml
agents:
  ada: {definition: coder}
  ben: {definition: coder, isolation: none, tools: {allow: [Read, "Task?*"]}}
tasks:
  - {id: money, subject: Mend it, owner: ada, done_when: make test}
repo: {setup: [npm ci]}
"""


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "repo"
    made.mkdir()
    monkeypatch.chdir(made)
    git = "git -c user.name=U -c user.email=u@home -c commit.gpgsign=false"
    (made / "play.yaml").write_text("agents:\n  '*':\n    - say: hello\n")
    (made / "team.yaml").write_text(SPEC)
    assert os.system(f"git init -q -b main . && {git} add -A && {git} commit -q -m start") == 0
    return made


def test_a_good_spec_is_valid_and_nothing_is_made(cli: Cli, repo: Path) -> None:
    answer = cli("validate", "team.yaml")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "team.yaml is valid: team shop, 2 agents, 1 task\n"
    assert cli("validate", "team.yaml", "--json").json == {"ok": True, "problems": [], "warnings": []}
    assert not cli.root.exists()
    assert subprocess.run(["git", "status", "--porcelain"], capture_output=True, check=True).stdout == b""


def test_a_bad_spec_names_every_problem_and_exits_2(cli: Cli, repo: Path) -> None:
    (repo / "bad.yaml").write_text(SPEC.replace("owner: ada", "owner: adda").replace("shop", "Sh op"))
    answer = cli("validate", "bad.yaml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("retinue: 2 problems in bad.yaml\n")
    assert 'did you mean "ada"?' in answer.err
    asked = cli("validate", "bad.yaml", "--json")
    assert asked.code == 2
    assert asked.json["ok"] is False
    assert [p["line"] for p in asked.json["problems"]] == [2, 8]
    assert asked.err == ""


def test_flags_change_what_is_checked(cli: Cli, repo: Path) -> None:
    answer = cli("validate", "team.yaml", "--set", "repo.base=nowhere", "--model", "script:none.yaml")
    assert answer.code == 2
    assert "nowhere" in answer.err
    assert "none.yaml" in answer.err


def test_a_script_that_cannot_be_read_is_found_before_anything_starts(cli: Cli, repo: Path) -> None:
    (repo / "play.yaml").write_text("agents:\n  '*':\n    - sya: hello\n")
    answer = cli("validate", "team.yaml")
    assert answer.code == 2
    assert "sya" in answer.err


def test_a_repository_that_cannot_be_used_is_a_wrong_spec(cli: Cli, repo: Path) -> None:
    assert os.system("git branch -q retinue") == 0
    answer = cli("validate", "team.yaml")
    assert answer.code == 2
    assert "git branch -m retinue" in answer.err


def test_worktrees_outside_of_a_repository_are_a_wrong_spec(cli: Cli, repo: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    answer = cli("validate", "team.yaml", "--set", f"repo.path={outside}")
    assert answer.code == 2
    assert "not inside a git repository" in answer.err


def test_a_dirty_checkout_is_a_warning_on_stderr(cli: Cli, repo: Path) -> None:
    (repo / "new.txt").write_text("new")
    answer = cli("validate", "team.yaml")
    assert answer.code == 0
    assert "warning:" in answer.err
    assert "base: worktree" in answer.err


def test_a_plan_tells_agents_tools_limits_and_commands_and_makes_nothing(cli: Cli, repo: Path) -> None:
    answer = cli.at("plan", "team.yaml")
    assert answer.code == 0
    assert f"works in  {repo}" in answer.out
    assert "from      main at " in answer.out
    assert "ben: teammate (coder) on script:play.yaml" in answer.out
    assert "tools     Read, TaskCreate, TaskGet, TaskList, TaskOutput, TaskStop, TaskUpdate" in answer.out
    assert "writes in your checkout" in answer.out
    assert "5 USD, 200 model requests, 60 min" in answer.out
    assert "  repo.setup: npm ci" in answer.lines
    assert "  tasks.money.done_when: make test" in answer.lines
    assert not cli.root.exists()


def test_a_plan_as_json_is_one_document(cli: Cli, repo: Path) -> None:
    found = cli.at("plan", "team.yaml", "--json").json
    assert set(found) == {"plan", "base", "tools", "executes", "untrusted", "warnings"}
    assert found["executes"] == ["repo.setup: npm ci", "tasks.money.done_when: make test"]
    board = ["TaskCreate", "TaskGet", "TaskList", "TaskOutput", "TaskStop", "TaskUpdate"]
    assert found["tools"]["ben"] == ["Read", *board]


def test_init_writes_a_valid_spec_once_and_says_what_to_type(cli: Cli, repo: Path) -> None:
    (repo / "team.yaml").unlink()
    answer = cli("init")
    assert answer.code == 0
    assert "  retinue up team.yaml" in answer.lines
    assert cli("validate", "team.yaml").code == 0
    text = (repo / "team.yaml").read_text()
    again = cli("init")
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err
    assert (repo / "team.yaml").read_text() == text


def test_init_into_a_folder_that_is_not_there_is_refused(cli: Cli, repo: Path) -> None:
    answer = cli("init", "no/such/folder/team.yaml")
    assert answer.code == 2
    assert "no/such/folder" in answer.err


def test_both_schemas_are_json_schemas(cli: Cli) -> None:
    for args, title in ((("schema",), "retinue team spec, version 1"), (("schema", "--script"), "retinue script")):
        found = cli(*args).json
        assert found["title"] == title
        assert "$schema" in found


# --- cleaning by age --------------------------------------------------------------------------------------------------


def test_clean_asks_before_it_takes_runs_by_age_and_refuses_where_nobody_can_answer(cli: Cli) -> None:
    run = shop_done(cli.state)
    os.utime(run.ledger, (1_000_000, 1_000_000))
    answer = cli.at("clean", "--older", "7d")
    assert answer.code == 2
    assert "--yes" in answer.err
    assert run.root.is_dir()


def test_clean_by_age_takes_what_is_old_and_not_live_and_undo_brings_it_back(cli: Cli) -> None:
    old, live, new = (shop_done(cli.state, name) for name in ("old", "live", "new"))
    for run in (old, live):
        os.utime(run.ledger, (1_000_000, 1_000_000))
    with RunLock.acquire(live.lock):
        answer = cli.at("clean", "--older", "7d", "--yes")
    assert answer.code == 0
    assert answer.lines == [f"old: moved to {cli.state.trash / 'old'}"]
    assert f"retinue clean --undo old --state-dir {cli.root}" in answer.err
    assert not old.root.exists()
    assert live.root.is_dir()
    assert new.root.is_dir()
    assert cli.at("clean", "--undo", "old").out == f"run old is back in {old.root}\n"
    assert cli.at("status", "old").lines[0] == "run old is done"


def test_a_live_run_is_never_cleaned_and_then_nothing_else_is_either(cli: Cli) -> None:
    done, live = shop_done(cli.state, "over"), shop_done(cli.state, "live")
    with RunLock.acquire(live.lock):
        answer = cli.at("clean", "over", "live")
    assert answer.code == 2
    assert "retinue down live" in answer.err
    assert done.root.is_dir()


@pytest.mark.parametrize("age", ["7", "soon", "-1d", "7 years"])
def test_an_age_that_is_none_is_refused_with_examples(cli: Cli, age: str) -> None:
    shop_done(cli.state)
    answer = cli.at("clean", f"--older={age}")
    assert answer.code == 2
    assert "7d" in answer.err


def test_cleaning_nothing_in_particular_is_wrong_usage(cli: Cli) -> None:
    answer = cli.at("clean")
    assert answer.code == 2
    assert "retinue clean RUN" in answer.err


def test_undoing_what_was_never_cleaned_lists_the_trash(cli: Cli) -> None:
    answer = cli.at("clean", "--undo", "nope")
    assert answer.code == 2
    assert "nope" in answer.err
