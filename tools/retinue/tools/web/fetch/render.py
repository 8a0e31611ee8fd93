"""How WebFetch looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Markdown
from retinue.tools.text import counted
from retinue.tools.web.fetch.tool import WebFetchInput, WebFetchOutput


class Render(Renderer[WebFetchInput, WebFetchOutput]):
    def use(self, args: WebFetchInput) -> Blocks:
        return (Heading("Fetch", args.url), Line(args.prompt, "dim"))

    def result(self, args: WebFetchInput, data: WebFetchOutput) -> Blocks:
        size = f"{data.bytes:,} bytes ({data.code} {data.code_text}) in {data.duration_ms / 1000:.1f} s"
        saved = (Line(f"saved to {data.saved_to}"),) if data.saved_to else (Markdown(data.result),)
        return (Line(f"Received {size}", "dim"), *saved)

    def grouped(self, calls: Sequence[WebFetchInput]) -> Blocks:
        return (Heading("Fetched", f"{counted(len(calls), 'page')}: {', '.join(call.url for call in calls)}"),)
