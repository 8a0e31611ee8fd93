"""WebFetch: one page of the web, read for a question."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import Field

from retinue.tools.base import (
    READS,
    Decision,
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
from retinue.tools.text import for_model, one_line
from retinue.tools.threads import in_thread
from retinue.tools.web import domains, urls
from retinue.tools.web.cache import TimedCache
from retinue.tools.web.fetch.answer import Reading, answer, shortened
from retinue.tools.web.fetch.constants import CACHE_CHARS, CACHE_ENTRIES, CACHE_S, ERROR_CHARS
from retinue.tools.web.fetch.saved import save
from retinue.tools.web.preapproved import PREAPPROVED

if TYPE_CHECKING:
    from retinue.tools.web.client import Elsewhere, Page, Resolve

_BAD_URL = 1


class WebFetchInput(ToolInput):
    url: str = Field(description="The address of the page")
    prompt: str = Field(min_length=1, description="What you want to know from the page")


class WebFetchOutput(ToolData):
    """`bytes` is what the server sent; `saved_to` is the file of a download that is no text."""

    url: str
    code: int
    code_text: str
    bytes: int
    result: str
    duration_ms: int
    saved_to: str | None = None


@dataclass(frozen=True, slots=True)
class Text:
    """A page as text, and what the server said of it."""

    url: str
    code: int
    reason: str
    size: int
    text: str


class WebFetch(Tool[WebFetchInput, WebFetchOutput]):
    """`clock` counts seconds; `resolver` gives the addresses of a host, None asks the system."""

    name = "WebFetch"
    group = "network"
    search_hint = "read a web page, follow a link, look something up at an address"
    max_result_chars = 100_000
    idempotent = True
    needs_lease = False

    def __init__(self, *, clock: Callable[[], float] = time.monotonic, resolver: Resolve | None = None) -> None:
        self._clock = clock
        self._resolver = resolver
        self._cache: TimedCache[Text] = TimedCache(
            clock, ttl_s=CACHE_S, max_entries=CACHE_ENTRIES, max_size=CACHE_CHARS, size=lambda page: len(page.text)
        )

    def description(self) -> str:
        return "Fetches a page from the web and answers a question about it"

    def traits(self, args: WebFetchInput) -> Traits:
        return READS

    def subject(self, args: WebFetchInput, ctx: ToolContext) -> Subject:
        try:
            return NameSubject(domains.subject_name(_target(args, ctx).host), outward=True)
        except ToolError:
            return NameSubject(outward=True)

    def classifier_input(self, args: WebFetchInput) -> str:
        return f"{args.url} {args.prompt}"

    def title(self, args: WebFetchInput) -> str:
        return f"WebFetch {one_line(args.url)}"

    async def validate_input(self, args: WebFetchInput, ctx: ToolContext) -> Validation:
        try:
            _target(args, ctx)
        except ToolError as error:
            return Refused(str(error), _BAD_URL)
        return None

    async def check_permissions(self, args: WebFetchInput, ctx: ToolContext) -> Decision | None:
        try:
            host = _target(args, ctx).host
        except ToolError as error:
            return Decision("deny", str(error), "url")
        if host in PREAPPROVED:
            return Decision("allow", f"{host} is public documentation", "preapproved host")
        return None

    async def call(self, args: WebFetchInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[WebFetchOutput]:
        from retinue.tools.web.client import Elsewhere

        started = self._clock()
        target = _target(args, ctx)
        page = self._cache.get(target.url)
        if page is None:
            on_progress(Progress(f"fetching {target.host}"))
            answered = await self._fetched(target, ctx)
            if isinstance(answered, Elsewhere):
                return ToolResult(_redirected(answered, args, self._ms_since(started)))
            read = await self._read(answered, ctx, self._ms_since(started))
            if isinstance(read, WebFetchOutput):
                return ToolResult(read)
            page = read
        if page.code >= 400:
            return ToolResult(_failed(page, self._ms_since(started)), is_error=True)
        self._cache.put(target.url, page)
        on_progress(Progress(f"reading {len(page.text):,} characters"))
        result = await answer(ctx.side, page.url, args.prompt, shortened(page.text))
        return ToolResult(_output(page, result, self._ms_since(started)))

    def to_content(self, data: WebFetchOutput) -> str:
        return data.result

    async def _fetched(self, target: urls.Target, ctx: ToolContext) -> Page | Elsewhere:
        from retinue.tools.web import client

        return await client.fetch(
            target, local_hosts=ctx.web.local_hosts, resolver=self._resolver or client.resolve, tls=None
        )

    async def _read(self, page: Page, ctx: ToolContext, duration_ms: int) -> Text | WebFetchOutput:
        """The text of the page, or where it was saved when it is none."""
        from retinue.tools.web import markdown

        if markdown.is_html(page.content_type, page.body):
            text = await markdown.markdown_of(page.body, page.url, page.charset)
            if len(page.body) > markdown.MAX_HTML_BYTES:
                text += f"\n\n[only the first {markdown.MAX_HTML_BYTES:,} bytes of the page were read]"
        elif markdown.is_text(page.content_type, page.body):
            text = markdown.decoded(page.body, page.charset)
        elif page.code >= 400:
            text = ""
        else:
            path = await in_thread(save, ctx.results_dir, ctx.call_id, page.content_type, page.body)
            kind = page.content_type or "unknown type"
            result = f"The page is no text ({one_line(kind, 80)}, {len(page.body):,} bytes). It was saved to {path}."
            return _output(Text(page.url, page.code, page.reason, len(page.body), ""), result, duration_ms, str(path))
        return Text(page.url, page.code, page.reason, len(page.body), text)

    def _ms_since(self, started: float) -> int:
        return round((self._clock() - started) * 1000)


def _target(args: WebFetchInput, ctx: ToolContext) -> urls.Target:
    return urls.parse(args.url, ctx.web.local_hosts)


def _output(page: Text, result: str, duration_ms: int, saved_to: str | None = None) -> WebFetchOutput:
    return WebFetchOutput(
        url=page.url,
        code=page.code,
        code_text=one_line(page.reason, 80),
        bytes=page.size,
        result=result,
        duration_ms=duration_ms,
        saved_to=saved_to,
    )


def _redirected(found: Elsewhere, args: WebFetchInput, duration_ms: int) -> WebFetchOutput:
    result = (
        f"Not followed: {found.url} redirects to another host ({found.code} {one_line(found.reason, 80)}).\n"
        f"It leads to: {found.to}\n"
        f"To read that page, call WebFetch again with this url, and the prompt: {args.prompt}"
    )
    return _output(Text(found.url, found.code, found.reason, 0, ""), result, duration_ms)


def _failed(page: Text, duration_ms: int) -> WebFetchOutput:
    reading: Reading = shortened(page.text.strip(), ERROR_CHARS)
    said = f"\n\nThe server says:\n{for_model(reading.text)}\n{reading.note}".rstrip() if reading.text else ""
    return _output(page, f"{page.url} answered {page.code} {one_line(page.reason, 80)}.{said}", duration_ms)
