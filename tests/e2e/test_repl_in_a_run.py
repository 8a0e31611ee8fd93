"""An agent of a run that works through the REPL alone: its code reads, searches and changes files by the real tools."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from retinue.agents.records import InnerFinished, InnerStarted
from retinue.orchestrator.ledger.parse import parse_record
from retinue.orchestrator.ledger.reader import read_all
from support.invariants import violations
from support.live import Bench, bench

pytestmark = pytest.mark.live

SPEC = (
    "version: 1\nname: code\nmodel: script:script.yaml\nrepo: {path: repo}\npermissions: {mode: acceptEdits}\n"
    "agents:\n  ada: {prompt: Count., tools: {repl: true}}\n"
)
COUNT = """
files = (await Glob(pattern="src/*.txt")).splitlines()
found = {name: len((await Read(file_path=name)).splitlines()) for name in files}
sum(found.values())
"""
WRITE = """
await Write(file_path="total.txt", content=f"{sum(found.values())}\\n")
(await Bash("cat total.txt && git add -A && git commit -q -m total && git status --porcelain")).strip()
"""
BY_ITSELF = """
import os, socket
open("by-itself.txt", "w").write("x")
try:
    socket.create_connection(("127.0.0.1", 9), 1)
except OSError as error:
    print("no network", os.environ.get("ANTHROPIC_API_KEY"))
"""
TURNS = [
    {"calls": [{"REPL": {"code": COUNT}}]},
    {
        "expect": {"tool_result_of": "REPL", "error": False, "matches": r"\A=> 6\Z"},
        "calls": [{"REPL": {"code": WRITE}}],
    },
    {
        "expect": {"tool_result_of": "REPL", "error": False, "matches": r"\A=> '6'\Z"},
        "calls": [{"REPL": {"code": BY_ITSELF}}, {"Bash": {"command": "true"}}],
    },
    {
        "expect": [
            {"tool_result_of": "REPL", "error": False, "matches": r"\Ano network None\Z"},
            {"tool_result_of": "Bash", "error": True, "matches": "No such tool"},
        ],
        "say": "Done.",
    },
]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def test_an_agent_works_through_code_and_every_call_is_in_the_ledger(place: Bench) -> None:
    place.make_repo({"src/a.txt": "1\n2\n", "src/b.txt": "1\n2\n3\n4\n"})
    (place.root / "spec.yaml").write_text(SPEC)
    (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": {"ada": TURNS}}))
    done = place.retinue("up", "spec.yaml", "--run-id", "r", "--ephemeral", "--trust")
    assert done.returncode == 0, done.stdout + done.stderr
    ledger = place.run_dir("r") / "ledger.rlog"
    assert violations(ledger) == []
    assert place.view("r").agents["ada~1"].last_text == "Done."
    records = [parse_record(record.kind, record.body) for record in read_all(ledger)]
    begun = [record for record in records if isinstance(record, InnerStarted)]
    ended = [record for record in records if isinstance(record, InnerFinished)]
    assert [record.tool for record in begun] == ["Glob", "Read", "Read", "Write", "Bash"]
    assert [record.result.call_id for record in ended] == [record.call_id for record in begun]
    assert {record.outer for record in begun} == {record.call_id.rpartition(".")[0] for record in begun}
    assert place.processes() == []
