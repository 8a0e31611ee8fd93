"""The main job on real input: a published package's source, three faults planted by a seed, a team that mends them.

The team's script knows how to look, and no place: a wrong read fails the run.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest

from retinue.agents.identity import name_of
from retinue.agents.records import MessageClosed, TurnClosed
from retinue.orchestrator.ledger.records import WorkMerged
from support.main_job_checks import assert_all_is_mended, assert_nothing_is_left, main_job, prepare
from support.main_job_package import fetch_source
from support.main_job_run import MENDERS, MainJob, served

pytestmark = pytest.mark.live


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch_source(tmp_path_factory.mktemp("source"))


@pytest.fixture
def job() -> Generator[MainJob]:
    with main_job() as made:
        yield made


@pytest.mark.parametrize("seed", [2, 7])
def test_a_team_mends_what_a_seed_has_broken(job: MainJob, source: Path, seed: int) -> None:
    faults, before = prepare(job, source, seed)
    finished = job.up()
    assert_all_is_mended(job, finished, faults, source)
    assert_nothing_is_left(job, before)


@pytest.mark.parametrize("sandbox", ["true", "false"])
def test_the_same_team_does_it_over_http_and_the_key_is_seen_nowhere(job: MainJob, source: Path, sandbox: str) -> None:
    faults, before = prepare(job, source, 5)
    with served(job.script, job.environment()) as address:
        access = {"ANTHROPIC_API_KEY": job.key, "ANTHROPIC_BASE_URL": address}
        finished = job.up("--model", "anthropic:claude-sonnet-5-5", "--set", f"sandbox.enabled={sandbox}", **access)
    assert_all_is_mended(job, finished, faults, source)
    assert_nothing_is_left(job, before)
    assert {r.model for _, r in job.records() if isinstance(r, MessageClosed)} == {"anthropic:claude-sonnet-5-5"}
    # Without a sandbox a command can look at the processes of its user: only the one that was given the key has it.
    visible = () if sandbox == "true" else ((finished.pid, "environ"),)
    for sight in job.sights():
        assert sight.keys == visible
    holders = {path.name for path in job.dir.rglob("*") if path.is_file() and job.key.encode() in path.read_bytes()}
    assert holders == set(), "the end of a run takes its credentials out of its directory"
    assert job.key not in finished.output


def test_a_launch_that_fails_leaves_no_cluster(job: MainJob, source: Path) -> None:
    prepare(job, source, 2)
    job.dir.mkdir(parents=True)
    finished = job.up()
    assert finished.code == 2
    assert "exists already" in finished.output
    assert job.left() == []


def test_an_agent_that_reads_another_line_fails_and_so_does_the_run(job: MainJob, source: Path) -> None:
    _, before = prepare(job, source, 3)
    script = job.script.read_text()
    assert 'offset: "${line}"' in script
    job.script.write_text(script.replace('offset: "${line}"', 'offset: "1${line}"'))
    finished = job.up()
    assert finished.code == 1, finished.output
    failed = {name_of(writer): r.detail for writer, r in job.records() if isinstance(r, TurnClosed) and r.detail}
    assert failed.keys() == set(MENDERS)
    assert all("expects" in detail for detail in failed.values())
    assert not [record for _, record in job.records() if isinstance(record, WorkMerged)]
    assert_nothing_is_left(job, before)
