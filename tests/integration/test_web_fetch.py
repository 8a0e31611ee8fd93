"""WebFetch and its client against a real HTTP server, which does what hostile servers do."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import stat
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import pytest
import trustme

from retinue.tools.base import ToolContext, ToolResult
from retinue.tools.errors import ToolError
from retinue.tools.web import client, markdown
from retinue.tools.web.client import Elsewhere, Limits, Page
from retinue.tools.web.fetch.tool import WebFetch, WebFetchInput, WebFetchOutput
from retinue.tools.web.settings import WebSettings
from retinue.tools.web.urls import Target, parse
from support.calls import call, context, pipeline, run
from support.web_server import Asked, WebServer, answer, redirect, web_server

QUICK = Limits(max_bytes=100_000, timeout_s=5, connect_s=2, max_redirects=3)


@pytest.fixture
async def server() -> AsyncGenerator[WebServer]:
    async with web_server() as served:
        yield served


def here(
    server: WebServer, path: str = "/", host: str = "site.test", scheme: str = "http"
) -> tuple[Target, frozenset[str]]:
    """A name that only the resolver of these tests knows, allowed as local."""
    local = frozenset({f"{host}:{server.port}"})
    return parse(f"{scheme}://{host}:{server.port}{path}", local), local


class Names:
    """A resolver that gives one list of addresses after the other, and remembers what it was asked."""

    def __init__(self, *lists: tuple[str, ...]) -> None:
        self.lists = list(lists)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> tuple[str, ...]:
        self.asked.append(host)
        return self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]


LOOPBACK = ("127.0.0.1",)


async def get(server: WebServer, path: str = "/", limits: Limits = QUICK) -> Page | Elsewhere:
    target, local = here(server, path)
    return await client.fetch(target, local_hosts=local, resolver=Names(LOOPBACK), limits=limits)


# --- which address is connected to -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["https://localhost:{}/", "http://127.0.0.1:{}/", "http://[::1]:{}/", "http://[::ffff:127.0.0.1]:{}/"]
)
async def test_the_machine_itself_is_refused_by_default_and_hears_nothing(server: WebServer, url: str) -> None:
    with pytest.raises(ToolError, match=r"not fetched: .*web\.local_hosts"):
        await client.fetch(parse(url.format(server.port)))
    assert server.asked == []


@pytest.mark.parametrize(
    "addresses",
    [("10.0.0.8",), ("169.254.169.254",), ("93.184.216.34", "127.0.0.1"), ("::ffff:127.0.0.1",), ("fd00::1",)],
)
async def test_a_name_with_one_address_inside_is_refused_as_a_whole(addresses: tuple[str, ...]) -> None:
    names = Names(addresses)
    with pytest.raises(ToolError, match="not fetched"):
        await client.fetch(parse("https://rebound.test/"), resolver=names)
    assert names.asked == ["rebound.test"]


async def test_the_checked_address_is_connected_to_and_the_name_is_resolved_once(server: WebServer) -> None:
    server.routes["/"] = answer(b"hello")
    target, local = here(server)
    names = Names(LOOPBACK, ("192.0.2.1",))
    page = await client.fetch(target, local_hosts=local, resolver=names, limits=QUICK)
    assert isinstance(page, Page)
    assert page.body == b"hello"
    assert names.asked == ["site.test"]
    assert server.asked[0].headers["host"] == f"site.test:{server.port}"


async def test_a_name_that_changes_its_address_is_checked_each_time() -> None:
    names = Names(("93.184.216.34",), LOOPBACK)
    target = parse("https://rebound.test/")
    assert await client.checked_addresses(target, frozenset(), names) == ("93.184.216.34",)
    with pytest.raises(ToolError, match="this machine"):
        await client.checked_addresses(target, frozenset(), names)


async def test_each_redirect_is_resolved_anew(server: WebServer) -> None:
    server.routes |= {"/": redirect("/next"), "/next": answer(b"there")}
    target, local = here(server)
    names = Names(LOOPBACK, ())
    with pytest.raises(ToolError, match="no address"):
        await client.fetch(target, local_hosts=local, resolver=names, limits=QUICK)
    assert names.asked == ["site.test", "site.test"]


async def test_a_second_address_is_tried_when_the_first_does_not_answer(server: WebServer) -> None:
    server.routes["/"] = answer(b"hello")
    target, local = here(server)
    page = await client.fetch(target, local_hosts=local, resolver=Names(("127.0.0.2", "127.0.0.1")), limits=QUICK)
    assert isinstance(page, Page)
    with pytest.raises(ToolError, match="could not be reached"):
        await client.fetch(target, local_hosts=local, resolver=Names(("127.0.0.2",)), limits=QUICK)


async def test_the_name_is_checked_against_the_certificate_and_sent_in_the_handshake() -> None:
    authority = trustme.CA()
    serving, trusting = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
    authority.issue_cert("site.test").configure_cert(serving)
    authority.configure_trust(trusting)
    async with web_server(serving) as server:
        server.routes["/"] = answer(b"hello")
        target, local = here(server, scheme="https")
        page = await client.fetch(target, local_hosts=local, resolver=Names(LOOPBACK), limits=QUICK, tls=trusting)
        assert isinstance(page, Page)
        assert server.asked[0].sni == "site.test"
        assert server.asked[0].headers["host"] == f"site.test:{server.port}"
        other, local = here(server, host="other.test", scheme="https")
        with pytest.raises(ToolError, match="certificate"):
            await client.fetch(other, local_hosts=local, resolver=Names(LOOPBACK), limits=QUICK, tls=trusting)


async def test_no_proxy_and_no_password_of_the_surroundings_is_used(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine site.test login ada password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.routes["/"] = answer(b"hello", headers={"Set-Cookie": "a=b"})
    for _ in range(2):
        assert isinstance(await get(server), Page)
    assert not {"authorization", "cookie"} & {name for asked in server.asked for name in asked.headers}


# --- redirects -------------------------------------------------------------------------------------------------------


async def test_redirects_within_the_host_are_followed(server: WebServer) -> None:
    server.routes |= {"/": redirect("/a"), "/a": redirect("b?c=1", "308 Permanent Redirect"), "/b": answer(b"there")}
    page = await get(server)
    assert isinstance(page, Page)
    assert (page.body, page.url) == (b"there", f"http://site.test:{server.port}/b?c=1")


@pytest.mark.parametrize(
    "to", ["https://other.test/x", "//other.test/x", "http://169.254.169.254/x", "http://site.test:1/x"]
)
async def test_a_redirect_to_another_host_or_port_is_told_and_not_followed(server: WebServer, to: str) -> None:
    server.routes["/"] = redirect(to)
    found = await get(server)
    assert isinstance(found, Elsewhere)
    assert found.to.endswith("/x")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    "to", ["ftp://site.test/", "file:///etc/passwd", "https://a:b@site.test/", "http://127.1/", "http://["]
)
async def test_a_redirect_to_what_is_no_plain_address_is_an_error(server: WebServer, to: str) -> None:
    server.routes["/"] = redirect(to)
    with pytest.raises(ToolError):
        await get(server)


async def test_redirects_in_a_circle_end(server: WebServer) -> None:
    server.routes |= {"/": redirect("/a"), "/a": redirect("/")}
    with pytest.raises(ToolError, match="more than 3 times"):
        await get(server)
    assert len(server.asked) == 4


# --- limits ----------------------------------------------------------------------------------------------------------


async def test_a_page_that_is_too_large_is_given_up_early(server: WebServer) -> None:
    sent = 0

    async def endless(_: Asked, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            writer.write(bytes(10_000))
            sent += 10_000
            await writer.drain()

    server.routes |= {"/": endless, "/said": answer(b"", headers={"Content-Length": "100001"})}
    with pytest.raises(ToolError, match="larger than 100,000 bytes"):
        await get(server)
    with pytest.raises(ToolError, match="larger than 100,000 bytes"):
        await get(server, "/said")


async def test_a_compressed_bomb_is_given_up_at_the_limit(server: WebServer) -> None:
    bomb = gzip.compress(bytes(300 * 1024 * 1024), compresslevel=1)
    server.routes["/"] = answer(bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(ToolError, match="larger than"):
        await get(server, limits=Limits(max_bytes=10_000_000, timeout_s=10))


async def test_a_compressed_page_is_unpacked(server: WebServer) -> None:
    server.routes["/"] = answer(gzip.compress(b"words " * 1000), headers={"Content-Encoding": "gzip"})
    page = await get(server)
    assert isinstance(page, Page)
    assert page.body == b"words " * 1000
    assert server.asked[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nab"])
async def test_a_server_that_never_ends_its_answer_is_left_in_time(server: WebServer, start: bytes) -> None:
    forever = asyncio.Event()

    async def slow(_: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await writer.drain()
        await forever.wait()

    server.routes["/"] = slow
    with pytest.raises(ToolError, match=r"within 0\.3 s|could not be read"):
        await get(server, limits=Limits(timeout_s=0.3))
    forever.set()


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
        b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n",
        b"",
    ],
)
async def test_a_server_that_does_not_speak_properly_is_a_tool_error(server: WebServer, raw: bytes) -> None:
    server.routes["/"] = raw
    with pytest.raises(ToolError):
        await get(server)


# --- hostile HTML ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "html",
    [
        *(b"<div>" * 100_000, b"<b><i>" * 50_000, b"<table>" * 5_000, b"<!--" * 100_000, b"<a " * 300_000),
        *(
            b"<blockquote>" * 3_000 + b"x",
            b"<ul><li>" * 3_000,
            b"<p " + b"a=b " * 200_000,
            b"&" * 500_000,
            b"\0" * 1_000,
        ),
    ],
    ids=range(10),
)
async def test_hostile_html_becomes_text_or_an_error_in_time(html: bytes) -> None:
    text = ""
    with suppress(ToolError):
        text = await markdown.markdown_of(html, "https://e.com/", None, timeout_s=20)
    assert len(text) <= 1_000_000


async def test_a_converter_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ToolError, match=r"within 0\.01 s"):
        await markdown.markdown_of(b"<p>" * 500_000, "https://e.com/", None, timeout_s=0.01)


# --- the tool --------------------------------------------------------------------------------------------------------


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class Reader:
    """A small model that says how much it was given."""

    async def ask(self, prompt: str, *, system: str = "", max_tokens: int = 4_096) -> str:
        return f"read {'Headline' in prompt}: {prompt.rpartition('page:')[2].strip()}"


def scene(server: WebServer, tmp_path: Path, **more: object) -> ToolContext:
    web = WebSettings(local_hosts=frozenset({f"localhost:{server.port}"}))
    return context(tmp_path, web=web, results_dir=tmp_path / "results", call_id="call-1", **more)


async def use(tool: WebFetch, ctx: ToolContext, url: str) -> ToolResult[WebFetchOutput]:
    return await tool.call(WebFetchInput(url=url, prompt="What is it?"), ctx, lambda _: None)


async def test_a_page_is_read_for_the_question_and_kept_for_fifteen_minutes(server: WebServer, tmp_path: Path) -> None:
    server.routes["/"] = answer(b"<h1>Headline</h1><p>Text", "text/html; charset=utf-8")
    clock = Clock()
    tool, ctx = WebFetch(clock=clock), scene(server, tmp_path, side=Reader())
    for _ in range(2):
        data = (await use(tool, ctx, server.url)).data
        assert data.result == "read True: What is it?"
        assert (data.code, data.code_text, data.bytes) == (200, "OK", 24)
    assert len(server.asked) == 1
    clock.now += 15 * 60
    await use(tool, ctx, server.url)
    assert len(server.asked) == 2


async def test_without_a_small_model_the_markdown_itself_is_the_result(server: WebServer, tmp_path: Path) -> None:
    server.routes["/"] = answer(b"<h1>Headline</h1><a href=/x>x</a>", "text/html")
    text = (await use(WebFetch(), scene(server, tmp_path), f"{server.url}/")).data.result
    assert "# Headline" in text
    assert f"[x]({server.url}/x)" in text
    assert "this is the page itself" in text


async def test_a_long_page_is_cut_saying_so(server: WebServer, tmp_path: Path) -> None:
    server.routes["/"] = answer(b"x" * 150_000, "text/plain")
    text = (await use(WebFetch(), scene(server, tmp_path), server.url)).data.result
    assert "these are the first 100,000" in text
    assert 100_000 <= len(text) < 100_500


async def test_a_redirect_to_another_host_names_both_and_asks_for_a_second_call(
    server: WebServer, tmp_path: Path
) -> None:
    server.routes["/"] = redirect("https://other.test/page")
    found = await use(WebFetch(), scene(server, tmp_path), server.url)
    assert not found.is_error
    assert f"{server.url}/ redirects to another host (302 Found)" in found.data.result
    assert "https://other.test/page" in found.data.result
    assert "call WebFetch again" in found.data.result


async def test_an_error_of_the_server_is_an_error_and_is_not_kept(server: WebServer, tmp_path: Path) -> None:
    tool, ctx = WebFetch(), scene(server, tmp_path)
    for _ in range(2):
        found = await use(tool, ctx, f"{server.url}/none")
        assert found.is_error
        assert "answered 404 Not Found" in found.data.result
        assert "nothing here" in found.data.result
    assert len(server.asked) == 2


async def test_what_is_no_text_is_saved_for_the_owner_alone(server: WebServer, tmp_path: Path) -> None:
    server.routes["/"] = answer(b"%PDF-1.7 \0\1", "application/pdf")
    data = (await use(WebFetch(), scene(server, tmp_path), server.url)).data
    saved = tmp_path / "results" / "web-call-1.pdf"
    assert data.saved_to == str(saved)
    assert str(saved) in data.result
    assert saved.read_bytes() == b"%PDF-1.7 \0\1"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    assert list(saved.parent.iterdir()) == [saved]


async def test_by_default_the_tool_reaches_no_local_server(server: WebServer, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="this machine"):
        await use(WebFetch(), context(tmp_path), server.url)
    assert server.asked == []


async def test_through_the_pipeline_a_long_page_is_put_aside_whole(server: WebServer, tmp_path: Path) -> None:
    server.routes["/"] = answer(b"word " * 18_000, "text/plain")
    line = pipeline(WebFetch(), folder=tmp_path / "results")
    found = await run(line, call("WebFetch", url=server.url, prompt="?"), scene(server, tmp_path))
    assert not found.is_error
    assert found.content.startswith("<persisted-output>")
    assert found.spilled_to is not None
    assert Path(found.spilled_to).read_text().count("word") == 18_000
    refused = await run(line, call("WebFetch", url="http://127.1/", prompt="?"), scene(server, tmp_path))
    assert refused.is_error
    assert "four decimal numbers" in refused.content
