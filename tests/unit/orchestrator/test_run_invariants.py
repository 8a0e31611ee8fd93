"""What checks runs is checked itself: a good ledger passes, and each way to break one is found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from retinue.agents.mail.envelopes import Envelope, Text
from retinue.agents.model.messages import ToolUseBlock, Usage, Wire
from retinue.agents.records import (
    BlockComplete,
    MailStored,
    MessageClosed,
    RequestSent,
    StepClosed,
    ToolFinished,
    ToolStarted,
    TurnClosed,
)
from retinue.orchestrator.ledger.parse import body_of
from retinue.orchestrator.ledger.records import (
    IncarnationStarted,
    MemberAdded,
    MergeIntended,
    PhaseChanged,
    RunOpened,
    TaskChanged,
    WorkMerged,
    WorkSubmitted,
)
from retinue.orchestrator.ledger.writer import LedgerWriter
from retinue.tools.execution.calls import CallResult
from retinue.tools.ports import TaskStatus, TaskView
from support.invariants import violations
from support.teams import boot_of

ADA = "ada~1"
BASE, WORK, TIP = "a" * 40, "b" * 40, "c" * 40
Line = tuple[str, int, Wire]

OPENED = RunOpened(
    run="r",
    team="t",
    repo="/repo",
    base_kind="head",
    base_sha=BASE,
    result_ref="refs/heads/retinue/r/result",
    strategy="merge",
    usd=None,
    requests=None,
    tokens=None,
    wall_s=None,
)
STARTED = ToolStarted(turn=1, step=1, call_id="c1", tool="Bash", read_only=False)
FINISHED = ToolFinished(turn=1, step=1, result=CallResult(call_id="c1", name="Bash", content=""))
ASKED = RequestSent(turn=1, step=1, mail=("m1",))
CALL = BlockComplete(turn=1, step=1, index=0, block=ToolUseBlock(id="c1", name="Bash"))
CLOSED = MessageClosed(turn=1, step=1, stop_reason="tool_use", usage=Usage(), model="script:s")
LANDED = WorkMerged(task_id="a", agent=ADA, sha=WORK, tip=TIP, changed=True)
DONE = PhaseChanged(phase="done")


def mail(identifier: str) -> MailStored:
    return MailStored(envelope=Envelope(id=identifier, sender="human", recipient=ADA, body=Text(text="go")))


def task(status: TaskStatus) -> TaskChanged:
    return TaskChanged(task=TaskView(id="a", subject="A", owner="ada", status=status), by="team")


def team(*records: Wire) -> list[Line]:
    return [("team", 1, record) for record in records]


def ada(*records: Wire, incarnation: int = 1) -> list[Line]:
    return [(ADA, incarnation, record) for record in records]


def good() -> list[Line]:
    intent = MergeIntended(task_id="a", tip=BASE, candidate=TIP)
    return [
        *team(OPENED, MemberAdded(boot=boot_of("ada")), task("pending"), started(1)),
        *ada(mail("m1"), ASKED, CALL, CLOSED, STARTED, FINISHED, StepClosed(turn=1, step=1)),
        *ada(TurnClosed(turn=1, reason="done")),
        *team(task("verifying"), WorkSubmitted(task_id="a", agent=ADA, branch="b", sha=WORK), intent, LANDED),
        *team(task("merged"), DONE),
    ]


def started(incarnation: int) -> IncarnationStarted:
    return IncarnationStarted(agent=ADA, incarnation=incarnation, at=0.0)


def without(lines: Sequence[Line], *kinds: type[Wire]) -> list[Line]:
    return [line for line in lines if not isinstance(line[2], kinds)]


def after(kind: type[Wire], more: Sequence[Line]) -> list[Line]:
    lines = good()
    at = next(i for i, line in enumerate(lines) if isinstance(line[2], kind))
    return [*lines[: at + 1], *more, *lines[at + 1 :]]


def found(folder: Path, lines: Sequence[Line]) -> list[str]:
    ledger = folder / "ledger.rlog"
    writers: dict[tuple[str, int], LedgerWriter] = {}
    for name, incarnation, record in lines:
        key = (name, incarnation)
        if key not in writers:
            writers[key] = LedgerWriter.open(ledger, name, incarnation)
        kind, body = body_of(record)
        writers[key].append_sync(kind, body)
    for writer in writers.values():
        writer.close()
    return violations(ledger)


def test_a_run_in_which_all_is_well_passes(tmp_path: Path) -> None:
    assert found(tmp_path, good()) == []


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        (after(TurnClosed, team(started(1))), "incarnation 1 of ada~1 was started a second time"),
        (after(TurnClosed, ada(mail("m1"), incarnation=2)), "incarnation 2 of ada~1 was made by nobody"),
        (after(ToolStarted, ada(STARTED)), "c1 of ada~1 in step 1 ran 2 times"),
        (
            after(ToolStarted, ada(STARTED.model_copy(update={"call_id": "c2"}))),
            "c2 of ada~1 starts while c1 of ada~1 runs",
        ),
        (without(good(), ToolFinished), "c1 of ada~1 has no result, and its step 1 is closed"),
        (without(good(), ToolFinished, StepClosed, TurnClosed), "ada~1 was left in the middle of a step"),
        (after(ToolFinished, ada(FINISHED)), "ada~1: c1 has a second result"),
        (after(TurnClosed, ada(RequestSent(turn=2, step=2, mail=("m1",)))), "mail m1 to ada~1 was read 2 times"),
        (after(MailStored, ada(mail("m2"))), "mail m2 to ada~1 was never read"),
        (without(good(), MailStored), "ada~1 read m1, which is for nobody"),
        (after(WorkMerged, team(LANDED)), "task a landed 2 times"),
        ([*good(), *team(task("in_progress"))], "task a was merged and became in_progress"),
        (
            after(WorkSubmitted, team(MergeIntended(task_id="a", tip=TIP, candidate=BASE))),
            f"task a was to land on {TIP}, and the tip was {BASE}",
        ),
        (without(good(), WorkMerged), "task a is merged and never landed"),
        ([*good()[:-2], *team(DONE)], "task a is verifying, and the run is done"),
    ],
)
def test_what_is_broken_is_named(tmp_path: Path, lines: list[Line], broken: str) -> None:
    assert broken in found(tmp_path, lines)


def test_what_a_replaced_process_did_counts(tmp_path: Path) -> None:
    """Its records are void for everybody else; but the command ran."""
    again = [*team(started(2)), *ada(STARTED, incarnation=2), *ada(STARTED)]
    assert "c1 of ada~1 in step 1 ran 3 times" in found(tmp_path, after(ToolStarted, again))


@pytest.mark.parametrize(("effect_s", "overlaps"), [(60.0, True), (0.0, False)])
def test_of_two_agents_in_one_workspace_the_effects_must_not_overlap(
    tmp_path: Path, effect_s: float, overlaps: bool
) -> None:
    """The end of a call is recorded after its lease is given back; what overlaps is told by how long it took."""
    ended = FINISHED.model_copy(update={"result": FINISHED.result.model_copy(update={"effect_s": effect_s})})
    ben = [("team", 1, MemberAdded(boot=boot_of("ben"))), ("ben~1", 1, STARTED)]
    lines = [line for line in after(ToolStarted, ben) if not isinstance(line[2], ToolFinished)]
    lines.insert(lines.index(ben[-1]) + 1, (ADA, 1, ended))
    said = "c1 of ben~1 starts while c1 of ada~1 runs"
    assert (said in found(tmp_path, lines)) is overlaps
