"""HTML to Markdown, as a program of its own: hostile HTML can then waste no more than its own time and memory.

Reads HTML from standard input, writes Markdown to standard output. Arguments: the page's URL, its charset or nothing.
"""

from __future__ import annotations

import re
import resource
import sys
from urllib.parse import urljoin, urlsplit

from bs4 import BeautifulSoup
from markdownify import ATX, MarkdownConverter

CPU_S = 10
MEMORY_BYTES = 1024 * 1024 * 1024
MAX_CHARS = 1_000_000
_UNSEEN = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "object",
    "canvas",
    "nav",
    "form",
    "link",
    "meta",
)
_BLANK_LINES = re.compile(r"\n\s*\n\s*\n+")


def to_markdown(html: bytes, url: str = "", charset: str | None = None) -> str:
    """What a reader sees of the page; links are absolute. Nested too deeply for Markdown, it becomes plain text."""
    soup = BeautifulSoup(html, "lxml", from_encoding=charset)
    for tag in soup.find_all(_UNSEEN):
        tag.extract()
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    if soup.head is not None:
        soup.head.extract()
    _absolute(soup, url)
    try:
        text = MarkdownConverter(heading_style=ATX, bullets="-", code_language="").convert_soup(soup)
    except RecursionError:
        text = soup.get_text("\n", strip=True)
    body = _BLANK_LINES.sub("\n\n", text).strip()
    head = f"# {title}\n\n" if title and f"# {title}" not in body[:2_000] else ""
    return f"{head}{body}"[:MAX_CHARS]


def _absolute(soup: BeautifulSoup, url: str) -> None:
    for tag in soup.find_all(["a", "img"]):
        name = "href" if tag.name == "a" else "src"
        value = tag.get(name)
        if isinstance(value, str):
            tag[name] = _joined(url, value)


def _joined(url: str, value: str) -> str:
    """Empty for what leads nowhere that could be fetched."""
    try:
        whole = urljoin(url, value.strip())
        return whole if urlsplit(whole).scheme in ("http", "https", "mailto") else ""
    except ValueError:
        return ""


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    text = to_markdown(sys.stdin.buffer.read(), sys.argv[1], sys.argv[2] or None)
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
