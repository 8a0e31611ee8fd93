"""The server of a script, spoken to in plain HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from retinue.agents.model.script_file import parse_script
from retinue.agents.model.serve import ScriptServer, serve_script
from retinue.tools.errors import EnvironmentProblem

pytestmark = [pytest.mark.asyncio, pytest.mark.live]

SCRIPT = parse_script('agents: {"*": [{say: hi}]}')


async def ask(server: ScriptServer, sent: bytes) -> tuple[int, bytes]:
    """Status and body of the answer to what was sent."""
    host, _, port = server.base_url.removeprefix("http://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    await writer.drain()
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(head.split(b" ")[1]), body


def posted(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("sent", "status", "said"),
    [
        (b"GET /nowhere HTTP/1.1\r\n\r\n", 404, "nothing at /nowhere"),
        (b"GET /v1/messages HTTP/1.1\r\n\r\n", 405, "GET is not for /v1/messages"),
        (b"nonsense\r\n\r\n", 400, "not an HTTP/1.1 request"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: x\r\n\r\n", 400, "content-length is no number"),
        (b"POST /v1/messages HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411, "content-length"),
        (b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n", 413, "longer than"),
        (b"GET / HTTP/1.1\r\na: " + b"x" * 70_000 + b"\r\n\r\n", 431, "too long"),
        (posted("/v1/messages", b"{"), 400, "the body is not JSON"),
        (posted("/v1/messages", b"[]"), 400, "the body is not a JSON object"),
        (posted("/v1/messages", b'{"messages": 3}'), 400, "messages: must be a list of objects"),
        (posted("/v1/messages", b'{"messages": []}'), 400, "a request needs at least one message"),
        (
            posted("/v1/messages", b'{"messages": [{"role": "user", "content": [{"type": "image"}]}]}'),
            400,
            "does not know blocks of type image",
        ),
        (
            posted("/v1/messages", b'{"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}'),
            400,
            "valid string",
        ),
        (posted("/v1/messages/count_tokens", b'"x"'), 400, "the body is not a JSON object"),
        (posted("/v1/messages", b'{"messages": [{"role": "user", "content": "x"}]}'), 200, '"text": "hi"'),
    ],
)
async def test_what_cannot_be_answered_is_told_so_in_the_apis_own_shape(sent: bytes, status: int, said: str):
    async with serve_script(SCRIPT) as server:
        got, body = await ask(server, sent)
    assert got == status
    assert said in body.decode()
    assert json.loads(body)["type"] == ("message" if status == 200 else "error")


async def test_a_port_that_is_taken_is_told_with_the_remedy():
    async with serve_script(SCRIPT) as server:
        port = int(server.base_url.rpartition(":")[2])
        with pytest.raises(EnvironmentProblem, match=f"cannot listen on 127.0.0.1:{port}.*another port"):
            async with serve_script(SCRIPT, port=port):
                raise AssertionError("two servers on one port")


async def test_closing_ends_what_is_running():
    stalling = parse_script("agents: {default: [{say: hi, fail: stall}]}")
    body = b'{"stream": true, "messages": [{"role": "user", "content": "x"}]}'
    async with serve_script(stalling) as server:
        host, _, port = server.base_url.removeprefix("http://").rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(posted("/v1/messages", body))
        assert b"message_start" in await reader.readuntil(b"message_start")
    rest = await asyncio.wait_for(reader.read(), 5)
    assert not rest.endswith(b"0\r\n\r\n")
    writer.close()


async def test_the_command_serves_until_it_is_told_to_stop(tmp_path: Path):
    (tmp_path / "s.yaml").write_text('agents: {"*": [{say: hi}]}')
    code = (
        "import functools, pathlib, sys; from retinue.agents.model.serve import main;"
        "main(pathlib.Path(sys.argv[1]), functools.partial(print, flush=True))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, str(tmp_path / "s.yaml"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    line = (await asyncio.wait_for(process.stdout.readline(), 30)).decode()
    assert line.startswith("serving s.yaml at http://127.0.0.1:")
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == os.EX_OK
