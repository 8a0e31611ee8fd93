"""How Bash looks: the command, what it printed, and how it ended."""

from __future__ import annotations

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Block, Blocks, Heading, Line, Output, Text
from retinue.tools.shell.bash.schema import BashInput, BashOutput
from retinue.tools.text import counted

_SHOWN_LINES = 40


class Render(Renderer[BashInput, BashOutput]):
    def use(self, args: BashInput) -> Blocks:
        first, _, rest = args.command.strip().partition("\n")
        below: list[Block] = [Text(rest)] if rest else []
        if args.description:
            below.insert(0, Line(args.description, "dim"))
        return (Heading("Bash", first), *below)

    def result(self, args: BashInput, data: BashOutput) -> Blocks:
        left_out, text = _tail(data.output)
        notes: list[Block] = [Line(f"… {counted(left_out, 'earlier line')}", "dim")] if left_out else []
        return (*notes, Output(text, data.exit_code, failed=data.failed, note=_note(data)))


def _note(data: BashOutput) -> str:
    parts = [data.meaning, data.cwd_note]
    if data.timed_out_after_ms is not None:
        parts.append(f"stopped after {data.timed_out_after_ms / 1000:g} s")
    if data.background is not None:
        parts.append(f"goes on in the background as {data.background.id}")
    if data.output_path:
        parts.append(f"all of it is in {data.output_path}")
    return "; ".join(part for part in parts if part)


def _tail(output: str) -> tuple[int, str]:
    """What a command printed last says most about how it went."""
    lines = output.rstrip("\n").splitlines()
    return max(0, len(lines) - _SHOWN_LINES), "\n".join(lines[-_SHOWN_LINES:])
