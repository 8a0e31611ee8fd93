"""How Glob looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.files.glob.tool import GlobInput, GlobOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Text
from retinue.tools.render.words import several
from retinue.tools.text import counted

_SHOWN_NAMES = 20


class Render(Renderer[GlobInput, GlobOutput]):
    def use(self, args: GlobInput) -> Blocks:
        return (Heading("Glob", f"{args.pattern} in {args.path}" if args.path else args.pattern),)

    def result(self, args: GlobInput, data: GlobOutput) -> Blocks:
        if not data.filenames:
            return (Line("no files", "dim"),)
        least = "" if data.complete else "at least "
        names = data.filenames[:_SHOWN_NAMES]
        more = (Line(f"… {data.total - len(names)} more", "dim"),) if data.total > len(names) else ()
        return (Line(f"{least}{counted(data.total, 'file')}", "dim"), Text("\n".join(names)), *more)

    def grouped(self, calls: Sequence[GlobInput]) -> Blocks:
        return (Heading("Glob", several((call.pattern for call in calls), "pattern")),)
