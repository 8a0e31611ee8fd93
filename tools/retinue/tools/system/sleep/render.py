"""How a sleep looks."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line
from retinue.tools.system.sleep.tool import SleepInput, SleepOutput


class Render(Renderer[SleepInput, SleepOutput]):
    def use(self, args: SleepInput) -> Blocks:
        return (Heading("Sleep", f"{args.seconds:g} s: {args.reason}" if args.reason else f"{args.seconds:g} s"),)

    def result(self, args: SleepInput, data: SleepOutput) -> Blocks:
        return () if data.woken_by == "time" else (Line(f"woken by {data.woken_by}", "dim"),)
