"""An agent whose model runs code: its calls are in the ledger, its process ends with it, a crash is told once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import AgentBoot, Rights, RuleSet, ToolFilter, WorkspaceBoot
from retinue.agents.history import Conversation, unpaired
from retinue.agents.identity import call_key
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.model.messages import ToolResultBlock, ToolUseBlock
from retinue.agents.model.port import StreamEvent
from retinue.agents.records import AGENT_RECORD, InnerFinished, InnerStarted, MailStored
from retinue.agents.steps import Timing
from retinue.tools.shell.runner import KeeperShell
from support.agents_scene import (
    FACTS,
    Answers,
    Board,
    Checkpoints,
    FreeLeases,
    MemoryLedger,
    Purse,
    a_boot,
    answer,
    prompt,
)
from support.repl_scene import until


def code(call_id: str, text: str, **more: object) -> ToolUseBlock:
    return ToolUseBlock.model_validate(
        {"id": call_id, "name": "REPL", "input": {"code": text, **more}, "type": "tool_use"}
    )


@dataclass
class Desk:
    """One agent's place: its ledger stays, its processes come and go."""

    root: Path
    rights: Rights = field(default_factory=lambda: Rights(mode="bypassPermissions"))
    tools: ToolFilter = field(default_factory=ToolFilter)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    board: Board = field(default_factory=Board)
    model: Answers = field(default_factory=lambda: Answers([]))
    running: asyncio.Task[object] | None = None

    def __post_init__(self) -> None:
        self.work = self.root / "work"
        self.scratch = self.root / "scratch"
        self.work.mkdir()
        self.scratch.mkdir()
        self.ledger.records.append(MailStored(envelope=prompt()))

    def start(self, *answers: Sequence[StreamEvent]) -> AgentLoop:
        self.model = Answers(list(answers))
        boot = AgentBoot.model_validate(
            a_boot(
                workspace=WorkspaceBoot(root=str(self.work), isolation="none"),
                run_dir=str(self.root),
                rights=(self.rights,),
                tools=self.tools,
            )
        )
        self.loop = assemble_agent(
            boot,
            list(self.ledger.records),
            AgentPorts(self.model, self.ledger, Purse(), self.board, Checkpoints()),
            ToolPorts(FreeLeases(), KeeperShell()),
            FACTS,
            env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TMPDIR": str(self.scratch)},
            timing=Timing(chance=lambda: 0.0),
        )
        self.running = asyncio.create_task(self.loop.run())
        return self.loop

    async def rests(self, requests: int) -> None:
        def does() -> bool:
            status = self.loop.status()
            return status.state == "idle" and not status.unread and len(self.model.requests) >= requests

        await until(does)

    def results(self) -> list[str]:
        """What the model was told of its calls, in its last request."""
        messages = self.model.requests[-1].messages
        return [b.content for m in messages for b in m.content if isinstance(b, ToolResultBlock)]

    def inner(self) -> list[InnerStarted | InnerFinished]:
        return [r for r in self.ledger.records if isinstance(r, InnerStarted | InnerFinished)]

    async def end(self) -> None:
        if self.running is not None and not self.running.done():
            self.running.cancel()
            await asyncio.wait([self.running])


@contextlib.asynccontextmanager
async def desk(root: Path, **more: object) -> AsyncGenerator[Desk]:
    at = Desk(root, **more)  # type: ignore[arg-type]
    try:
        yield at
    finally:
        await at.end()


def offered(at: Desk) -> set[str]:
    return {spec.name for spec in at.model.requests[-1].tools}


async def test_calls_of_code_are_recorded_beside_the_call_that_made_them(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        write = "await Write(file_path='a.txt', content='one\\n')\nx = await Read('a.txt')\nx"
        at.start(answer(code("t1", write)), answer(code("t2", "x.upper()")), answer("Done."))
        await at.rests(3)
        assert at.results() == ["=> '1\\tone'", "=> '1\\tONE'"]
        kinds = [(r.kind, r.outer, r.call_id if isinstance(r, InnerStarted) else r.result.call_id) for r in at.inner()]
        assert kinds == [
            ("inner_started", "t1", "t1.1"),
            ("inner_finished", "t1", "t1.1"),
            ("inner_started", "t1", "t1.2"),
            ("inner_finished", "t1", "t1.2"),
        ]
        first = at.inner()[0]
        assert isinstance(first, InnerStarted)
        assert (first.tool, first.read_only, first.input["content"]) == ("Write", False, "one\n")
        again = [AGENT_RECORD.validate_python(r.model_dump(mode="json")) for r in at.ledger.records]
        assert again == at.ledger.records
        conversation = Conversation.of(again)
        assert str(at.work / "a.txt") in conversation.seen
        assert unpaired(conversation.messages()) == []


async def test_a_file_that_code_read_may_be_edited_and_is_shown_when_it_is_read(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        (at.work / "a.txt").write_text("one\n")
        read = ToolUseBlock(id="t2", name="Read", input={"file_path": "a.txt"})
        edit = ToolUseBlock(
            id="t3", name="Edit", input={"file_path": "a.txt", "old_string": "one", "new_string": "two"}
        )
        at.start(answer(code("t1", "x = await Read('a.txt')")), answer(edit), answer(read), answer("Done."))
        await at.rests(4)
        assert (at.work / "a.txt").read_text() == "two\n"
        assert at.results()[-1] == "1\ttwo"


async def test_in_the_repl_mode_what_it_wraps_is_reached_through_it_alone(tmp_path: Path) -> None:
    async with desk(tmp_path, tools=ToolFilter(repl=True)) as at:
        direct = ToolUseBlock(id="t1", name="Bash", input={"command": "echo hi"})
        at.start(answer(direct), answer(code("t2", "await Bash('echo hi')")), answer("Done."))
        await at.rests(3)
        assert "REPL" in offered(at)
        assert not {"Bash", "Read", "Edit", "Write", "Glob", "Grep"} & offered(at)
        assert at.results()[0].startswith("<tool_use_error>")
        assert at.results()[1] == "=> 'hi'"


async def test_without_the_mode_it_is_one_tool_beside_the_others(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer("Done."))
        await at.rests(1)
        assert {"REPL", "Bash", "Read"} <= offered(at)


async def test_code_may_call_no_tool_that_its_agent_may_not(tmp_path: Path) -> None:
    rules = RuleSet(allow=("REPL", "Read"), deny=("Bash", "Read(secret/**)"))
    async with desk(tmp_path, rights=Rights(rules=(rules,)), tools=ToolFilter(deny=("Write",))) as at:
        (at.work / "secret").mkdir()
        (at.work / "secret" / "key").write_text("k")
        calls = ("Bash", "await Bash('true')"), ("Write", "Write"), ("Edit", "await Edit('a', 'b', 'c')")
        tries = "\n".join(f"try:\n  {call}\nexcept Exception as e:\n  print(type(e).__name__)" for _, call in calls)
        at.start(
            answer(code("t1", tries)),
            answer(code("t2", "await Read('secret/key')")),
            answer("Done."),
        )
        await at.rests(3)
        assert at.results()[0] == "NameError\nNameError\nToolError"
        assert "the spec rule Read(secret/**) denies it" in at.results()[1]
        assert [r.result.denied for r in at.inner() if isinstance(r, InnerFinished)][-1]


async def test_code_that_a_rule_restrains_is_not_run_unasked(tmp_path: Path) -> None:
    rules = RuleSet(deny=("Bash(git push:*)",))
    async with desk(tmp_path, rights=Rights(mode="bypassPermissions", rules=(rules,))) as at:
        at.start(answer(code("t1", "open('ran', 'w')")), answer("Done."))
        await at.rests(2)
        assert "code could do what the spec rule Bash(git push:*) forbids" in at.results()[0]
        assert not (at.work / "ran").exists()


async def test_an_interrupted_turn_stops_the_code_and_its_calls(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        loop = at.start(answer(code("t1", "await Bash('touch begun; sleep 100')")), answer("Done."))
        await until((at.work / "begun").exists)
        await loop.interrupt("enough")
        assert Conversation.of(at.ledger.records).open is None
        assert loop.status().alive == ("REPL",)
        (result,) = [
            b for m in Conversation.of(at.ledger.records).messages() for b in m.content if b.type == "tool_result"
        ]
        assert "outcome unknown" in result.content
        assert "enough" in result.content


async def test_nothing_is_left_of_the_process_when_the_agent_is_gone(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(code("t1", "import os, time\nprint(os.getpid(), flush=True)")), answer("Done."))
        await at.rests(2)
        pid = int(at.results()[0])
        assert at.loop.status().alive == ("REPL",)
        await at.end()
        await until(lambda: not Path(f"/proc/{pid}").exists())
        assert list(at.scratch.iterdir()) == []


async def test_code_that_ran_when_the_agent_died_is_told_of_and_never_run_again(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        at.start(answer(code("t1", "open('ran', 'a').write('x')\nawait Bash('touch begun; sleep 100')")))
        await until((at.work / "begun").exists)
        await at.end()
        at.start(answer(code("t2", "'alive'")), answer("Done."))
        await at.rests(2)
        assert (at.work / "ran").read_text() == "x"
        assert at.results()[0].startswith("Interrupted, outcome unknown")
        assert at.results()[1] == "=> 'alive'"
        assert call_key("r1", "ada~1", 1, "t1.1") != call_key("r1", "ada~1", 1, "t1")
