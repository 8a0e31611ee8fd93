"""WebSearch: pages for a question, from whichever service is set."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import (
    READS,
    NameSubject,
    OnProgress,
    Progress,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.ports import SearchHit, SearchQuery
from retinue.tools.text import for_model, one_line, printable
from retinue.tools.web.search.constants import (
    MAX_TEXT_CHARS,
    MIN_QUERY_CHARS,
    MOST_DOMAINS,
    MOST_HITS,
    MOST_SEARCHES,
)
from retinue.tools.web.search.hits import chosen

_BOTH_LISTS, _BAD_DOMAIN, _NO_PROVIDER = 1, 2, 3
NO_PROVIDER = (
    "No web search is set up: the person who started you can set web.search in the settings to an endpoint, to the "
    "name of an MCP tool, or to the model provider's own search."
)


class WebSearchInput(ToolInput):
    query: str = Field(min_length=MIN_QUERY_CHARS, description="What to search for")
    allowed_domains: tuple[str, ...] = Field(
        (), max_length=MOST_DOMAINS, description="Only results from these domains and what is below them"
    )
    blocked_domains: tuple[str, ...] = Field(
        (), max_length=MOST_DOMAINS, description="No results from these domains and what is below them"
    )


class WebSearchOutput(ToolData):
    """`text` is what the service said itself; `left_out` counts hits that were too many or of another domain."""

    query: str
    hits: tuple[SearchHit, ...] = ()
    text: str = ""
    left_out: int = 0
    notice: str = ""


class WebSearch(Tool[WebSearchInput, WebSearchOutput]):
    """`limit` is how often it searches over its lifetime, which is that of an agent's process."""

    name = "WebSearch"
    group = "network"
    needs = ("search",)
    search_hint = "search the internet for pages, news, documentation"
    idempotent = True
    needs_lease = False

    def __init__(self, *, limit: int = MOST_SEARCHES) -> None:
        self._limit = limit
        self._made = 0

    def description(self) -> str:
        return "Searches the web and returns titles and addresses of pages"

    def traits(self, args: WebSearchInput) -> Traits:
        return READS

    def subject(self, args: WebSearchInput, ctx: ToolContext) -> Subject:
        return NameSubject(outward=True)

    def classifier_input(self, args: WebSearchInput) -> str:
        return args.query

    def title(self, args: WebSearchInput) -> str:
        return f"WebSearch {one_line(args.query)}"

    async def validate_input(self, args: WebSearchInput, ctx: ToolContext) -> Validation:
        if args.allowed_domains and args.blocked_domains:
            return Refused("Give allowed_domains or blocked_domains, not both.", _BOTH_LISTS)
        for domain in (*args.allowed_domains, *args.blocked_domains):
            if "/" in domain or not domain.strip("*. "):
                return Refused(f"{one_line(domain)} is no domain: write it as in example.com.", _BAD_DOMAIN)
        return None if ctx.search is not None else Refused(NO_PROVIDER, _NO_PROVIDER)

    async def call(
        self, args: WebSearchInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[WebSearchOutput]:
        if ctx.search is None:
            raise ToolError(NO_PROVIDER)
        if self._made >= self._limit:
            notice = f"Not searched: {self._limit} searches were made already. Work with what you have found."
            return ToolResult(WebSearchOutput(query=args.query, notice=notice))
        self._made += 1
        on_progress(Progress(f"searching: {one_line(args.query)}"))
        query = SearchQuery(
            query=args.query, allowed_domains=args.allowed_domains, blocked_domains=args.blocked_domains
        )
        answer = await ctx.search.search(query)
        kept = chosen(answer.hits, query)
        return ToolResult(
            WebSearchOutput(
                query=args.query,
                hits=kept[:MOST_HITS],
                text=printable(answer.text)[:MAX_TEXT_CHARS],
                left_out=len(answer.hits) - min(len(kept), MOST_HITS),
            )
        )

    def to_content(self, data: WebSearchOutput) -> str:
        if data.notice:
            return data.notice
        if not data.hits and not data.text.strip():
            return f"Nothing was found for {one_line(data.query)}." + _left_out(data)
        lines = [f"{n}. {_hit(hit)}" for n, hit in enumerate(data.hits, 1)]
        parts = [f"Results for {one_line(data.query)}:", for_model(data.text).strip(), "\n".join(lines)]
        text = "\n\n".join(part for part in parts if part)
        return f"{text}{_left_out(data)}\n\nEnd your answer with the sources that you used."


def _hit(hit: SearchHit) -> str:
    head = f"{one_line(hit.title) or '(no title)'}\n   {one_line(hit.url, 2_000)}"
    text = f"{head}\n   {one_line(hit.snippet, 300)}" if hit.snippet.strip() else head
    return for_model(text)


def _left_out(data: WebSearchOutput) -> str:
    return f"\n({data.left_out} more were left out.)" if data.left_out else ""
