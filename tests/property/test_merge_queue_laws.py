"""Laws of the merge queue, under random work, failures and crashes."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from retinue.orchestrator.ledger.records import MergeIntended, WorkMerged, WorkReturned, WorkSubmitted
from retinue.orchestrator.merging.queue import (
    IN_FLIGHT,
    AgentGone,
    Broke,
    Build,
    Built,
    Effect,
    Halt,
    Intend,
    Intended,
    Land,
    MergeQueue,
    Moved,
    MoveTip,
    Passed,
    Rejected,
    Resumed,
    Return,
    State,
    Submitted,
    Verify,
    Withdrawn,
)
from retinue.orchestrator.merging.recovery import QueueRecord, recover

TASKS = ("1", "2", "3", "4")
AGENTS = {"1": "ada", "2": "bob", "3": "ada", "4": "lead"}


@dataclass
class Shell:
    """The outside of the queue: a ref, a ledger that survives, and an effect that is being carried out."""

    queue: MergeQueue = field(default_factory=lambda: MergeQueue(tip="base", lead="lead"))
    ref: str = "base"
    ledger: list[QueueRecord] = field(default_factory=list)
    todo: list[Effect] = field(default_factory=list)
    landed: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    withdrawn: set[str] = field(default_factory=set)
    candidates: int = 0
    submissions: int = 0

    def take(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Land):
                self.landed.append(effect.item.task)
                self.ledger.append(
                    WorkMerged(
                        task_id=effect.item.task,
                        agent=effect.item.agent,
                        sha=effect.item.sha,
                        tip=effect.tip,
                        changed=effect.changed,
                    )
                )
            elif isinstance(effect, Return):
                if effect.reason == "no":
                    self.ledger.append(
                        WorkReturned(
                            task_id=effect.item.task,
                            agent=effect.item.agent,
                            sha=effect.item.sha,
                            reason="no",
                            output="",
                        )
                    )
            else:
                self.todo.append(effect)

    def submit(self, task: str) -> None:
        item = self.queue.items.get(task)
        if item is not None and item.state not in (State.QUEUED, State.RETURNED, State.WITHDRAWN):
            return
        self.submissions += 1
        sha = f"s{self.submissions}"
        self.withdrawn.discard(task)
        self.ledger.append(WorkSubmitted(task_id=task, agent=AGENTS[task], branch="work", sha=sha))
        self.take(self.queue.handle(Submitted(task, AGENTS[task], "work", sha)))

    def step(self, luck: str) -> None:
        """Carry out the oldest effect, with one of its outcomes."""
        if not self.todo:
            return
        effect = self.todo.pop(0)
        if isinstance(effect, Halt):
            self.take(self.queue.handle(Resumed(self.ref)))
            return
        task = effect.item.task
        if luck == "broke":
            self.take(self.queue.handle(Broke(task, "disk full")))
            return
        match effect:
            case Build():
                self.candidates += 1
                candidate = None if luck == "nothing" else f"c{self.candidates}"
                event = Rejected(task, "no") if luck == "no" else Built(task, candidate)
            case Verify():
                event = Rejected(task, "no") if luck == "no" else Passed(task)
            case Intend():
                self.ledger.append(MergeIntended(task_id=task, tip=effect.tip, candidate=effect.candidate))
                event = Intended(task)
            case MoveTip():
                assert self.ref == effect.tip, "moved from a tip that is not there"
                intents = [r for r in self.ledger if isinstance(r, MergeIntended)]
                assert intents[-1].candidate == effect.candidate, "moved without an intent"
                self.ref = effect.candidate
                event = Moved(task)
        self.take(self.queue.handle(event))

    def crash(self, moved: bool) -> None:
        """Everything in memory is gone; a move that was under way happened or not."""
        pending = [effect for effect in self.todo if isinstance(effect, MoveTip)]
        if moved and pending:
            self.ref = pending[0].candidate
        self.todo = []
        self.queue, effects = recover(
            self.ledger, base="base", actual_tip=self.ref, lead="lead", gone=self.gone, withdrawn=self.withdrawn
        )
        self.take(effects)

    def check(self) -> None:
        items = self.queue.items.values()
        assert len([i for i in items if i.state in IN_FLIGHT]) <= 1
        assert len(self.landed) == len(set(self.landed)), "landed twice"
        assert {i.task for i in items} == {r.task_id for r in self.ledger if isinstance(r, WorkSubmitted)}, "lost"
        for item in items:
            waits = item.state is State.QUEUED or item.state in IN_FLIGHT
            assert (item.holder == "queue") == waits
            assert (item.holder in ("author", "lead", "human")) == (item.state is State.RETURNED)
            assert (item.holder == "nobody") == (item.state in (State.LANDED, State.WITHDRAWN))
        assert {i.task for i in items if i.state is State.LANDED} == set(self.landed)
        if self.queue.busy and self.queue.halted is None:
            assert self.todo, "something waits and nothing happens"
            assert self.queue.in_flight is not None
        waiting = [i.place for i in items if i.state is State.QUEUED]
        assert sorted(waiting) == sorted(set(waiting))


MOVES = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), st.sampled_from(TASKS)),
        st.tuples(st.just("step"), st.sampled_from(("yes", "yes", "yes", "no", "nothing", "broke"))),
        st.tuples(st.just("crash"), st.booleans()),
        st.tuples(st.just("withdraw"), st.sampled_from(TASKS)),
        st.tuples(st.just("gone"), st.sampled_from(("ada", "bob", "lead"))),
    ),
    max_size=80,
)


def _play(shell: Shell, move: tuple[str, object]) -> None:
    match move:
        case ("submit", str(task)):
            shell.submit(task)
        case ("step", str(luck)):
            shell.step(luck)
        case ("crash", bool(moved)):
            shell.crash(moved)
        case ("withdraw", str(task)):
            item = shell.queue.items.get(task)
            if item is not None and item.state is not State.LANDED:
                shell.withdrawn.add(task)
            shell.take(shell.queue.handle(Withdrawn(task)))
        case ("gone", str(agent)):
            shell.gone.add(agent)
            shell.take(shell.queue.handle(AgentGone(agent)))


@given(MOVES)
def test_no_item_is_lost_landed_twice_or_without_a_holder(moves):
    shell = Shell()
    for move in moves:
        _play(shell, move)
        shell.check()


@given(MOVES)
def test_with_luck_everything_that_waits_lands_in_the_end(moves):
    shell = Shell()
    for move in moves:
        _play(shell, move)
    waiting = {i.task for i in shell.queue.items.values() if i.holder == "queue" and not i.withdrawn}
    for _ in range(200):
        shell.step("yes")
    shell.check()
    assert not shell.queue.busy
    assert waiting <= set(shell.landed)
    assert shell.ref == shell.queue.tip


@given(st.permutations(TASKS), st.lists(st.sampled_from(("step", "crash")), max_size=40))
def test_what_is_never_sent_back_lands_in_the_order_of_submission(order, moves):
    shell = Shell()
    for task in order:
        shell.submit(task)
    for move in moves:
        shell.step("yes") if move == "step" else shell.crash(True)
    for _ in range(60):
        shell.step("yes")
    assert shell.landed == list(order)


@given(MOVES)
def test_a_restart_at_any_moment_changes_nothing_about_what_has_landed_or_was_returned(moves):
    shell = Shell()
    for move in moves:
        _play(shell, move)
    before = {i.task: (i.returns, i.sha) for i in shell.queue.items.values()}
    landed = set(shell.landed)
    shell.crash(False)
    assert {i.task: (i.returns, i.sha) for i in shell.queue.items.values()} == before
    assert landed <= set(shell.landed)
