"""How LSP looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.lsp.tool import LSPInput, LSPOutput
from retinue.tools.ports import LanguageEntry
from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown, Text, Tone
from retinue.tools.text import counted

_SHOWN = 20
_TONES: dict[str, Tone] = {"error": "bad", "warning": "warn"}


class Render(Renderer[LSPInput, LSPOutput]):
    def use(self, args: LSPInput) -> Blocks:
        return (Heading("LSP", self.tool.title(args).removeprefix("LSP ")),)

    def result(self, args: LSPInput, data: LSPOutput) -> Blocks:
        note = (Line(data.note, "warn"),) if data.note else ()
        if data.operation == "hover":
            return (Markdown(data.text) if data.text else Line("nothing is known", "dim"), *note)
        if not data.entries:
            return (Text(self.tool.to_content(data), "dim"),)
        more = data.total - min(len(data.entries), _SHOWN)
        rest = (Line(f"and {more} more", "dim"),) if more else ()
        return (*(Line(_line(entry), _TONES.get(entry.kind, "plain")) for entry in data.entries[:_SHOWN]), *rest, *note)

    def grouped(self, calls: Sequence[LSPInput]) -> Blocks:
        kinds = ", ".join(dict.fromkeys(call.operation for call in calls))
        return (Heading("Asked", f"language servers {counted(len(calls), 'time')}: {kinds}"),)


def _line(entry: LanguageEntry) -> str:
    place = f"{entry.file}:{entry.line}:{entry.character}"
    return f"{'  ' * entry.depth}{place} {entry.kind} {entry.name}".rstrip()
