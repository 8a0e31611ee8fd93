"""What the pipeline adds to a tool call, against awaiting the tool directly; the pool's assembly; the import.

    python benchmarks/tools.py [--calls 5000] [--json]

The tools do nothing, so that the difference is the pipeline's own. Floor and value are measured in turns, in one
process and one event loop. Leases and ledger are ports, and cost nothing here: they have benchmarks of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from retinue.tools.base import (
    READS,
    AnyTool,
    CommandSubject,
    OnProgress,
    PathSubject,
    Progress,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.execution.calls import Lease, ToolCall
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.streaming import run_all
from retinue.tools.files.state import FileState
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import assemble
from retinue.tools.results.store import ResultStore
from retinue.tools.shell.runner import KeeperShell

CALLS = "retinue.tools.execution.streaming, retinue.tools.execution.pipeline, retinue.tools.permissions.chain"
ALL = f"import {CALLS}\nfrom retinue.tools.registry.builtin import builtin_tools\nbuiltin_tools()"
AGENT = {
    "import beside Ray: what runs calls, all tools": ALL,
    "import beside Ray: a whole agent": f"{ALL}\nimport retinue.agents.assemble",
}
IMPORTS = 5
TARGET_CALL_MS, TARGET_POOL_MS, TARGET_IMPORT_MS = 0.3, 5.0, 100.0
ROUNDS = 9
RULES = RuleTexts(
    allow=("Edit(/src/**)", "Bash(make test)", "Bash(make lint)", *(f"Bash(python -m x{n})" for n in range(10))),
    ask=("Bash(git push:*)", "Edit(/docs/**)"),
    deny=("Read(//etc/**)", "Bash(rm:*)", "Bash(curl *)", "Agent(admin)"),
)


class PathInput(ToolInput):
    file_path: str


class CommandInput(ToolInput):
    command: str


class Nothing(ToolData):
    text: str = "nothing"


class Look(Tool[PathInput, Nothing]):
    """Reads nothing, from a path."""

    name = "Look"

    def description(self) -> str:
        return "looks at a path"

    def traits(self, args: PathInput) -> Traits:
        return READS

    def subject(self, args: PathInput, ctx: ToolContext) -> Subject:
        return PathSubject(ctx.cwd / args.file_path, write=False)

    async def call(self, args: PathInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Nothing]:
        return ToolResult(Nothing())

    def to_content(self, data: Nothing) -> str:
        return data.text


class Bash(Tool[CommandInput, Nothing]):
    """Runs nothing, from a command; named like the tool that the rules speak of."""

    name = "Bash"

    def description(self) -> str:
        return "runs a command"

    def subject(self, args: CommandInput, ctx: ToolContext) -> Subject:
        return CommandSubject(args.command)

    async def call(self, args: CommandInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Nothing]:
        return ToolResult(Nothing())

    def to_content(self, data: Nothing) -> str:
        return data.text


class Free:
    """A lease and a journal that are there at once."""

    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        yield Lease()

    async def started(self, call: ToolCall, traits: Traits) -> None:
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """Milliseconds; `ratio` is value over floor, `over` what is added to the floor, which the target bounds."""

    what: str
    floor: float
    value: float
    ratio: float
    over: float
    target: float
    ok: bool


def row(what: str, floor: float, value: float, target: float) -> Row:
    return Row(what, floor, value, value / floor if floor else 0.0, value - floor, target, value - floor <= target)


async def timed(act: Callable[[], Awaitable[object]], calls: int) -> float:
    """Milliseconds of one."""
    start = time.perf_counter()
    for _ in range(calls):
        await act()
    return (time.perf_counter() - start) * 1000 / calls


async def calls(folder: Path, count: int) -> list[Row]:
    book = RuleBook.of([RULES], Anchors(folder, Path("/home/nobody")))
    (folder / "a.py").write_text("")
    ctx = ToolContext(agent="ada~1", cwd=folder, root=folder, files=FileState(), shell=KeeperShell())
    free = Free()
    look, bash = Look(), Bash()
    line = Pipeline(assemble([look, bash]), PermissionPolicy((Rights(book),)), free, free, ResultStore(folder))
    rows: list[Row] = []
    for tool, values in ((look, {"file_path": "a.py"}), (bash, {"command": "make test"})):
        asked = ToolCall.model_validate({"id": "toolu_0123456789", "name": tool.name, "input": values})
        rows += await _rows(line, tool, asked, ctx, count)
    return rows


async def _rows(line: Pipeline, tool: AnyTool, asked: ToolCall, ctx: ToolContext, count: int) -> list[Row]:
    args = tool.Input.model_validate(asked.input)

    def silent(progress: Progress) -> None:
        return None

    def begun() -> None:
        return None

    async def direct() -> object:
        return await tool.call(args, ctx, silent)

    async def piped() -> object:
        return await line.run(asked, ctx, begun)

    async def executed() -> object:
        return await run_all(line, ctx, [asked])

    end = await line.run(asked, ctx, begun)
    if end.result.is_error:
        raise SystemExit(f"the benchmark's call failed: {end.result.content}")
    floors: list[float] = []
    pipes: list[float] = []
    messages: list[float] = []
    for _ in range(ROUNDS):
        floors.append(await timed(direct, count // ROUNDS))
        pipes.append(await timed(piped, count // ROUNDS))
        messages.append(await timed(executed, count // ROUNDS))
    floor = statistics.median(floors)
    return [
        row(f"{tool.name}: one call through the pipeline", floor, statistics.median(pipes), TARGET_CALL_MS),
        row(f"{tool.name}: one message with one call", floor, statistics.median(messages), TARGET_CALL_MS),
    ]


def pool() -> Row:
    """The built-ins alone against the built-ins and 200 more."""
    more = [type(f"More{n}", (Look,), {"name": f"mcp__server{n % 7}__tool{n}"})() for n in range(200)]
    took: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for with_more in took:
            start = time.perf_counter()
            assemble(builtin_tools(), more if with_more else (), denied=("mcp__server3", "Task*"))
            took[with_more].append((time.perf_counter() - start) * 1000)
    return row("pool with 200 MCP tools", statistics.median(took[False]), statistics.median(took[True]), TARGET_POOL_MS)


def imported() -> list[Row]:
    """Wall time of an interpreter with and without; and processor time of the import alone, where a Ray worker is."""
    base = "import asyncio, pydantic\nclass Model(pydantic.BaseModel): x: int"
    floors: list[float] = []
    values: list[float] = []
    for _ in range(ROUNDS):
        floors.append(_started(base))
        values.append(_started(f"{base}\nimport {CALLS}"))
    return [
        row("import of pipeline, whole interpreter", min(floors), min(values), TARGET_IMPORT_MS),
        *(row(what, _spent("import this"), _spent(code), TARGET_IMPORT_MS) for what, code in AGENT.items()),
    ]


def _started(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return (time.perf_counter() - begin) * 1000


def _spent(code: str) -> float:
    """The least milliseconds of processor time of some code in a process that has imported Ray, of several."""
    lines = (
        "import time, ray, asyncio, pydantic",
        "class Model(pydantic.BaseModel): x: int",
        "begin = time.process_time()",
        code,
        "spent = (time.process_time() - begin) * 1000",
        "print(spent)",
    )
    argv = [sys.executable, "-c", "\n".join(lines)]
    took = (subprocess.run(argv, check=True, capture_output=True, text=True) for _ in range(IMPORTS))
    return min(float(done.stdout.splitlines()[-1]) for done in took)


def main() -> int:
    parser = argparse.ArgumentParser(description="Overhead of the tool pipeline against a direct await.")
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [*asyncio.run(calls(Path(folder), max(asked.calls, ROUNDS))), pool(), *imported()]
    if asked.json:
        print(json.dumps([asdict(each) for each in rows]))
    else:
        print(f"{'':44} {'floor ms':>10} {'value ms':>10} {'ratio':>8} {'added ms':>10} {'target':>8}")
        for each in rows:
            print(
                f"{each.what:44} {each.floor:10.4f} {each.value:10.4f} {each.ratio:8.1f} {each.over:10.4f} "
                f"{each.target:8.1f} {'ok' if each.ok else 'MISSED'}"
            )
    return 0 if all(each.ok for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
