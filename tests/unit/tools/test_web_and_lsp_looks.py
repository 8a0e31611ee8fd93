"""How the tools of the web and of language servers look to people."""

from __future__ import annotations

from retinue.tools.lsp.tool import LSP, LSPInput, LSPOutput
from retinue.tools.ports import LanguageEntry, SearchHit
from retinue.tools.render.blocks import Heading, Line, Markdown, Table
from retinue.tools.web.fetch.tool import WebFetch, WebFetchInput, WebFetchOutput
from retinue.tools.web.search.tool import WebSearch, WebSearchInput, WebSearchOutput

FETCH = WebFetchInput(url="https://example.com/a", prompt="What is new?")
PAGE = WebFetchOutput(
    url="https://example.com/a", code=200, code_text="OK", bytes=12_345, result="**It is.**", duration_ms=1_234
)


def test_a_fetched_page_shows_its_size_and_the_answer() -> None:
    look = WebFetch().renderer()
    assert look.use(FETCH) == (Heading("Fetch", "https://example.com/a"), Line("What is new?", "dim"))
    assert look.result(FETCH, PAGE) == (
        Line("Received 12,345 bytes (200 OK) in 1.2 s", "dim"),
        Markdown("**It is.**"),
    )
    saved = PAGE.model_copy(update={"saved_to": "/r/web-1.pdf"})
    assert look.result(FETCH, saved)[1] == Line("saved to /r/web-1.pdf")
    assert look.grouped([FETCH, FETCH]) == (
        Heading("Fetched", "2 pages: https://example.com/a, https://example.com/a"),
    )


def test_a_search_shows_its_domains_and_a_table_of_what_was_found() -> None:
    look = WebSearch().renderer()
    args = WebSearchInput(query="ray", blocked_domains=("a.com",))
    assert look.use(args) == (Heading("Search", "ray (not a.com)"),)
    hits = (SearchHit(title="One", url="https://b.com"),)
    assert look.result(args, WebSearchOutput(query="ray", hits=hits)) == (
        Line("Found 1 page", "dim"),
        Table(("title", "address"), (("One", "https://b.com"),)),
    )
    assert look.result(args, WebSearchOutput(query="ray")) == (Line("Found 0 pages", "dim"),)
    assert look.result(args, WebSearchOutput(query="ray", notice="enough")) == (Line("enough", "warn"),)
    assert look.grouped([args, args]) == (Heading("Searched", "2 times: ray; ray"),)


def test_places_and_errors_of_code_are_lines_in_their_tone() -> None:
    look = LSP().renderer()
    args = LSPInput.model_validate({"operation": "diagnostics", "filePath": "a.py"})
    entries = tuple(
        LanguageEntry(file="a.py", line=n, character=1, kind=kind, name="text")
        for n, kind in enumerate(["error", "warning", *["hint"] * 30], 1)
    )
    assert look.use(args) == (Heading("LSP", "diagnostics a.py"),)
    shown = look.result(args, LSPOutput(operation="diagnostics", server="s", entries=entries, total=32, note="late"))
    assert shown[:2] == (Line("a.py:1:1 error text", "bad"), Line("a.py:2:1 warning text", "warn"))
    assert shown[-2:] == (Line("and 12 more", "dim"), Line("late", "warn"))
    hover = LSPInput.model_validate({"operation": "hover", "filePath": "a.py", "line": 3, "character": 4})
    assert look.use(hover) == (Heading("LSP", "hover a.py:3:4"),)
    assert look.result(hover, LSPOutput(operation="hover", server="s", text="`int`")) == (Markdown("`int`"),)
    assert look.grouped([args, hover]) == (Heading("Asked", "language servers 2 times: diagnostics, hover"),)
