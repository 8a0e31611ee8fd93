"""A repository that brings settings: before it was trusted they only forbid, afterwards they count in the agent."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.live import Bench, bench

pytestmark = pytest.mark.live

SETTINGS = {
    "permissions": {"allow": ["Bash(make:*)"], "deny": ["Read(.env)"]},
    "env": {"FROM_SETTINGS": "yes"},
}
FILES = {
    ".claude/settings.json": json.dumps(SETTINGS),
    ".claude/agents/looker.md": "---\nname: looker\ndescription: Looks\ntools: Read\nmodel: opus\n---\nLook.\n",
    "CLAUDE.md": "Tabs, never spaces.\n",
    ".env": "secret\n",
    "Makefile": "show:\n\t@echo set=$$FROM_SETTINGS\n",
}
SPEC = "version: 1\nname: t\nmodel: script:script.yaml\nrepo: {path: repo}\nagents:\n  ada: {prompt: Go.}\n"


def turns(*, trusted: bool) -> list[dict[str, object]]:
    make: dict[str, object] = {"tool_result_of": "Bash", "error": not trusted}
    make["matches"] = "set=yes" if trusted else "Permission denied"
    return [
        {"calls": {"Bash": {"command": "make show"}}},
        {"expect": make, "calls": {"Read": {"file_path": ".env"}}},
        {
            "expect": {"tool_result_of": "Read", "error": True, "matches": r"project rule Read\(.env\)"},
            "calls": {"Bash": {"command": "retinue trust"}},
        },
        {
            "expect": {"tool_result_of": "Bash", "error": True, "matches": "Permission denied"},
            "calls": {"Agent": {"description": "Look", "prompt": "Look.", "subagent_type": "looker"}},
        },
        {"expect": {"tool_result_of": "Agent", "error": False, "matches": "seen"}, "say": "Done."},
    ]


@pytest.fixture
def place() -> Iterator[Bench]:
    with bench() as made:
        yield made


def test_what_a_repository_grants_counts_once_it_was_trusted(place: Bench) -> None:
    place.make_repo(FILES)
    (place.root / "spec.yaml").write_text(SPEC)
    for run, trusted in (("before", False), ("after", True)):
        agents = {"ada": turns(trusted=trusted), "*": [{"say": "seen"}]}
        (place.root / "script.yaml").write_text(json.dumps({"version": 1, "agents": agents}))
        if trusted:
            given = place.retinue("trust", "repo")
            assert given.returncode == 0, given.stderr
        done = place.retinue("up", "spec.yaml", "--run-id", run, "--ephemeral")
        assert done.returncode == 0, done.stdout + done.stderr
        assert ("not trusted, so without effect" in done.stderr) is not trusted
        view = place.view(run)
        assert view.agents["ada~1"].last_text == "Done."
        plan = json.loads((place.run_dir(run) / "plan.json").read_bytes())
        assert "Tabs, never spaces." in plan["members"][0]["notes"]
        assert "FROM_SETTINGS" not in json.dumps(plan)
