"""An agent without a machine: surroundings in memory, tools that leave marks in a small world, and deaths on demand."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from retinue.agents.assemble import ToolPorts, Watch, assemble_agent
from retinue.agents.boot import AgentBoot, AgentStatus, Rights, WorkspaceBoot
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.mail.envelopes import HUMAN, TEAM, Body, Envelope, Prompt, Text
from retinue.agents.model.messages import AssistantBlock, TextBlock, ToolUseBlock, Usage
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    MessageStarted,
    ModelPort,
    ModelRequest,
    StopReason,
    StreamEvent,
)
from retinue.agents.model.script_file import parse_script
from retinue.agents.model.scripted import ScriptedModel
from retinue.agents.ports import Reservation
from retinue.agents.prompt import Facts
from retinue.agents.records import AgentRecord, MailStored
from retinue.agents.steps import Timing
from retinue.tools.base import AnyTool, OnProgress, ToolContext, ToolResult, Traits
from retinue.tools.execution.calls import Lease
from support.calls import SAFE, NoShell, Said, Words, tool

FACTS = Facts(date="2026-01-31", platform="Linux")


class Died(Exception):
    """What every record meets once the process is dead."""


@dataclass
class MemoryLedger:
    """`dies_after`: how many records still get in. `troubles` are raised by the next appends, one each."""

    records: list[AgentRecord] = field(default_factory=list)
    dies_after: int | None = None
    synced: int = 0
    troubles: list[Exception] = field(default_factory=list)
    arrived: dict[str, asyncio.Event] = field(default_factory=dict)

    async def append(self, *records: AgentRecord) -> None:
        if self.troubles:
            raise self.troubles.pop(0)
        for record in records:
            if self.dies_after is not None and len(self.records) >= self.dies_after:
                raise Died(record.kind)
            self.records.append(record)
            self.arrived.setdefault(record.kind, asyncio.Event()).set()

    async def has(self, kind: str) -> None:
        """Wait for the first record of this kind."""
        await self.arrived.setdefault(kind, asyncio.Event()).wait()

    async def sync(self) -> None:
        if self.dies_after is not None and len(self.records) >= self.dies_after:
            raise Died("sync")
        self.synced = len(self.records)


@dataclass
class World:
    """What calls did, for good. `notes` and `told` by idempotency key; `order` is what is written when something is."""

    notes: list[tuple[str, str]] = field(default_factory=list)
    told: dict[str, str] = field(default_factory=dict)
    looks: list[str] = field(default_factory=list)
    gates: dict[str, asyncio.Event] = field(default_factory=dict)
    begun: dict[str, asyncio.Event] = field(default_factory=dict)

    def tools(self) -> tuple[AnyTool, ...]:
        return (
            tool("Look", self._look, SAFE),
            tool("Note", self._note),
            tool("Tell", self._tell, Traits(concurrency_safe=True), idempotent=True, needs_lease=False),
            tool("Run", self._run, fails_group=True),
        )

    async def _look(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await self._gate(args.text)
        self.looks.append(args.text)
        return ToolResult(Said(text=f"seen {args.text}"))

    async def _note(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        await self._gate(args.text)
        self.notes.append((ctx.key, args.text))
        await asyncio.sleep(0)
        return ToolResult(Said(text=f"noted {args.text}"))

    async def _tell(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        self.told[ctx.key] = args.text
        await asyncio.sleep(0)
        return ToolResult(Said(text=f"told {args.text}"))

    async def _run(self, args: Words, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        self.notes.append((ctx.key, f"run {args.text}"))
        await self._gate(args.text)
        return ToolResult(Said(text=f"ran {args.text}"), is_error=args.text.startswith("bad"))

    async def _gate(self, text: str) -> None:
        self.begun.setdefault(text, asyncio.Event()).set()
        if text in self.gates:
            await self.gates[text].wait()
        await asyncio.sleep(0)


class FreeLeases:
    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        del call_id, exclusive
        yield Lease()


@dataclass
class Purse:
    """`refusals` are given out first, one each; then everything is granted."""

    refusals: list[str] = field(default_factory=list)
    asked: list[tuple[int, int, Usage]] = field(default_factory=list)
    settled: list[tuple[str, str, Usage]] = field(default_factory=list)

    async def reserve(self, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        self.asked.append((step, tokens, settled))
        return Reservation(ok=False, text=self.refusals.pop(0)) if self.refusals else Reservation(ok=True)

    async def reserve_side(self, key: str, model: str, tokens: int) -> Reservation:
        return await self.reserve(0, model, tokens, Usage())

    async def settle_side(self, key: str, model: str, used: Usage) -> None:
        self.settled.append((key, model, used))


@dataclass
class Board:
    """Statuses as they are told; `on` is called with each."""

    told: list[AgentStatus] = field(default_factory=list)
    on: Callable[[AgentStatus], None] | None = None

    def report(self, status: AgentStatus) -> None:
        self.told.append(status)
        if self.on is not None:
            self.on(status)

    def states(self) -> list[str]:
        return [status.state for status in self.told]


@dataclass
class Checkpoints:
    taken: int = 0

    async def checkpoint(self) -> str | None:
        self.taken += 1
        return f"sha{self.taken}"


@dataclass
class Answers:
    """A model that gives one prepared answer after the other. `requests` is what it was asked."""

    answers: list[Sequence[StreamEvent]]
    requests: list[ModelRequest] = field(default_factory=list)
    hold: asyncio.Event | None = None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        for event in self.answers.pop(0):
            if self.hold is not None and isinstance(event, MessageDone | Broken):
                await self.hold.wait()
            await asyncio.sleep(0)
            yield event


def answer(
    *blocks: AssistantBlock | str, stop: StopReason | None = None, usage: Usage | None = None
) -> list[StreamEvent]:
    made = [TextBlock(text=block) if isinstance(block, str) else block for block in blocks]
    calls = any(isinstance(block, ToolUseBlock) for block in made)
    end = MessageDone(
        stop_reason=stop or ("tool_use" if calls else "end_turn"), usage=usage or Usage(input=10, output=5)
    )
    return [_started(), *_done(made), end]


def broken(*blocks: AssistantBlock, by: Broken) -> list[StreamEvent]:
    return [_started(), *_done(blocks), by]


def use(name: str, identifier: str, text: str = "") -> ToolUseBlock:
    return ToolUseBlock(id=identifier, name=name, input={"text": text})


def _started() -> StreamEvent:
    return MessageStarted(message_id="m", model="fake:one")


def _done(blocks: Iterable[AssistantBlock]) -> list[StreamEvent]:
    return [BlockDone(index=index, block=block) for index, block in enumerate(blocks)]


def scripted(turns: str, agent: str = "ada") -> ModelPort:
    lines = "\n".join(f"    {line}" for line in turns.strip("\n").splitlines())
    return ScriptedModel(parse_script(f"agents:\n  {agent}:\n{lines}\n"), where="test.yaml")


def a_boot(**changes: object) -> AgentBoot:
    values: dict[str, object] = {
        "run": "r1",
        "team": "t",
        "agent": "ada~1",
        "name": "ada",
        "incarnation": 1,
        "role": "teammate",
        "definition": "coder",
        "description": "codes",
        "prompt": "You code.",
        "model": "fake:one",
        "rights": (Rights(mode="bypassPermissions"),),
        "workspace": WorkspaceBoot(root="/w", isolation="worktree"),
        "repo": "/w",
        "run_dir": "/run-dir",
    }
    return AgentBoot.model_validate({**values, **changes})


def mail(identifier: str, body: Body | str, sender: str = "bob~1", recipient: str = "ada~1") -> Envelope:
    return Envelope(
        id=identifier, sender=sender, recipient=recipient, body=Text(text=body) if isinstance(body, str) else body
    )


def prompt(text: str = "Go.") -> Envelope:
    return mail("p", Prompt(text=text), TEAM)


def human(identifier: str, text: str) -> Envelope:
    return mail(identifier, text, HUMAN)


async def no_time(seconds: float) -> None:
    await asyncio.sleep(0)


@dataclass
class Scene:
    """One agent and all that is around it. `agent()` makes a process of it from what the ledger holds."""

    model: ModelPort
    world: World = field(default_factory=World)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    purse: Purse = field(default_factory=Purse)
    board: Board = field(default_factory=Board)
    checkpoints: Checkpoints = field(default_factory=Checkpoints)
    timing: Timing = field(default_factory=lambda: Timing(clock=lambda: 0.0, sleep=no_time, chance=lambda: 0.0))
    boot: AgentBoot = field(default_factory=a_boot)
    watch: Watch = field(default_factory=Watch)

    def stored(self, *envelopes: Envelope) -> Scene:
        self.ledger.records.extend(MailStored(envelope=envelope) for envelope in envelopes)
        return self

    def agent(self) -> AgentLoop:
        ports = AgentPorts(self.model, self.ledger, self.purse, self.board, self.checkpoints)
        return assemble_agent(
            self.boot,
            list(self.ledger.records),
            ports,
            ToolPorts(FreeLeases(), NoShell()),
            FACTS,
            env={"HOME": "/home/nobody"},
            tools=self.world.tools(),
            timing=self.timing,
            watch=self.watch,
        )

    def kinds(self) -> list[str]:
        return [record.kind for record in self.ledger.records]


async def until_idle(scene: Scene, agent: AgentLoop | None = None) -> AgentLoop:
    """Run until the agent rests for the first time with nothing unread, then drain it."""
    agent = agent or scene.agent()
    rested = asyncio.Event()

    def look(status: AgentStatus) -> None:
        if status.state in ("idle", "failed") and status.unread == 0:
            rested.set()

    scene.board.on = look
    running = asyncio.create_task(agent.run())
    waiting = asyncio.create_task(rested.wait())
    await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if running.done():
        running.result()
    await agent.drain()
    await running
    return agent
