"""Laws of background tasks: each ends once, and its agent hears of it once by mail, also after any crash."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from retinue.agents.background.state import BackgroundTasks
from retinue.agents.mail.envelopes import BackgroundEnd, Envelope, end_of
from retinue.agents.mail.mailbox import Mailbox
from retinue.agents.records import (
    AgentRecord,
    BackgroundEnded,
    BackgroundStarted,
    MailStored,
    RequestSent,
    ToolFinished,
)
from retinue.tools.errors import InvariantBroken
from retinue.tools.execution.calls import CallResult
from retinue.tools.shell.background.ports import BackgroundTask, background_id

AGENT = "ada~1"


def task_of(number: int) -> BackgroundTask:
    return BackgroundTask(id=background_id(str(number)), call_id=f"c{number}", command="make", output_file="/o")


class Life(RuleBasedStateMachine):
    """An agent's processes, one after the other; the records are all that stays between them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[AgentRecord] = []
        self.begun = 0
        self.by_mail: dict[str, int] = {}
        self.by_result: set[str] = set()

    @initialize()
    def first_process(self) -> None:
        self.tasks, self.box = BackgroundTasks(), Mailbox()

    def write(self, record: AgentRecord) -> None:
        self.records.append(record)
        if isinstance(record, BackgroundStarted | BackgroundEnded):
            self.tasks.apply(record)
        else:
            self.box.apply(record)

    def tell(self, task: BackgroundTask) -> None:
        envelope = Envelope(id=end_of(task.id), sender=AGENT, recipient=AGENT, body=BackgroundEnd(task=task))
        if self.box.accept(envelope).outcome == "stored":
            self.write(MailStored(envelope=envelope))

    @rule()
    def begins(self) -> None:
        self.begun += 1
        self.write(BackgroundStarted(task=task_of(self.begun)))

    @precondition(lambda self: self.tasks.running())
    @rule(data=st.data(), status=st.sampled_from(["completed", "failed", "stopped"]), dies_before_telling=st.booleans())
    def ends(self, data: st.DataObject, status: str, dies_before_telling: bool) -> None:
        task = data.draw(st.sampled_from(self.tasks.running())).model_copy(update={"status": status})
        self.write(BackgroundEnded(task=task))
        if dies_before_telling:
            self.crashes()
        else:
            self.tell(task)

    @precondition(lambda self: any(not task.is_running for task in self.tasks.all()))
    @rule(data=st.data())
    def a_call_tells_an_end(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from([task for task in self.tasks.all() if not task.is_running]))
        self.write(ToolFinished(turn=1, step=1, result=CallResult(call_id="t", name="T", content="", told=(task.id,))))
        self.by_result.add(task.id)

    @rule()
    def a_step_takes_mail(self) -> None:
        taken = self.box.take(1_000).envelopes
        if taken:
            self.write(RequestSent(turn=1, step=1, mail=tuple(envelope.id for envelope in taken)))
        for envelope in taken:
            assert isinstance(envelope.body, BackgroundEnd)
            task = envelope.body.task.id
            self.by_mail[task] = self.by_mail.get(task, 0) + 1
            assert task not in self.by_result

    @rule()
    def crashes(self) -> None:
        """The next process reads the records, and does what a process does first."""
        self.tasks, self.box = BackgroundTasks(), Mailbox()
        records, self.records = self.records, []
        for record in records:
            self.write(record)
        for task in self.tasks.running():
            self.write(BackgroundEnded(task=task.model_copy(update={"status": "lost"})))
        for task in self.tasks.untold(self.box.knows):
            self.tell(task)

    @invariant()
    def nobody_hears_twice_by_mail(self) -> None:
        assert all(times == 1 for times in self.by_mail.values())

    @invariant()
    def every_end_is_known_or_on_its_way(self) -> None:
        assert self.tasks.untold(self.box.knows) == ()
        assert len(self.tasks.all()) == self.begun

    def teardown(self) -> None:
        if not hasattr(self, "box"):
            return
        self.crashes()
        while self.box.unread:
            self.a_step_takes_mail()
        heard = self.by_mail.keys() | self.by_result
        assert heard == {task.id for task in self.tasks.all()}


TestLife = Life.TestCase


def test_a_task_begins_once_and_ends_once() -> None:
    tasks = BackgroundTasks()
    running, ended = task_of(1), task_of(1).model_copy(update={"status": "completed"})
    with pytest.raises(InvariantBroken, match="without running"):
        tasks.apply(BackgroundEnded(task=ended))
    with pytest.raises(InvariantBroken, match="does not run"):
        tasks.apply(BackgroundStarted(task=ended))
    tasks.apply(BackgroundStarted(task=running))
    with pytest.raises(InvariantBroken, match="twice"):
        tasks.apply(BackgroundStarted(task=running))
    tasks.apply(BackgroundEnded(task=ended))
    with pytest.raises(InvariantBroken, match="without running"):
        tasks.apply(BackgroundEnded(task=ended))
    with pytest.raises(InvariantBroken, match="twice"):
        tasks.apply(BackgroundStarted(task=running))
    assert (tasks.running(), tasks.all()) == ((), (ended,))
