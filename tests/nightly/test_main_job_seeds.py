"""The main job with many seeds: other functions, other names, other orders of landing."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.main_job_checks import assert_all_is_mended, assert_nothing_is_left, main_job, prepare
from support.main_job_package import fetch_source
from support.main_job_run import served

pytestmark = [pytest.mark.nightly, pytest.mark.live]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch_source(tmp_path_factory.mktemp("source"))


@pytest.mark.parametrize("seed", range(100, 120))
def test_a_team_mends_what_any_seed_has_broken(source: Path, seed: int) -> None:
    """Every other one over HTTP."""
    with main_job() as job:
        faults, before = prepare(job, source, seed)
        if seed % 2:
            with served(job.script, job.environment()) as address:
                access = {"ANTHROPIC_API_KEY": job.key, "ANTHROPIC_BASE_URL": address}
                finished = job.up("--model", "anthropic:claude-sonnet-5-5", **access)
        else:
            finished = job.up()
        assert_all_is_mended(job, finished, faults, source)
        assert_nothing_is_left(job, before)
