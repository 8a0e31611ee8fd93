"""This computer, as `doctor` asks about it. Everything has a short deadline; no answer holds a key."""

from __future__ import annotations

import os
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.orchestrator.cli.doctor_checks import Ran
from retinue.orchestrator.ledger.lock import NETWORK_TYPES, filesystem_of, mounts_of_this_machine
from retinue.orchestrator.state.paths import state_root
from retinue.tools.errors import EnvironmentProblem, RetinueError

if TYPE_CHECKING:
    from retinue.orchestrator.cluster.own import ClusterStatus
    from retinue.tools.shell.sandbox.result import Mechanism, Probe

_PROGRAM_S = 5.0
_RAY_S = 30.0
_SERVER_S = 3.0


class ThisMachine:
    """Implements `doctor_checks.Machine`."""

    platform = sys.platform
    python = sys.version_info[:3]

    def __init__(self, environ: Mapping[str, str], state_dir: Path | None = None) -> None:
        self._environ = environ
        self._state_dir = state_dir

    def ray_version(self) -> Ran:
        return self._run((sys.executable, "-P", "-c", "import ray; print(ray.__version__)"), _RAY_S)

    def run(self, *command: str) -> Ran:
        return self._run(command, _PROGRAM_S)

    def ripgrep(self) -> str:
        from retinue.tools.files.ripgrep import binary

        try:
            return str(binary())
        except EnvironmentProblem:
            return ""

    def answer(self, url: str, headers: Mapping[str, str]) -> int | str:
        import httpx2

        try:
            return httpx2.get(url, headers=dict(headers), timeout=_SERVER_S).status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
            return type(error).__name__

    def state_folder(self) -> Path:
        return state_root(self._environ, self._state_dir)

    def writable(self, folder: Path) -> bool:
        """Or could it be made?"""
        return os.access(_existing(folder), os.W_OK | os.X_OK)

    def network_filesystem(self, folder: Path) -> str:
        kind = filesystem_of(_existing(folder).resolve(), mounts_of_this_machine())
        return kind if kind in NETWORK_TYPES else ""

    def open_file_limit(self) -> int:
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return sys.maxsize if soft == resource.RLIM_INFINITY else soft

    def loopback_port(self) -> str:
        try:
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname(), timeout=1).close()
        except OSError as error:
            return str(error)
        return ""

    def clusters(self) -> list[ClusterStatus]:
        from retinue.orchestrator.cluster import own

        return own.status(self._environ)

    def sandboxes(self) -> Mapping[str, Probe]:
        from retinue.tools.shell.sandbox.probe import probe

        mechanisms: tuple[Mechanism, ...] = (
            ("sandbox-exec",) if self.platform == "darwin" else ("bubblewrap", "landlock")
        )
        return {mechanism: probe(mechanism) for mechanism in mechanisms}

    def untrusted(self) -> str:
        from retinue.orchestrator.cli.trusting import brought_lines, look
        from retinue.orchestrator.trust.store import TrustStore

        try:
            found = look(Path(), "head", TrustStore.of(self.state_folder()))
            without = found.settings(trusted=False)
        except RetinueError as error:
            return str(error)
        return "" if found.trusted else "; ".join(brought_lines(found, without))

    def web_search(self) -> str:
        from retinue.orchestrator.cli.trusting import look
        from retinue.orchestrator.trust.store import TrustStore

        try:
            found = look(Path(), "head", TrustStore.of(self.state_folder()))
            search = found.settings(trusted=found.trusted).settings.web.search
        except RetinueError:
            return ""
        return "an endpoint" if search.endpoint else search.mcp_tool or ("server_side" if search.server_side else "")

    def finds(self, program: str) -> bool:
        return shutil.which(program, path=self._environ.get("PATH", os.defpath)) is not None

    def _run(self, command: tuple[str, ...], deadline_s: float) -> Ran:
        try:
            done = subprocess.run(
                command,
                env={name: value for name in ("PATH", "HOME") if (value := self._environ.get(name))},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=deadline_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return Ran(None)
        return Ran(done.returncode, done.stdout.decode(errors="replace"))


def _existing(folder: Path) -> Path:
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
