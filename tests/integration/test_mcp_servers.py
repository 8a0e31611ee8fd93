"""Real MCP servers over their standard streams: what they offer, how they answer, how they fail."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
import pytest

from retinue.orchestrator.mcp.connection import Program
from retinue.orchestrator.mcp.host import McpHost
from retinue.orchestrator.mcp.servers import StdioServer, pause_before
from retinue.tools.errors import ToolError
from retinue.tools.mcp.ports import McpListing, McpRequest

SERVER = Path(__file__).parents[1] / "support" / "mcp_server.py"
BAD = SERVER.with_name("mcp_bad_server.py")


def server() -> StdioServer:
    return StdioServer(name="tracker", command=sys.executable, args=(str(SERVER),), env={"TRACKER_KEY": "k"})


def bad_server(manner: str) -> StdioServer:
    return StdioServer(name="broken", command=sys.executable, args=("-S", str(BAD), manner))


async def no_pause(seconds: float) -> None:
    del seconds
    await asyncio.sleep(0)


@asynccontextmanager
async def host(folder: Path, *servers: StdioServer, connect_s: float = 20.0) -> AsyncGenerator[McpHost]:
    async def program_of(each: StdioServer) -> Program:
        return Program((each.command, *each.args), {"PATH": "/usr/bin:/bin", **each.env}, folder)

    made = McpHost(servers, program_of, connect_s=connect_s, sleep=no_pause)
    try:
        yield made
    finally:
        await made.aclose()


def nothing(text: str) -> None:
    del text


async def called(made: McpHost, tool: str, **arguments: str | int) -> str:
    answer = await made.call(McpRequest(server="tracker", tool=tool, arguments=dict(arguments)), nothing)
    return "".join(block.text for block in answer.blocks)


async def until(made: McpHost, fits: Callable[[McpListing], bool]) -> McpListing:
    async with asyncio.timeout(60):
        while not fits(listing := await made.listing(0.05)):
            pass
    return listing


async def test_a_server_says_what_it_has_and_its_hints_are_kept(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        listing = await made.listing(20.0)
        assert [each.state for each in listing.servers] == ["connected"]
        facts = {each.name: each for each in listing.tools}
        assert facts["find_issue"].read_only is True
        assert facts["close_issue"].read_only is None
        assert facts["find_issue"].input_schema["required"] == ["words"]
        assert await called(made, "find_issue", words="crash", limit=2) == f"2 issues about crash; cwd {tmp_path}"
        assert (await made.listing()).version == listing.version


async def test_its_environment_has_what_it_was_given_and_nothing_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    async with host(tmp_path, server()) as made:
        names = set((await called(made, "environment")).split())
    assert {"TRACKER_KEY", "PATH"} <= names
    assert names <= {"TRACKER_KEY", "PATH", "HOME", "LOGNAME", "SHELL", "TERM", "USER", "LC_CTYPE", "PWD", "SHLVL", "_"}


async def test_images_failures_and_resources_come_through(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        drawn = await made.call(McpRequest(server="tracker", tool="draw"), nothing)
        failed = await made.call(McpRequest(server="tracker", tool="fail"), nothing)
        found = await made.resources()
        (memo,) = await made.read("tracker", "memo://first")
        (blob,) = await made.read("tracker", "memo://blob")
        with pytest.raises(ToolError, match="refused"):
            await made.read("tracker", "memo://nothing")
    assert [block.kind for block in drawn.blocks] == ["image"]
    assert failed.is_error
    assert "a secret" not in failed.blocks[0].text
    assert {resource.uri for resource in found} == {"memo://first", "memo://blob"}
    assert (memo.text, memo.media_type) == ("remember the milk", "text/plain")
    assert blob.data


async def test_progress_is_told_and_a_cancelled_call_is_called_off_at_the_server(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    async with host(tmp_path, server()) as made:
        heard: asyncio.Queue[str] = asyncio.Queue()
        request = McpRequest(server="tracker", tool="slow", arguments={"marker": str(marker)})
        call = asyncio.create_task(made.call(request, heard.put_nowait))
        assert await asyncio.wait_for(heard.get(), 20) == "1/3 begun"
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with asyncio.timeout(10):
            while not marker.exists():
                assert await called(made, "close_issue", number=3) == "closed 3"


async def test_a_call_that_takes_too_long_is_called_off(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        await made.listing(20.0)
        request = McpRequest(server="tracker", tool="slow", arguments={"marker": str(tmp_path / "m")}, timeout_s=0.3)
        with pytest.raises(ToolError, match=r"did not answer within 0\.3 s"):
            await made.call(request, nothing)
        assert await called(made, "close_issue", number=4) == "closed 4"


async def test_a_server_that_ends_in_a_call_says_so_and_is_there_again_for_the_next(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        with pytest.raises(ToolError, match="outcome is unknown"):
            await called(made, "end")
        assert await called(made, "close_issue", number=5) == "closed 5"


async def test_a_new_tool_is_listed_at_the_next_question(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        before = await made.listing(20.0)
        assert await called(made, "grow") == "grown"
        async with asyncio.timeout(20):
            after = await made.listing()
            while "later" not in [facts.name for facts in after.tools]:
                assert await called(made, "close_issue", number=1) == "closed 1"
                after = await made.listing()
        assert after.version > before.version
        assert await called(made, "later") == "late"


async def test_a_server_that_fails_is_named_with_its_last_words_and_costs_the_others_nothing(tmp_path: Path) -> None:
    async with host(tmp_path, server(), bad_server("leaves")) as made:
        listing = await until(made, lambda found: all(s.state != "connecting" for s in found.servers))
        states = {each.name: each for each in listing.servers}
        assert states["tracker"].state == "connected"
        assert states["broken"].state == "failed"
        assert states["broken"].detail.endswith("its last words: no database")
        with pytest.raises(ToolError, match="broken cannot be reached"):
            await made.call(McpRequest(server="broken", tool="x"), nothing)
        assert await called(made, "close_issue", number=6) == "closed 6"


async def test_a_server_that_babbles_and_never_greets_is_ended(tmp_path: Path) -> None:
    async with host(tmp_path, bad_server("babbles"), connect_s=0.5) as made:
        listing = await until(made, lambda found: bool(found.servers[0].detail))
        assert "did not greet within 0.5 s" in listing.servers[0].detail
    left = [p for p in psutil.Process().children(recursive=True) if str(BAD) in " ".join(p.cmdline())]
    assert left == []


async def test_a_server_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    async with host(tmp_path, server()) as made:
        with pytest.raises(ToolError, match="There are: tracker"):
            await made.read("other", "memo://first")


def test_pauses_grow_and_end() -> None:
    assert [pause_before(n) for n in range(1, 6)] == [1.0, 2.0, 4.0, 8.0, None]
