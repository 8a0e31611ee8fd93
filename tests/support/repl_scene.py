"""A REPL with a real process and a real pipeline, and what its calls left in the order in which they ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from retinue.tools.base import AnyTool, ToolContext, ToolResult
from retinue.tools.execution.calls import CallResult
from retinue.tools.execution.inner import InnerCalls
from retinue.tools.extension.repl.schema import REPLInput, REPLOutput
from retinue.tools.extension.repl.session import Session
from retinue.tools.extension.repl.tool import REPL
from retinue.tools.lasting import Lasting
from retinue.tools.permissions.code import CodeRights
from retinue.tools.ports import ShellPort
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import assemble
from retinue.tools.registry.table import WRAPPED_BY_REPL
from retinue.tools.shell.runner import KeeperShell
from support.calls import Around, Surroundings, context, pipeline


@dataclass
class Bench:
    root: Path
    shell: ShellPort
    around: Around
    tools: tuple[AnyTool, ...]
    env: dict[str, str]
    lasting: Lasting = field(default_factory=Lasting)
    ended: list[CallResult] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    most: int = 200
    calls: int = 0
    ctx: ToolContext = field(init=False)

    def __post_init__(self) -> None:
        self.work = self.root / "work"
        self.work.mkdir(exist_ok=True)
        inner = InnerCalls(
            assemble(self.tools),
            pipeline(*self.tools, around=self.around, folder=self.root / "results"),
            self._ended,
            CodeRights,
            most=self.most,
        )
        self.ctx = context(
            self.work,
            shell=self.shell,
            env=self.env,
            results_dir=self.root / "results",
            code=inner,
            lasting=self.lasting,
        )

    async def _ended(self, result: CallResult) -> None:
        self.ended.append(result)

    @property
    def session(self) -> Session:
        return self.lasting.get("REPL", Session)

    async def run(self, code: str, **more: object) -> ToolResult[REPLOutput]:
        self.calls += 1
        tool = REPL()
        ctx = replace(self.ctx, call_id=f"c{self.calls}", key=f"bench-{self.root.name}/c{self.calls}")
        args = REPLInput.model_validate({"code": code, **more})
        result = await tool.call(args, ctx, lambda progress: self.shown.append(progress.text))
        if result.context_modifier is not None:
            self.ctx = result.context_modifier(self.ctx)
        return result

    async def text(self, code: str, **more: object) -> str:
        return REPL().to_content((await self.run(code, **more)).data)

    def names(self) -> list[str]:
        return [result.call_id for result in self.ended]


@contextlib.asynccontextmanager
async def repl(
    root: Path,
    *,
    shell: ShellPort | None = None,
    around: Around | None = None,
    tools: tuple[AnyTool, ...] | None = None,
    env: dict[str, str] | None = None,
    most: int = 200,
) -> AsyncGenerator[Bench]:
    given = tools if tools is not None else tuple(t for t in builtin_tools() if t.name in WRAPPED_BY_REPL - {"Agent"})
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    made = Bench(
        root,
        shell or KeeperShell(),
        around or Surroundings(fds=()),
        given,
        env or {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "TMPDIR": str(scratch)},
        most=most,
    )
    try:
        yield made
    finally:
        await made.lasting.close()


async def until(happened: Callable[[], bool], seconds: float = 10.0) -> None:
    """For what tells nobody: another process's end."""
    for _ in range(int(seconds * 100)):
        if happened():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")
