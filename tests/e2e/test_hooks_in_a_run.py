"""Hooks of a repository on a real cluster, in the form in which such scripts are written elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from retinue.agents.records import HooksRan
from retinue.orchestrator.ledger.parse import parse_record
from retinue.orchestrator.ledger.reader import read_all
from support.invariants import violations
from support.live import Bench, bench

pytestmark = pytest.mark.live

GUARD = """#!/usr/bin/env python3
import json, sys
event = json.load(sys.stdin)
if "rm " in event["tool_input"]["command"]:
    print("removals are for people", file=sys.stderr)
    sys.exit(2)
"""
FORMAT = """#!/bin/bash
file=$(python3 -c 'import json,sys; print(json.load(sys.stdin)["tool_input"]["file_path"])')
printf '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "looked at %s"}}' "$file"
"""
CHECK = """#!/bin/bash
[ -e checked.txt ] || { echo "run the check first" >&2; exit 2; }
"""
ONCE = """#!/usr/bin/env python3
import json, sys
event = json.load(sys.stdin)
if not event["stop_hook_active"]:
    print(json.dumps({"decision": "block", "reason": "say what you did: " + event["last_assistant_message"]}))
"""


def hook(name: str) -> dict[str, object]:
    return {"type": "command", "command": f'"$CLAUDE_PROJECT_DIR"/.claude/hooks/{name}'}


SETTINGS = {
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [hook("guard.py")]}],
        "PostToolUse": [{"matcher": "Write|Edit", "hooks": [hook("format.sh")]}],
        "TaskCompleted": [{"hooks": [hook("check.sh")]}],
        "Stop": [{"hooks": [hook("once.py")]}],
    }
}
SPEC = (
    "version: 1\nname: hooks\nmodel: script:script.yaml\nrepo: {path: repo}\n"
    "permissions: {mode: bypassPermissions}\n"
    "agents:\n  ada: {definition: coder, description: builds}\n"
    "tasks:\n  - {id: build, subject: Build it, description: as told, owner: ada}\n"
    "limits: {turns: 30, wall: 5m}\n"
)
TURNS: list[dict[str, object]] = [
    {
        "wait_for": {"mail_kind": "task_assigned"},
        "calls": {"TaskUpdate": {"taskId": "build", "status": "in_progress"}},
    },
    {"calls": {"Bash": {"command": "rm -f README.md"}}},
    {
        "expect": {"tool_result_of": "Bash", "error": True, "matches": "removals are for people"},
        "calls": {"Write": {"file_path": "made.txt", "content": "made\n"}},
    },
    {
        "expect": {"matches": "PostToolUse hook: looked at /.*/made.txt"},
        "calls": {"TaskUpdate": {"taskId": "build", "status": "completed"}},
    },
    {
        "expect": {"tool_result_of": "TaskUpdate", "matches": "not completed: run the check first"},
        "calls": {"Bash": {"command": "touch checked.txt"}},
    },
    {"calls": {"TaskUpdate": {"taskId": "build", "status": "completed"}}},
    {"expect": {"tool_result_of": "TaskUpdate", "error": False}, "say": "Done."},
    {"expect": {"matches": "Stop hook: say what you did: Done."}, "say": "I made made.txt."},
]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def prepare(place: Bench) -> None:
    scripts = {"guard.py": GUARD, "format.sh": FORMAT, "check.sh": CHECK, "once.py": ONCE}
    files = {f".claude/hooks/{name}": text for name, text in scripts.items()}
    place.make_repo({"README.md": "hello\n", ".claude/settings.json": json.dumps(SETTINGS), **files})
    for name in scripts:
        (place.repo / ".claude/hooks" / name).chmod(0o755)
    place.git("commit", "--quiet", "--all", "--message", "Hooks that run")
    (place.root / "spec.yaml").write_text(SPEC)
    (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": TURNS}}))


def test_hooks_block_advise_hold_up_and_send_on(place: Bench) -> None:
    prepare(place)
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust")
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = place.run_dir("r") / "ledger.rlog"
    assert violations(ledger) == []
    assert place.view("r").agents["ada~1"].last_text == "I made made.txt."
    records = [parse_record(record.kind, record.body) for record in read_all(ledger)]
    ran = [(each.event, run.outcome, run.exit) for each in records if isinstance(each, HooksRan) for run in each.runs]
    assert ran == [
        ("PreToolUse", "blocked", 2),
        ("PostToolUse", "ok", 0),
        ("TaskCompleted", "blocked", 2),
        ("PreToolUse", "ok", 0),
        ("TaskCompleted", "ok", 0),
        ("Stop", "blocked", 0),
        ("Stop", "ok", 0),
    ]
    assert list((place.run_dir("r") / "tmp").rglob("*.err")) == []


def test_hooks_of_a_repository_that_is_not_trusted_do_not_run(place: Bench) -> None:
    prepare(place)
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral")
    ledger = place.run_dir("r") / "ledger.rlog"
    if ledger.exists():
        records = [parse_record(record.kind, record.body) for record in read_all(ledger)]
        assert not [each for each in records if isinstance(each, HooksRan)]
    assert "hooks" in done.stdout + done.stderr
