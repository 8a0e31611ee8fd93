"""The main job on real input: a published package's source, three faults planted by a seed, a team that mends them.

The team's script knows how to look, and no place. All assertions are from outside: the exit code, the ledger, the
person's repository, the processes of the machine.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from retinue.agents.records import ToolFinished, TurnClosed
from retinue.orchestrator.cluster.processes import members
from retinue.orchestrator.ledger.records import PhaseChanged, WorkMerged, WorkReturned
from support.invariants import assert_invariants
from support.main_job_faults import TARGETS, Fault, names_in, plant, run_tests
from support.main_job_package import Checkout, fetch_source, git, make_repository
from support.main_job_run import CHANGES, MENDERS, NEW_TEST, RUN, SCRIPT, Finished, MainJob, served

pytestmark = pytest.mark.live


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fetch_source(tmp_path_factory.mktemp("source"))


@pytest.fixture
def job() -> Generator[MainJob]:
    """Whatever a run leaves is ended."""
    root = Path(tempfile.mkdtemp(prefix="rt-job-", dir="/tmp"))
    made = MainJob(root, f"sk-ant-{secrets.token_hex(24)}")
    try:
        yield made
    finally:
        made.clean_up()
        shutil.rmtree(root)


def planted(job: MainJob, source: Path, seed: int) -> tuple[Fault, ...]:
    faulty = job.root / "faulty"
    shutil.copytree(source, faulty)
    faults = plant(source, faulty, job.root / "scratch", seed, SCRIPT.read_text())
    make_repository(faulty, job.repo)
    job.write(faults)
    known = names_in(SCRIPT.read_text())
    for fault in faults:
        assert not {fault.right, fault.wrong, fault.function, str(fault.line), *fault.tests.split(".")[2:]} & known
        assert not {fault.right, fault.wrong, str(fault.line)} & names_in(job.spec.read_text())
        assert fault.file not in SCRIPT.read_text() + job.spec.read_text()
    return faults


@pytest.mark.parametrize("seed", [1, 2])
def test_a_team_mends_what_a_seed_has_broken(job: MainJob, source: Path, seed: int) -> None:
    faults = planted(job, source, seed)
    before = Checkout.of(job.repo)
    finished = job.up()
    assert_all_is_mended(job, finished, faults, source)
    assert Checkout.of(job.repo) == before, "the person's checkout was touched"
    assert_nothing_is_left(job)


def test_the_same_team_does_it_over_http_and_the_key_is_seen_nowhere(job: MainJob, source: Path) -> None:
    faults = planted(job, source, 3)
    before = Checkout.of(job.repo)
    with served(job.script, job.environment()) as address:
        access = {"ANTHROPIC_API_KEY": job.key, "ANTHROPIC_BASE_URL": address}
        finished = job.up("--model", "anthropic:claude-sonnet-5-5", **access)
    assert_all_is_mended(job, finished, faults, source)
    assert Checkout.of(job.repo) == before, "the person's checkout was touched"
    assert_nothing_is_left(job)
    for sight in job.sights():
        assert sight.keys == ((finished.pid, "environ"),), "only the command that was given the key has it"
    holders = {p.name for p in job.dir.rglob("*") if p.is_file() and job.key.encode() in p.read_bytes()}
    assert holders == {"env.json"}
    assert job.key not in finished.output


def test_an_agent_that_reads_another_line_fails_and_so_does_the_run(job: MainJob, source: Path) -> None:
    planted(job, source, 1)
    before = Checkout.of(job.repo)
    script = job.script.read_text()
    assert 'offset: "${line}"' in script
    job.script.write_text(script.replace('offset: "${line}"', 'offset: "1${line}"'))
    finished = job.up()
    assert finished.code == 1, finished.output
    failed = [(writer, r.detail) for writer, r in job.records() if isinstance(r, TurnClosed) and r.reason != "done"]
    assert {writer.split("~")[0] for writer, _ in failed} == set(MENDERS)
    assert all("expects" in detail for _, detail in failed)
    assert not [record for _, record in job.records() if isinstance(record, WorkMerged)]
    assert Checkout.of(job.repo) == before, "the person's checkout was touched"
    assert_nothing_is_left(job)


def assert_all_is_mended(job: MainJob, finished: Finished, faults: tuple[Fault, ...], source: Path) -> None:
    assert finished.code == 0, finished.output
    records = [record for _, record in job.records()]
    assert [record.phase for record in records if isinstance(record, PhaseChanged)][-1] == "done"
    merged = [record.task_id for record in records if isinstance(record, WorkMerged)]
    assert sorted(merged) == ["keep", "mend-1", "mend-2", "mend-3"]
    [returned] = [record for record in records if isinstance(record, WorkReturned)]
    assert returned.reason.startswith("conflict")
    assert CHANGES in returned.output
    assert_invariants(job.dir)
    assert_the_result_is_right(job, faults, source)
    assert_agents_kept_to_themselves(job)


def assert_the_result_is_right(job: MainJob, faults: tuple[Fault, ...], source: Path) -> None:
    """The package is as it was published, byte by byte, with a test and two lines of news more."""
    clone = job.clone_of_result()
    for file in {file for target in TARGETS for file in target}:
        assert (clone / file).read_bytes() == (source / file).read_bytes(), f"{file} is not as it was published"
    changed = git(clone, "diff", "--name-only", "origin/main", "HEAD").splitlines()
    assert sorted(changed) == sorted({fault.file for fault in faults} | {CHANGES, NEW_TEST})
    news = (clone / CHANGES).read_text()
    assert "<<<<<<<" not in news
    for name, fault in zip(("ada", "ben"), faults, strict=False):
        assert news.count(f"* {name}: ") == 1
        assert f"finds {fault.right} again" in news
    tests = " ".join([*(fault.tests for fault in faults), "tests.test_misspelt"])
    code, output = run_tests(clone, tests)
    assert code == 0, output
    agents = {f"{name} <{name}@{RUN}.retinue.invalid>" for name in MENDERS}
    assert set(git(clone, "log", "--format=%an <%ae>", "origin/main..HEAD").splitlines()) == agents
    assert set(git(clone, "log", "--no-merges", "--format=%cn <%ce>", "origin/main..HEAD").splitlines()) == agents


def assert_agents_kept_to_themselves(job: MainJob) -> None:
    """Every command ran in its own agent's worktree, or in that of the merge queue; nothing was denied."""
    homes = {(sight.tag.split("/")[1], Path(sight.cwd).name) for sight in job.sights()}
    assert {(f"{name}~1", f"{name}~1") for name in MENDERS} < homes
    assert len(homes) == len(MENDERS) + 1
    results = [record.result for _, record in job.records() if isinstance(record, ToolFinished)]
    assert results
    assert not [result for result in results if result.is_error and "denied" in result.content]


def assert_nothing_is_left(job: MainJob) -> None:
    cluster = job.cluster()
    assert cluster.folder is not None
    assert not cluster.folder.exists()
    assert members(cluster.tag) == []
    assert job.left() == []
