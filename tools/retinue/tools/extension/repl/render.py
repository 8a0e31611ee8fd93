"""How REPL looks: the code, what it printed, and how it ended."""

from __future__ import annotations

from retinue.tools.extension.repl.schema import REPLInput, REPLOutput
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Block, Blocks, Heading, Line, Output, Text
from retinue.tools.text import counted

_SHOWN_LINES = 40


class Render(Renderer[REPLInput, REPLOutput]):
    def use(self, args: REPLInput) -> Blocks:
        below: list[Block] = [Text(args.code)] if args.code.strip() else []
        if args.reset:
            below.insert(0, Line("starts anew", "dim"))
        return (Heading("REPL", args.description), *below)

    def result(self, args: REPLInput, data: REPLOutput) -> Blocks:
        lines = data.output.rstrip("\n").splitlines()
        left_out = len(lines) - _SHOWN_LINES
        blocks: list[Block] = [Line(f"… {counted(left_out, 'earlier line')}", "dim")] if left_out > 0 else []
        failed = data.error is not None or bool(data.stopped or data.gone)
        blocks.append(Output("\n".join(lines[-_SHOWN_LINES:]), None, failed=failed, note=_note(data)))
        if data.value is not None:
            blocks.append(Text(data.value))
        if data.error is not None:
            blocks.append(Text(data.error, "bad"))
        return tuple(blocks)


def _note(data: REPLOutput) -> str:
    parts = [data.lost, data.stopped, data.gone, counted(data.calls, "call") if data.calls else ""]
    return "; ".join(part for part in parts if part)
