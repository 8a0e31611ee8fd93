"""A place to break out of: folders, secrets, servers and a process, and the look from outside at what came of it."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.ports import ShellOutcome, ShellRequest
from retinue.tools.shell.runner import KeeperShell
from retinue.tools.shell.sandbox.confine import confinement
from retinue.tools.shell.sandbox.policy import Network, SandboxPolicy
from retinue.tools.shell.sandbox.result import Probe

SECRET = "TOPSECRET-5f1c"
PYTHON = os.path.realpath(sys.executable)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
VICTIM = f"""
import os, sys
secret = open(sys.argv[1], "rb", 0)
held = {SECRET[:4]!r} + {SECRET[4:]!r}
print("up", flush=True)
sys.stdin.read()
"""


@dataclass
class Scene:
    """`server`, `datagrams`, `abstract` and `named` are sockets of the host; `victim` a process of the same user."""

    root: Path
    server: socket.socket
    datagrams: socket.socket
    abstract: socket.socket
    named: socket.socket
    victim: subprocess.Popen[bytes]

    def __post_init__(self) -> None:
        self.work, self.outside, self.secret = (self.root / name for name in ("work", "outside", "secret"))
        self.scratch, self.results, self.lone = (self.root / name for name in ("scratch", "results", "lone"))
        self.before = self.picture()

    def policy(self, network: Network = "off") -> SandboxPolicy:
        return SandboxPolicy(
            writable=(self.work,),
            scratch=self.scratch,
            readable=(self.outside,),
            protected=tuple(
                self.work / name for name in (".mcp.json", ".claude", ".retinue", "sub/.claude", "deep/a/b")
            ),
            hidden=(self.secret, self.lone, self.work / "keys"),
            network=network,
        )

    async def run(
        self, command: str, probe: Probe | None, *, network: Network = "off", timeout_s: float = 20.0
    ) -> ShellOutcome:
        """Through a keeper; bare when there is no probe."""
        confined = confinement(self.policy(network), probe) if probe is not None else None
        request = ShellRequest(
            command=command,
            cwd=self.work,
            env={"PATH": PATH, "HOME": str(self.scratch), "TMPDIR": str(self.scratch), "PY": PYTHON},
            timeout_s=timeout_s,
            output_file=self.results / "output",
        )
        return await KeeperShell(confinement=confined).run(request)

    def words(self) -> dict[str, object]:
        """What a command can name."""
        return {
            "work": self.work,
            "outside": self.outside,
            "secret": self.secret,
            "lone": self.lone,
            "scratch": self.scratch,
            "victim": self.victim.pid,
            "outer": os.getpid(),
            "tcp": self.server.getsockname()[1],
            "udp": self.datagrams.getsockname()[1],
            "abstract": self.abstract.getsockname()[1:].decode(),
        }

    def harm(self, outcome: ShellOutcome) -> set[str]:
        """What can be seen from outside."""
        found: set[str] = set()
        if self.picture() != self.before:
            found.add("write")
        if SECRET in outcome.output or any(SECRET in text for text in contents(self.work, skip="keys").values()):
            found.add("read")
        if self.victim.poll() is not None:
            found.add("kill")
        if any(heard(end) for end in (self.server, self.datagrams, self.abstract, self.named)):
            found.add("network")
        return found

    def picture(self) -> dict[str, str]:
        """All that must not change: what is outside, what is hidden, what is protected, limits of the victim."""
        picture = {
            **contents(self.outside),
            **contents(self.secret),
            **contents(self.lone),
            **contents(self.work / "keys"),
        }
        for path in self.policy().protected:
            picture |= contents(path)
        picture["sub"] = str((self.work / "sub").is_dir() and not (self.work / "sub").is_symlink())
        if self.victim.poll() is None:
            picture["limit"] = str(resource.prlimit(self.victim.pid, resource.RLIMIT_CORE))
            picture["nice"] = str(os.getpriority(os.PRIO_PROCESS, self.victim.pid))
        return picture


def contents(path: Path, skip: str = "") -> dict[str, str]:
    """Every file and link at or below `path`; empty folders are nothing."""
    if path.is_symlink() or path.is_file():
        return {str(path): _said(path)}
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name != skip or folder != str(path)]
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        found |= {str(Path(folder) / name): _said(Path(folder) / name) for name in (*names, *links)}
    return found


def _said(path: Path) -> str:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    if path.is_file():
        return f"{path.stat().st_mode:o} {path.read_text(errors='replace')}"
    return f"{path.lstat().st_mode:o}"


def heard(end: socket.socket) -> bool:
    """Whether anybody has spoken to a listening socket, without waiting."""
    try:
        if end.type == socket.SOCK_DGRAM:
            end.recvfrom(64)
        else:
            end.accept()[0].close()
    except BlockingIOError:
        return False
    return True


@contextmanager
def scene(base: Path) -> Generator[Scene]:
    """Below `base`, and gone afterwards."""
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rs-", dir=base))).resolve()
        _fill(root)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        datagrams = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        datagrams.bind(("127.0.0.1", 0))
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0retinue-test-{root.name}")
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        named.bind(str(root / "outside/socket"))
        for end in (abstract, named):
            end.listen()
        for end in (server, datagrams, abstract, named):
            end.setblocking(False)
        victim = subprocess.Popen(
            [PYTHON, "-I", "-S", "-c", VICTIM, str(root / "secret/key")],
            env={"KEY": SECRET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        stack.callback(_end, victim)
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"up\n"
        yield Scene(root, server, datagrams, abstract, named, victim)


def _end(victim: subprocess.Popen[bytes]) -> None:
    with victim:
        victim.kill()


def _fill(root: Path) -> None:
    for name in ("work/sub", "work/free", "work/.retinue", "work/keys", "outside", "secret", "scratch", "results"):
        (root / name).mkdir(parents=True)
    for name, text in {
        "work/.mcp.json": "{}\n",
        "work/.retinue/settings": "ours\n",
        "work/own": "mine\n",
        "work/free/file": "free\n",
        "work/keys/key": SECRET,
        "outside/file": "original\n",
        "secret/key": SECRET,
        "lone": SECRET,
    }.items():
        (root / name).write_text(text)
