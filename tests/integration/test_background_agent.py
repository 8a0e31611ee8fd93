"""An agent with real commands in the background: told of each end once, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import AgentBoot, AgentStatus, Rights, WorkspaceBoot
from retinue.agents.history import Conversation, unpaired
from retinue.agents.identity import call_key
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.mail.envelopes import end_of
from retinue.agents.model.messages import TextBlock, ToolResultBlock, ToolUseBlock
from retinue.agents.model.port import StreamEvent
from retinue.agents.records import AgentRecord, BackgroundEnded, BackgroundStarted, MailStored, ToolFinished
from retinue.agents.steps import Timing
from retinue.orchestrator.scheduling.flock import WorkspaceLock
from retinue.tools.errors import EnvironmentProblem
from retinue.tools.execution.calls import Lease
from retinue.tools.shell.background.ports import background_id
from retinue.tools.shell.reap import reap
from retinue.tools.shell.runner import KeeperShell
from support.agents_scene import (
    FACTS,
    Answers,
    Board,
    Checkpoints,
    Died,
    MemoryLedger,
    Purse,
    a_boot,
    answer,
    prompt,
)

GATE = "until [ -e go ]; do sleep 0.02; done"
ESCAPE = "(setsid bash -c 'echo $$ >>pids; sleep 1000 & echo $! >>pids; wait' >/dev/null 2>&1 </dev/null &)"


def call(name: str, call_id: str, **values: object) -> ToolUseBlock:
    return ToolUseBlock.model_validate({"id": call_id, "name": name, "input": values, "type": "tool_use"})


def bash(call_id: str, command: str, **values: object) -> ToolUseBlock:
    return call("Bash", call_id, command=command, **values)


@dataclass
class Locks:
    """Implements `LeasePort` with the kernel's locks alone, as an agent that is alone has them."""

    lock: WorkspaceLock
    waiters: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4))

    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        async with self.lock.hold(exclusive=exclusive, waiters=self.waiters) as fd:
            yield Lease((fd,))

    async def is_free(self) -> bool:
        try:
            async with asyncio.timeout(0.05), self.hold("test", exclusive=True):
                return True
        except TimeoutError:
            return False


@dataclass
class Desk:
    """One agent's place: its ledger stays, its processes come and go."""

    root: Path
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    board: Board = field(default_factory=Board)
    after_s: float | None = None
    role: str = "teammate"
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    model: Answers = field(default_factory=lambda: Answers([]))
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    loop: AgentLoop | None = None
    running: asyncio.Task[object] | None = None

    def __post_init__(self) -> None:
        (self.root / "w").mkdir()
        self.leases = Locks(WorkspaceLock(self.root / "locks", "w"))
        self.ledger.records.append(MailStored(envelope=prompt()))

    @property
    def work(self) -> Path:
        return self.root / "w"

    def id_of(self, call_id: str, turn: int = 1) -> str:
        return background_id(call_key("r1", "ada~1", turn, call_id))

    def start(self, *answers: Sequence[StreamEvent]) -> AgentLoop:
        self.model = Answers(list(answers))
        boot = AgentBoot.model_validate(
            a_boot(
                workspace=WorkspaceBoot(root=str(self.work), isolation="none"),
                run_dir=str(self.root),
                background_after_s=self.after_s,
                rights=(Rights(mode="bypassPermissions"),),
                role=self.role,
            )
        )
        self.board.told.clear()
        ports = AgentPorts(self.model, self.ledger, Purse(), self.board, self.checkpoints)
        self.loop = assemble_agent(
            boot,
            list(self.ledger.records),
            ports,
            ToolPorts(self.leases, KeeperShell()),
            FACTS,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"},
            timing=Timing(chance=lambda: 0.0),
        )
        self.running = asyncio.create_task(self.loop.run())
        return self.loop

    async def rests(self, after_requests: int) -> AgentStatus:
        """Until it rests with nothing unread and that many requests made."""
        async with asyncio.timeout(10):
            while True:
                assert self.loop is not None
                assert self.running is not None
                if self.running.done():
                    self.running.result()
                status = self.loop.status()
                if status.state in ("idle", "failed") and not status.unread:
                    assert status.state == "idle", status
                    if len(self.model.requests) >= after_requests:
                        return status
                await asyncio.sleep(0.01)

    async def die(self) -> None:
        assert self.running is not None
        self.running.cancel()
        await asyncio.wait([self.running])

    async def drain(self) -> None:
        assert self.loop is not None
        await self.loop.drain()

    def inputs(self) -> str:
        """All that the model was told, in its last request."""
        texts: list[str] = []
        for message in self.model.requests[-1].messages:
            for block in message.content:
                if isinstance(block, TextBlock):
                    texts.append(block.text)
                elif isinstance(block, ToolResultBlock):
                    texts.append(block.content)
        return "\n".join(texts)

    def ends(self) -> list[str]:
        return [r.task.status for r in self.ledger.records if isinstance(r, BackgroundEnded)]

    def notifications(self) -> int:
        return self.inputs().count("<task-notification")


@contextlib.asynccontextmanager
async def desk(root: Path, **more: object) -> AsyncGenerator[Desk]:
    made = Desk(root, **more)  # type: ignore[arg-type]
    try:
        yield made
    finally:
        if made.running is not None:
            made.running.cancel()
            await asyncio.wait([made.running])
        conversation = Conversation.of(made.ledger.records)
        assert unpaired(conversation.messages()[: len(conversation.messages()) // 2 * 2]) == []
        assert reap("r1/ada~1/") == 0


async def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    """Other processes tell nobody what they do: it is looked for."""
    for _ in range(int(seconds / 0.01)):
        if true():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("waited in vain")


class DiesBeforeResults(MemoryLedger):
    """The process ends when the result of a call is due."""

    async def append(self, *records: AgentRecord) -> None:
        if any(isinstance(record, ToolFinished) for record in records):
            raise Died("tool_finished")
        await super().append(*records)


async def test_an_agent_is_answered_at_once_and_woken_by_the_end(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(
            answer(bash("c1", f"{GATE}; echo the result; exit 3", run_in_background=True)),
            answer(bash("c2", "echo meanwhile")),
            answer("I wait."),
            answer("Heard."),
        )
        status = await at.rests(3)
        task = at.id_of("c1")
        assert list(status.background) == [task]
        assert f"background as task {task}" in at.inputs()
        assert str(tmp_path / "tasks" / "ada~1" / f"{task}.output") in at.inputs()
        (at.work / "go").touch()
        assert (await at.rests(4)).background == {}
        told = at.inputs()
        assert f'<task-notification kind="background_end" task_id="{task}" status="failed">' in told
        assert "has failed with exit code 3" in told
        assert "the result" in told
        assert at.notifications() == 1
        assert at.ends() == ["failed"]


async def test_an_end_that_task_output_has_told_is_not_announced(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        task = at.id_of("c1")
        at.start(
            answer(bash("c1", "sleep 0.2; printf '\\033[31mred\\033[0m\\n'", run_in_background=True)),
            answer(call("TaskOutput", "c2", task_id=task)),
            answer("Done."),
        )
        await at.rests(3)
        assert "has completed with exit code 0" in at.inputs()
        assert "\nred" in at.inputs()
        assert at.notifications() == 0
        stored = [r for r in at.ledger.records if isinstance(r, MailStored) and r.envelope.id == end_of(task)]
        assert len(stored) <= 1
        await at.drain()
        at.start()
        await at.rests(0)
        assert at.model.requests == []


async def test_task_output_does_not_wait_when_told_so_and_gives_up_when_its_time_is_up(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        task = at.id_of("c1")
        at.start(
            answer(bash("c1", f"echo so far; {GATE}", run_in_background=True)),
            answer(bash("c2", "until [ -s ../tasks/ada~1/*.output ]; do sleep 0.02; done")),
            answer(
                call("TaskOutput", "c3", task_id=task, block=False),
                call("TaskOutput", "c4", task_id=task, timeout=50),
                call("TaskOutput", "c5", task_id="b0"),
                call("TaskOutput", "c6", task_id="7"),
            ),
            answer("Enough."),
        )
        await at.rests(4)
        assert at.inputs().count("is running.]") == 2
        assert at.inputs().count("so far") >= 2
        assert f"There is no background task b0. This agent's: {task} (running)" in at.inputs()
        assert "TaskGet shows the tasks of the board" in at.inputs()


async def test_task_stop_ends_the_whole_tree_and_says_so(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        task = at.id_of("c1")
        at.start(
            answer(bash("c1", f"{ESCAPE}; sleep 1000", run_in_background=True)),
            answer(bash("c2", "until [ -s pids ]; do sleep 0.02; done")),
            answer(call("TaskStop", "c3", task_id=task), call("TaskStop", "c4", shell_id=task)),
            answer("Stopped."),
        )
        await at.rests(4)
        assert "was stopped after" in at.inputs()
        assert ": by TaskStop." in at.inputs()
        assert "It had ended before." in at.inputs()
        assert reap("r1/ada~1/") == 0
        assert (at.notifications(), at.ends()) == (0, ["stopped"])


async def test_a_command_that_blocks_too_long_goes_on_in_the_background(tmp_path: Path) -> None:
    async with desk(tmp_path, after_s=0.4) as at:
        at.start(
            answer(bash("c1", f"cd /tmp; echo early; cd - >/dev/null; {GATE}; echo late")),
            answer("I go on."),
            answer("Heard."),
        )
        await at.rests(2)
        told = at.inputs()
        assert told.count("early") == 1
        assert "The command had not ended after 0.4 s. It goes on in the background" in told
        assert "The working directory of later commands stays as it was" in told
        (at.work / "go").touch()
        await at.rests(3)
        assert "early\nlate" in at.inputs()


@pytest.mark.parametrize("command", ["sleep 30", "git log; until false; do :; done", "sleep 30; (("])
async def test_what_must_not_be_detached_is_stopped_at_its_time_out(tmp_path: Path, command: str) -> None:
    async with desk(tmp_path, after_s=0.1) as at:
        at.start(answer(bash("c1", command, timeout=300)), answer("Well."))
        await at.rests(2)
        assert "background as task" not in at.inputs()
        assert at.ends() == []


async def test_at_its_time_out_a_command_is_moved_and_not_stopped(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(bash("c1", GATE, timeout=300)), answer("I go on."), answer("Heard."))
        await at.rests(2)
        assert "had not ended after 0.3 s" in at.inputs()
        (at.work / "go").touch()
        await at.rests(3)
        assert at.ends() == ["completed"]


async def test_a_crash_kills_background_commands_and_the_next_process_is_told_once(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(bash("c1", f"echo begun; {ESCAPE}; {GATE}", run_in_background=True)), answer("I wait."))
        await at.rests(2)
        await until((at.work / "pids").exists)
        at.ledger.dies_after = len(at.ledger.records)
        await at.die()
        assert reap("r1/ada~1/") == 0
        at.ledger.dies_after = None
        at.start(answer("Too bad."))
        await at.rests(1)
        assert "was interrupted, outcome unknown" in at.inputs()
        assert "6 bytes of output so far" in at.inputs()
        assert at.notifications() == 1
        await at.die()
        at.start()
        await at.rests(0)
        assert at.model.requests == []
        assert at.ends() == ["lost"]


async def test_a_crash_between_the_end_and_its_word_tells_it_afterwards(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(bash("c1", GATE, run_in_background=True)), answer("I wait."))
        await at.rests(2)
        at.ledger.dies_after = len(at.ledger.records) + 1
        (at.work / "go").touch()
        await until(lambda: at.ends() == ["completed"])
        await at.die()
        at.ledger.dies_after = None
        at.start(answer("Heard."))
        await at.rests(1)
        assert at.notifications() == 1
        assert at.ends() == ["completed"]


async def test_a_drained_agent_ends_its_commands_and_hears_of_it_when_it_is_resumed(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(bash("c1", f"{ESCAPE}; {GATE}", run_in_background=True)), answer("I wait."))
        await at.rests(2)
        await at.drain()
        assert reap("r1/ada~1/") == 0
        assert at.ends() == ["stopped"]
        at.start(answer("I see."))
        await at.rests(1)
        assert "since its agent ended" in at.inputs()
        assert at.notifications() == 1


async def test_an_interruption_of_the_turn_leaves_the_background_alone(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        loop = at.start(
            answer(bash("c1", GATE, run_in_background=True)), answer(bash("c2", "sleep 50")), answer("Heard.")
        )
        await until(lambda: at.ledger.records[-1].kind == "tool_started" and len(at.model.requests) == 2)
        await loop.interrupt("enough")
        assert at.ends() == []
        (at.work / "go").touch()
        await at.rests(3)
        assert at.notifications() == 1


async def test_a_full_disk_holds_the_word_of_an_end_back_and_loses_it_not(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(bash("c1", GATE, run_in_background=True)), answer("I wait."), answer("Heard."))
        await at.rests(2)
        at.ledger.troubles = [EnvironmentProblem("the disk is full")]
        (at.work / "go").touch()
        await at.rests(3)
        assert at.notifications() == 1


async def test_ids_of_tasks_derive_from_their_calls_and_differ(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(
            answer(bash("c1", "true", run_in_background=True), bash("c2", "true", run_in_background=True)),
            answer("Two."),
            answer("One."),
            answer("Two."),
        )
        await until(lambda: len(at.ends()) == 2)
        await at.rests(2)
        begun = {r.task.id for r in at.ledger.records if isinstance(r, BackgroundStarted)}
        assert begun == {at.id_of("c1"), at.id_of("c2")}


@pytest.mark.parametrize(("command", "told"), [("sleep 1000", 0), ("touch mark; sleep 1000", 1)])
async def test_a_command_whose_result_was_lost_with_the_process_is_not_run_again(
    tmp_path: Path, command: str, told: int
) -> None:
    """Also when it only reads and its call is repeated: its task has begun, and the result tells what became of it."""
    async with desk(tmp_path, ledger=DiesBeforeResults()) as at:
        at.start(answer(bash("c1", command, run_in_background=True)))
        assert at.running is not None
        await asyncio.wait([at.running], timeout=10)
        assert isinstance(at.running.exception(), Died)
        assert reap("r1/ada~1/") == 0
        at.ledger = MemoryLedger([r for r in at.ledger.records if not isinstance(r, BackgroundEnded)])
        at.start(answer("I see."), answer("Heard."))
        await at.rests(1)
        assert at.inputs().count("was interrupted, outcome unknown") == 1
        assert at.notifications() == told
        assert at.ends() == ["lost"]


async def test_the_workspace_is_locked_until_the_hand_over_and_other_calls_run_after_it(tmp_path: Path) -> None:
    async with desk(tmp_path, after_s=1.0) as at:
        at.start(
            answer(bash("c1", f"touch begun; {GATE}"), bash("c2", "touch beside")), answer("I go on."), answer("Heard.")
        )
        await until((at.work / "begun").exists)
        assert not await at.leases.is_free()
        assert not (at.work / "beside").exists()
        await at.rests(2)
        assert (at.work / "beside").exists()
        assert await at.leases.is_free()
        (at.work / "go").touch()
        await at.rests(3)


async def test_a_sub_agent_s_background_ends_with_its_answer(tmp_path: Path) -> None:
    async with desk(tmp_path, role="child") as at:
        at.start(answer(bash("c1", "sleep 1000", run_in_background=True)), answer("My answer."))
        assert at.running is not None
        async with asyncio.timeout(10):
            await at.running
        assert at.ends() == ["stopped"]
        assert reap("r1/ada~1/") == 0


async def test_what_changes_in_the_background_is_checkpointed_with_the_next_step(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(
            answer(bash("c1", GATE, run_in_background=True)),
            answer(bash("c2", "ls")),
            answer("I wait."),
            answer("Heard."),
            answer("Again."),
        )
        await at.rests(3)
        assert at.checkpoints.taken == 3
        (at.work / "go").touch()
        await at.rests(4)
        assert at.checkpoints.taken == 4
        assert at.loop is not None
        await at.loop.deliver(prompt().model_copy(update={"id": "again"}))
        await at.rests(5)
        assert at.checkpoints.taken == 4


async def test_the_model_may_read_the_output_of_its_task_as_a_file(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        path = tmp_path / "tasks" / "ada~1" / f"{at.id_of('c1')}.output"
        at.start(
            answer(bash("c1", f"printf 'to be read'; {GATE}", run_in_background=True)),
            answer(bash("c2", f"until [ -s {path} ]; do sleep 0.02; done")),
            answer(call("Read", "c3", file_path=str(path))),
            answer("Read."),
        )
        await at.rests(4)
        assert "to be read" in at.inputs()
