"""How WebSearch looks."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.render.base import Renderer
from retinue.tools.render.blocks import Blocks, Heading, Line, Table
from retinue.tools.text import counted
from retinue.tools.web.search.tool import WebSearchInput, WebSearchOutput


class Render(Renderer[WebSearchInput, WebSearchOutput]):
    def use(self, args: WebSearchInput) -> Blocks:
        domains = [*args.allowed_domains, *(f"not {domain}" for domain in args.blocked_domains)]
        return (Heading("Search", f"{args.query} ({', '.join(domains)})" if domains else args.query),)

    def result(self, args: WebSearchInput, data: WebSearchOutput) -> Blocks:
        if data.notice:
            return (Line(data.notice, "warn"),)
        found = Line(f"Found {counted(len(data.hits), 'page')}", "dim")
        if not data.hits:
            return (found,)
        return (found, Table(("title", "address"), tuple((hit.title, hit.url) for hit in data.hits)))

    def grouped(self, calls: Sequence[WebSearchInput]) -> Blocks:
        return (Heading("Searched", f"{counted(len(calls), 'time')}: {'; '.join(call.query for call in calls)}"),)
