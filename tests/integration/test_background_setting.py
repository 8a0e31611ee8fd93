"""Whose commands go on in the background when they block too long: a lead's, and those of `retinue run`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from retinue.agents.boot import RuleSet
from retinue.orchestrator.launch import BLOCKING_S
from retinue.orchestrator.prepare import Launch, draft_for_people
from retinue.orchestrator.spec.load import load_spec_text
from retinue.orchestrator.state.paths import StateDir

SPEC = """
version: 1
name: t
model: script:s.yaml
agents:
  boss: {definition: lead, prompt: lead, isolation: none}
  ada: {definition: coder, description: codes, prompt: code, isolation: none}
"""


@pytest.mark.parametrize(("solo", "after"), [(False, [BLOCKING_S, None]), (True, [BLOCKING_S, BLOCKING_S])])
async def test_leads_and_lone_agents_do_not_block(tmp_path: Path, solo: bool, after: list[float | None]) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    loaded = load_spec_text(SPEC, env={}, path=tmp_path / "t.yaml")
    launch = Launch("r1", "2026-01-01", StateDir(tmp_path / "state"), {"HOME": str(tmp_path)}, RuleSet(), solo=solo)
    plan = await draft_for_people(loaded, launch)
    assert [boot.background_after_s for boot in plan.members] == after
