"""Credentials lie in a run's directory only while the run needs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.orchestrator.run_files import RunFiles, lend
from retinue.orchestrator.state.paths import StateDir
from retinue.orchestrator.team.plan import LaunchPlan
from support.teams import boot_of

ENV = {"PATH": "/bin", "HOME": "/home/u", "ANTHROPIC_API_KEY": "sk-quite-secret", "OTHER_KEY": "x"}


def launched(folder: Path, model: str) -> RunFiles:
    files = RunFiles(StateDir(folder).create("r"))
    plan = LaunchPlan(
        run="r",
        team="t",
        day="2026-01-01",
        repo="/repo",
        base_kind="head",
        base_sha="a" * 40,
        strategy="merge",
        into=None,
        members=(boot_of("ada").model_copy(update={"model": model}),),
        script_folder="/",
        locks_dir="/locks",
    )
    files.write(plan, lend(ENV, {}, ("other-secret",)))
    return files


def test_a_key_is_lent_at_the_start_and_gone_at_the_end(tmp_path: Path) -> None:
    files = launched(tmp_path, "anthropic:claude-sonnet-5-5")
    assert b"sk-quite-secret" not in files.dir.env.read_bytes()
    files.lend_credentials(ENV)
    lent = RunFiles(files.dir).private
    assert (lent.api_key, lent.secrets) == ("sk-quite-secret", ("other-secret", "sk-quite-secret"))
    assert lent.base == {"PATH": "/bin", "HOME": "/home/u"}
    files.forget_credentials()
    kept = RunFiles(files.dir).private
    assert (kept.api_key, kept.secrets) == (None, ("other-secret",))
    assert files.dir.env.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("model", ["script:s.yaml", "replay:r"])
def test_a_run_that_needs_no_key_gets_none(tmp_path: Path, model: str) -> None:
    files = launched(tmp_path, model)
    files.lend_credentials(ENV)
    assert b"sk-quite-secret" not in files.dir.env.read_bytes()
