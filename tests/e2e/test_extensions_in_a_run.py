"""A server, a skill and a search for tools on a real cluster, as one agent of a team uses them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from retinue.agents.records import ToolFinished
from retinue.orchestrator.ledger.parse import parse_record
from retinue.orchestrator.ledger.reader import read_all
from support.live import Bench, bench

pytestmark = pytest.mark.live

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
SKILL = """---
name: greet
description: Greets somebody
arguments: [whom]
---
Say hello to $whom. This is the state: !`echo looked-at-$0`
"""
SPEC = f"""\
version: 1
name: extended
model: script:script.yaml
repo: {{path: repo}}
permissions: {{mode: bypassPermissions}}
mcp_servers:
  tracker:
    command: {sys.executable}
    args: [SERVER_FILE]
    env: {{TRACKER_KEY: "${{TRACKER_KEY}}"}}
agents:
  ada: {{definition: coder, description: builds, tools: {{loading: client}}}}
tasks:
  - {{id: build, subject: Build it, description: as told, owner: ada}}
limits: {{turns: 30, wall: 5m}}
"""
TURNS: list[dict[str, object]] = [
    {
        "wait_for": {"mail_kind": "task_assigned"},
        "expect": [{"matches": "mcp__tracker__find_issue"}],
        "calls": [
            {"TaskUpdate": {"taskId": "build", "status": "in_progress"}},
            {"ToolSearch": {"query": "+tracker find an issue"}},
        ],
    },
    {"calls": [{"mcp__tracker__find_issue": {"words": "crash", "limit": "2"}}]},
    {
        "expect": [{"matches": "2 issues about crash"}],
        "calls": [
            {"mcp__tracker__environment": {}},
            {"ReadMcpResource": {"server": "tracker", "uri": "memo://first"}},
        ],
    },
    {"expect": [{"matches": "remember the milk"}], "calls": [{"mcp__tracker__end": {}}]},
    {"calls": [{"mcp__tracker__close_issue": {"number": 7}}]},
    {"calls": [{"Skill": {"skill": "greet", "args": "Ada"}}]},
    {
        "expect": [{"matches": "Say hello to Ada. This is the state: looked-at-Ada"}],
        "calls": [{"TaskUpdate": {"taskId": "build", "status": "completed"}}],
    },
    {"say": "done"},
]


@pytest.fixture
def scene() -> Iterator[Bench]:
    with bench() as made:
        made.make_repo({"a.txt": "a\n", ".retinue/skills/greet/SKILL.md": SKILL})
        server = made.repo / SERVER.name  # where a confined server is seen, wherever these tests lie
        server.write_text(SERVER.read_text())
        (made.root / "team.yaml").write_text(SPEC.replace("SERVER_FILE", str(server)))
        (made.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": TURNS}}))
        yield made


def test_an_agent_finds_a_servers_tools_and_calls_them_and_uses_a_skill(scene: Bench) -> None:
    done = scene.retinue("up", "team.yaml", "--trust", "--ephemeral", "--run-id", "x1", env={"TRACKER_KEY": "s3cr3t"})
    assert done.returncode == 0, done.stdout + done.stderr
    results = [
        record.result
        for each in read_all(scene.run_dir("x1") / "ledger.rlog")
        if isinstance(record := parse_record(each.kind, each.body), ToolFinished)
    ]
    by_name = {result.name: result for result in results}
    assert by_name["ToolSearch"].loaded[0] == "mcp__tracker__find_issue"
    names = by_name["mcp__tracker__environment"].content.split()
    assert "TRACKER_KEY" in names
    assert not [name for name in names if name.startswith(("RAY_", "RETINUE_", "ANTHROPIC"))]
    assert "outcome is unknown" in by_name["mcp__tracker__end"].content
    assert by_name["mcp__tracker__close_issue"].content == "closed 7"
    assert [
        p for p in psutil.process_iter(["cmdline"]) if str(scene.repo / SERVER.name) in (p.info["cmdline"] or [])
    ] == []
