"""CPU time of one agent turn without transport: a scripted model, one trivial tool, the ledger in memory.

    python benchmarks/turn.py [--json] [--turns 1000]

Taken around turn 20 and around the last turn; the ratio says whether a long life makes turns dearer.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from statistics import median

from retinue.agents.assemble import ToolPorts, assemble_agent
from retinue.agents.boot import AgentBoot, AgentStatus, Rights, WorkspaceBoot
from retinue.agents.loop import AgentLoop, AgentPorts
from retinue.agents.mail.envelopes import HUMAN, Envelope, Text
from retinue.agents.model.messages import AssistantMessage, TextBlock, ToolUseBlock, Usage
from retinue.agents.model.port import BlockDone, MessageDone, MessageStarted, ModelRequest, StreamEvent
from retinue.agents.ports import Reservation
from retinue.agents.prompt import Facts
from retinue.agents.records import AgentRecord
from retinue.tools.base import READS, OnProgress, Tool, ToolContext, ToolData, ToolInput, ToolResult, Traits
from retinue.tools.execution.calls import Lease
from retinue.tools.ports import RunningCommand, ShellOutcome, ShellRequest

TARGET_MS = 1.0
EARLY = 20
AROUND = 20
"""How many turns on either side of a place are measured; their median counts."""


class Word(ToolInput):
    text: str


class Said(ToolData):
    text: str


class Trivial(Tool[Word, Said]):
    name = "Trivial"
    needs_lease = False
    Input = Word

    def description(self) -> str:
        return "Gives back what it is given."

    def traits(self, args: Word) -> Traits:
        return READS

    async def call(self, args: Word, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Said]:
        return ToolResult(Said(text=args.text))

    def to_content(self, data: Said) -> str:
        return data.text


class TwoSteps:
    """Makes one call, then says that it is done: a model that costs nothing itself."""

    count = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.count += 1
        yield MessageStarted(message_id="m", model="fake")
        if isinstance(request.messages[-1], AssistantMessage) or self.count % 2:
            yield BlockDone(index=0, block=TextBlock(text="I look."))
            yield BlockDone(index=1, block=ToolUseBlock(id=f"t{self.count}", name="Trivial", input={"text": "x"}))
            yield MessageDone(stop_reason="tool_use", usage=Usage(input=100, output=20))
        else:
            yield BlockDone(index=0, block=TextBlock(text="Done."))
            yield MessageDone(stop_reason="end_turn", usage=Usage(input=100, output=20))


class Memory:
    def __init__(self) -> None:
        self.records: list[AgentRecord] = []

    async def append(self, *records: AgentRecord) -> None:
        self.records.extend(records)

    async def sync(self) -> None:
        return


class Rich:
    async def reserve(self, step: int, model: str, tokens: int, settled: Usage) -> Reservation:
        return Reservation(ok=True)

    async def reserve_side(self, key: str, model: str, tokens: int) -> Reservation:
        return Reservation(ok=True)

    async def settle_side(self, key: str, model: str, used: Usage) -> None:
        return


class Clean:
    async def checkpoint(self) -> str | None:
        return None


class NoShell:
    async def start(
        self, request: ShellRequest, on_output: object = None, *, max_chars: int = 30_000
    ) -> RunningCommand:
        raise AssertionError(f"the benchmark runs no command: {request.command}")

    async def run(self, request: ShellRequest, on_output: object = None, *, max_chars: int = 30_000) -> ShellOutcome:
        raise AssertionError(f"the benchmark runs no command: {request.command}")


class NoLeases:
    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        yield Lease()


class Stopwatch:
    """Sends the next message whenever the agent rests, and takes the CPU time of the turn in between."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.spent: list[float] = []
        self.rested = asyncio.Event()

    def report(self, status: AgentStatus) -> None:
        if status.state == "idle":
            self.rested.set()

    async def drive(self, agent: AgentLoop) -> None:
        for number in range(self.turns):
            await self.rested.wait()
            self.rested.clear()
            envelope = Envelope(id=f"m{number}", sender=HUMAN, recipient="ada~1", body=Text(text="Look again."))
            begun = time.process_time()
            await agent.deliver(envelope)
            await self.rested.wait()
            self.spent.append(time.process_time() - begun)
        await agent.drain()


async def measure(turns: int) -> list[float]:
    boot = AgentBoot(
        run="bench",
        team="bench",
        agent="ada~1",
        name="ada",
        incarnation=1,
        role="teammate",
        definition="coder",
        description="",
        prompt="You look.",
        model="fake",
        rights=(Rights(mode="bypassPermissions"),),
        workspace=WorkspaceBoot(root="/nonexistent", isolation="none"),
        repo="/nonexistent",
        run_dir="/nonexistent",
    )
    watch = Stopwatch(turns)
    agent = assemble_agent(
        boot,
        [],
        AgentPorts(TwoSteps(), Memory(), Rich(), watch, Clean()),
        ToolPorts(NoLeases(), NoShell()),
        Facts(date="2026-01-31", platform="Linux"),
        env={},
        tools=(Trivial(),),
    )
    await asyncio.gather(agent.run(), watch.drive(agent))
    return watch.spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=int, default=1_000)
    options = parser.parse_args()
    spent = asyncio.run(measure(options.turns + AROUND))
    early, late = (1_000 * median(spent[n - AROUND : n + AROUND]) for n in (EARLY, options.turns))
    result = {
        "early_turn": EARLY,
        "early_ms": round(early, 3),
        "late_turn": options.turns,
        "late_ms": round(late, 3),
        "ratio": round(late / early, 3),
        "target_ms": TARGET_MS,
    }
    if options.json:
        print(json.dumps(result))
    else:
        print(f"turn {EARLY}: {early:.3f} ms   turn {options.turns}: {late:.3f} ms   ratio {late / early:.2f}")


if __name__ == "__main__":
    main()
