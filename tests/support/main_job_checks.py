"""Setting the main job up, and what must be true when it is over. All of it is seen from outside of the run."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from retinue.agents.records import ToolFinished
from retinue.orchestrator.cluster.processes import members
from retinue.orchestrator.ledger.records import PhaseChanged, WorkMerged, WorkReturned
from support.invariants import assert_invariants
from support.main_job_faults import TARGETS, Fault, names_in, plant, run_tests
from support.main_job_package import Checkout, git, make_repository
from support.main_job_run import CHANGES, MENDERS, NEW_TEST, RUN, SCRIPT, Finished, MainJob


@contextmanager
def main_job() -> Generator[MainJob]:
    """In folders of its own; whatever a run leaves is ended."""
    made = MainJob(Path(tempfile.mkdtemp(prefix="rt-job-", dir="/tmp")), f"sk-ant-{secrets.token_hex(24)}")
    try:
        yield made
    finally:
        made.clean_up()
        shutil.rmtree(made.root)


def prepare(job: MainJob, source: Path, seed: int) -> tuple[tuple[Fault, ...], Checkout]:
    """Plant the faults, and write a script and a spec that do not give them away."""
    faulty = job.root / "faulty"
    shutil.copytree(source, faulty)
    faults = plant(source, faulty, job.root / "scratch", seed, SCRIPT.read_text())
    make_repository(faulty, job.repo)
    job.write(faults)
    script, spec = job.script.read_text(), job.spec.read_text()
    for fault in faults:
        names = {fault.right, fault.wrong, str(fault.line)}
        assert not {*names, fault.function, fault.tests.rpartition(".")[2]} & names_in(script)
        assert not names & names_in(spec)
        assert fault.file not in script + spec
    return faults, Checkout.of(job.repo)


def assert_all_is_mended(job: MainJob, finished: Finished, faults: Sequence[Fault], source: Path) -> None:
    assert finished.code == 0, finished.output
    records = [record for _, record in job.records()]
    assert [record.phase for record in records if isinstance(record, PhaseChanged)][-1] == "done"
    merged = [record.task_id for record in records if isinstance(record, WorkMerged)]
    assert sorted(merged) == ["keep", "mend-1", "mend-2", "mend-3"]
    [returned] = [record for record in records if isinstance(record, WorkReturned)]
    assert returned.reason.startswith("conflict")
    assert CHANGES in returned.output
    assert_invariants(job.dir)
    _assert_the_result_is_right(job, faults, source)
    _assert_agents_kept_to_themselves(job)


def _assert_the_result_is_right(job: MainJob, faults: Sequence[Fault], source: Path) -> None:
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


def _assert_agents_kept_to_themselves(job: MainJob) -> None:
    """Every command ran in its own agent's worktree, or in that of the merge queue; nothing was denied."""
    homes = {(sight.tag.split("/")[1], Path(sight.cwd)) for sight in job.sights()}
    worktrees = {(f"{name}~1", job.dir / "wt" / f"{name}~1") for name in MENDERS}
    assert homes == worktrees | {("team", job.dir / "verify")}
    assert {sight.spec_env for sight in job.sights()} == {"mend"}, "agents and checks have the spec's environment"
    results = [record.result for _, record in job.records() if isinstance(record, ToolFinished)]
    assert results
    assert not [result for result in results if result.denied]


def assert_nothing_is_left(job: MainJob, before: Checkout) -> None:
    """No process, no cluster, and a person's checkout as it was."""
    cluster = job.cluster()
    assert cluster.folder is not None
    assert not cluster.folder.exists()
    assert members(cluster.tag) == []
    assert job.left() == []
    assert Checkout.of(job.repo) == before, "the person's checkout was touched"
