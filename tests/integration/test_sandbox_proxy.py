"""The proxy of a list of hosts: what passes, what is refused, and how long; then through a sandbox."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.tools.errors import EnvironmentProblem
from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.exchange import Limits, Streams
from retinue.tools.shell.sandbox.hosts import Place, Refused
from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.probe import probe
from retinue.tools.shell.sandbox.proxy import ProxyServer, dial_public
from support.sandbox_scene import PATH, PYTHON

HOSTS = ("ok.example", "*.sub.example")


@dataclass
class Origin:
    """A server that keeps what it hears, and says back `answer` and then the request."""

    answer: bytes = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n"
    heard: list[bytes] = field(default_factory=list[bytes])
    dialled: list[Place] = field(default_factory=list[Place])
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0].split(b":")[1])) if length else b""
            self.heard.append(head + body)
            writer.write(self.answer + head + body)
            await writer.drain()
        except asyncio.IncompleteReadError as rest:
            self.heard.append(rest.partial)
        finally:
            writer.close()

    async def dial(self, where: Place) -> Streams:
        self.dialled.append(where)
        return await asyncio.open_connection("127.0.0.1", self.port)


@pytest.fixture
async def origin() -> AsyncIterator[Origin]:
    found = Origin()
    async with await asyncio.start_server(found.serve, "127.0.0.1", 0) as server:
        found.port = server.sockets[0].getsockname()[1]
        yield found


@asynccontextmanager
async def proxied(origin: Origin, tmp_path: Path, limits: Limits | None = None) -> AsyncGenerator[Path]:
    path = tmp_path / "proxy.sock"
    async with ProxyServer(HOSTS, path, dial=origin.dial, limits=limits):
        yield path


async def say(path: Path, *words: bytes) -> bytes:
    """All that comes back, to the end."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    try:
        for word in words:
            writer.write(word)
            await writer.drain()
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()


async def test_a_plain_request_is_passed_on_to_its_host(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path) as path:
        said = await say(
            path, b"GET http://ok.example/a?b HTTP/1.1\r\nHost: other\r\nX-Y: z\r\nConnection: keep-alive, x-y\r\n\r\n"
        )
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert origin.dialled == [Place("ok.example", 80)]
    assert origin.heard[0].startswith(b"GET /a?b HTTP/1.1\r\n")
    assert b"host: ok.example\r\n" in origin.heard[0].lower()
    assert b"other" not in origin.heard[0]
    assert b"x-y" not in origin.heard[0].lower()


async def test_a_body_is_passed_on(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path) as path:
        said = await say(
            path,
            b"POST http://a.sub.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
            b"body",
        )
    assert said.startswith(b"HTTP/1.1 100")
    assert origin.heard[0].endswith(b"\r\n\r\nbody")


async def test_a_second_request_behind_the_first_is_not_passed_on(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path) as path:
        await say(
            path,
            b"GET http://ok.example/1 HTTP/1.1\r\nHost: x\r\n\r\nGET http://evil.example/2 HTTP/1.1\r\nHost: x\r\n\r\n",
        )
    assert len(origin.heard) == 1
    assert b"evil" not in origin.heard[0]


async def test_a_tunnel_carries_bytes_both_ways(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path) as path:
        said = await say(path, b"CONNECT ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n", b"raw\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200")
    assert said.endswith(b"raw\r\n\r\n")
    assert origin.dialled == [Place("ok.example", 443)]


@pytest.mark.parametrize(
    ("request_line", "why"),
    [
        (b"CONNECT evil.example:443", b"evil.example is not on the list"),
        (b"CONNECT ok.example:22", b"the ports 80 and 443 only"),
        (b"CONNECT 127.0.0.1:443", b"named by its name"),
        (b"CONNECT [::1]:443", b"named by its name"),
        (b"GET http://evil.example/", b"evil.example is not on the list"),
        (b"GET http://ok.example:8080/", b"the ports 80 and 443 only"),
        (b"GET /", b"names the whole address"),
    ],
)
async def test_what_is_not_on_the_list_is_refused_and_said_so(
    origin: Origin, tmp_path: Path, request_line: bytes, why: bytes
) -> None:
    async with proxied(origin, tmp_path) as path:
        said = await say(path, request_line + b" HTTP/1.1\r\nHost: ok.example\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 403")
    assert why in said
    assert origin.dialled == []


@pytest.mark.parametrize(
    "words",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET http://ok.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET http://ok.example/ HTTP/1.1\r\nHost: x\r\n bad: folded\r\nX Y: z\r\n\r\n",
        b"GET http://ok.example/ HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 70_000 + b"\r\n\r\n",
    ],
)
async def test_what_is_not_http_reaches_nobody(origin: Origin, tmp_path: Path, words: bytes) -> None:
    async with proxied(origin, tmp_path) as path:
        said = await say(path, words + b"\r\n\r\n")
    assert not said or said.startswith((b"HTTP/1.1 502", b"HTTP/1.1 4"))
    assert origin.dialled == []


async def test_a_client_that_says_nothing_is_given_up(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path, Limits(head_s=0.1)) as path:
        assert (await say(path, b"GET http://ok")).startswith(b"HTTP/1.1 504")


async def test_a_tunnel_in_which_nobody_speaks_is_given_up(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path, Limits(idle_s=0.1)) as path:
        said = await say(path, b"CONNECT ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200")


async def test_connections_are_counted(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path, Limits(connections=1)) as path:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"CONNECT ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        said = b""
        with suppress(ConnectionResetError, BrokenPipeError):
            said = await say(path, b"GET http://ok.example/ HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.close()
    assert said == b""
    assert len(origin.dialled) == 1


async def test_leaving_ends_what_is_under_way_and_takes_the_socket_away(origin: Origin, tmp_path: Path) -> None:
    async with proxied(origin, tmp_path) as path:
        reader, writer = await asyncio.open_unix_connection(str(path))
        writer.write(b"CONNECT ok.example:443 HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
    assert await reader.read() == b""
    assert not path.exists()
    writer.close()


async def test_a_link_in_the_place_of_the_socket_is_not_followed(origin: Origin, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("kept")
    (tmp_path / "proxy.sock").symlink_to(tmp_path / "victim")
    async with proxied(origin, tmp_path) as path:
        assert not path.is_symlink()
    assert (tmp_path / "victim").read_text() == "kept"


async def test_a_long_path_will_do(origin: Origin, tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    async with proxied(origin, folder) as path:
        assert path.is_socket()


async def test_a_folder_that_is_not_there_is_said(origin: Origin, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem, match="cannot listen on"):
        await ProxyServer(HOSTS, tmp_path / "none/proxy.sock", dial=origin.dial).__aenter__()


async def test_a_name_of_this_machine_is_refused_after_it_was_resolved() -> None:
    with pytest.raises(Refused, match="no host of the open internet"):
        await dial_public(Place("localhost", 80))


# --- from inside of a sandbox ----------------------------------------------------------------------------------------


async def inside(command: str, origin: Origin, root: Path) -> ShellOutcome:
    """The proxy's folder has a long name; it is named from within."""
    work, scratch = root / "work", root / ("scratch" + "x" * 100)
    for folder in (work, scratch):
        folder.mkdir()
    async with ProxyServer(HOSTS, scratch / ".proxy", dial=origin.dial):
        policy = SandboxPolicy(writable=(work,), scratch=scratch, network=HOSTS)
        shell = KeeperShell(confinement=confinement(policy, probe("bubblewrap"), scratch / ".proxy"))
        env = {"PATH": PATH, "PY": PYTHON}
        return await shell.run(ShellRequest(command, work, env, 30.0, root / "output"))


FETCH = '"$PY" -I -c \'import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).read().decode())\' "$@"'


async def test_a_program_inside_reaches_a_host_on_the_list(origin: Origin, tmp_path: Path) -> None:
    outcome = await inside(f"set http://ok.example/page; {FETCH}", origin, tmp_path)
    assert "GET /page HTTP/1.1" in outcome.output


async def test_a_program_inside_reaches_no_other_host_and_no_loopback(origin: Origin, tmp_path: Path) -> None:
    command = f"set http://evil.example/; {FETCH}; set http://127.0.0.1:{origin.port}/; {FETCH}; exit 5"
    outcome = await inside(command, origin, tmp_path)
    assert "HTTP Error 403" in outcome.output
    assert "Connection refused" in outcome.output
    assert outcome.exit_code == 5
    assert origin.heard == []


async def test_the_forwarder_is_no_child_of_the_command_and_holds_nothing_up(origin: Origin, tmp_path: Path) -> None:
    outcome = await inside("wait; jobs; env | grep -ic _proxy; ls /proc/self/fd | wc -l", origin, tmp_path)
    assert outcome.output.split() == ["8", "4"]
    assert outcome.duration_s < 5


async def test_a_broken_pipe_ends_a_command_as_outside(origin: Origin, tmp_path: Path) -> None:
    assert (await inside("yes | head -n 1; echo ${PIPESTATUS[0]}", origin, tmp_path)).output.split() == ["y", "141"]


async def test_without_the_proxy_a_list_of_hosts_is_refused(tmp_path: Path) -> None:
    policy = SandboxPolicy(writable=(tmp_path,), scratch=tmp_path, network=HOSTS)
    for mechanism in ("bubblewrap", "landlock"):
        with pytest.raises(EnvironmentProblem, match="list of hosts"):
            confinement(policy, probe(mechanism))
    with pytest.raises(EnvironmentProblem, match="Landlock"):
        confinement(policy, probe("landlock"), tmp_path / "proxy")
    assert os.listdir(tmp_path) == []
