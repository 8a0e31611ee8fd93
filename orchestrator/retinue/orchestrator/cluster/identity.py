"""What makes two commands share one local cluster, what its processes may know of the shell that started it, and what
is written down about it. Pure: facts come in, values go out."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from retinue.tools.errors import EnvironmentProblem

TAG = "RETINUE_CLUSTER"
"""In the environment of everything that Ray starts for one cluster: how its processes are found again."""

KEY_LENGTH = 8
_SOCKET_PATH_LIMIT = 103  # 107 on Linux, 103 on macOS
_RAY_SOCKET = "/r/session_2026-12-01_00-00-00_000000_4194304/sockets/plasma_store"

_ALLOWED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "PYTHONPATH",
        "LD_LIBRARY_PATH",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "XDG_STATE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
    }
)
_DECIDES = _ALLOWED - {"PATH", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR"}
"""What a launch passes on by itself (search path, language, time zone) must not split clusters."""

_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_enable_metrics_collection": "0",
    "RAY_task_events_report_interval_ms": "0",
}
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""With clusters "disabled" Ray binds to 127.0.0.1 instead of the address of the default route: no port is open to the
network, and a laptop may change networks under a run."""

_DAEMONS = {
    "RAY_worker_niceness": "0",
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_ROTATION_MAX_BYTES": str(16 * 2**20),
    "RAY_ROTATION_BACKUP_COUNT": "1",
    "SPT_NOENV": "1",
}
"""The last keeps Ray from writing process titles over the environment, in which processes are found by their tag."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a cluster's processes have in common with the commands that may use it."""

    uid: int
    python: str
    python_version: str
    ray: str
    build: str
    environment: tuple[tuple[str, str], ...]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ProcessId(_Record):
    """A process, told apart from a later one with the same number by when it started."""

    pid: int
    started: int = Field(description="Clock ticks from the machine's boot to the process's start.")


class Orders(_Record):
    """What a command writes for the keeper that it starts."""

    key: str
    family: str = Field(description="The key without the build: of these, only the newest build is worth keeping.")
    tag: str
    python: str
    ephemeral: bool
    idle_s: float
    ended_s: float
    unused_s: float
    object_store_bytes: int


class ClusterRecord(_Record):
    """What the keeper writes when Ray accepts connections. Its presence means that the cluster can be used."""

    version: int = 1
    key: str
    tag: str
    ephemeral: bool
    created: float
    address: str
    token_path: Path
    keeper: ProcessId
    processes: tuple[ProcessId, ...]

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])


def key_of(facts: Facts) -> str:
    return _digest(asdict(facts))[:KEY_LENGTH]


def family_of(facts: Facts) -> str:
    """The same for all builds of one installation."""
    return key_of(replace(facts, build=""))


def build_of(files: Iterable[tuple[str, int, int]]) -> str:
    """From (path, size, time of change) of every installed file: a cluster never runs older code than the command."""
    return _digest(sorted(files))


def cluster_environment(environ: Mapping[str, str], cwd: str) -> dict[str, str]:
    """The allow-listed part of a shell's environment. Relative entries of PYTHONPATH are made absolute from `cwd`."""
    kept = {name: value for name, value in environ.items() if name in _ALLOWED or name.startswith("LC_")}
    if python_path := kept.get("PYTHONPATH"):
        entries = [os.path.join(cwd, entry) for entry in python_path.split(os.pathsep) if entry]
        kept["PYTHONPATH"] = os.pathsep.join(entries)
    return kept


def deciding_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value) for name, value in environment.items() if name in _DECIDES))


def driver_environment(token_path: Path) -> dict[str, str]:
    """What a process must have in its environment before it imports Ray, to attach to a cluster of ours.

    A token of another cluster in the user's shell would come before the path, and the attempt to connect would hang.
    """
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "", "RAY_AUTH_TOKEN_PATH": str(token_path)}
    return {**_QUIET, **_ON_LOOPBACK, **token}


def foreign_environment() -> dict[str, str]:
    """The same for somebody else's cluster: how to get in is said by the user's own environment."""
    return dict(_QUIET)


def daemon_environment(environment: Mapping[str, str], token_path: Path, tag: str) -> dict[str, str]:
    return {**environment, **driver_environment(token_path), **_DAEMONS, TAG: tag}


def ray_command(orders: Orders, temp: Path) -> list[str]:
    """`ray start` in the foreground: it watches its daemons, and they die with it."""
    return [
        *(orders.python, "-P", "-m", "ray.scripts.scripts", "start", "--head", "--block"),
        *("--port=0", "--node-ip-address=127.0.0.1", f"--temp-dir={temp}"),
        *("--include-dashboard=false", "--no-monitor", "--include-log-monitor=false", "--disable-usage-stats"),
        *("--num-cpus=0", f"--object-store-memory={orders.object_store_bytes}", "--log-color=false"),
    ]


def default_base(uid: int) -> Path:
    """Not XDG_RUNTIME_DIR: that is emptied when the last session of a user ends, and runs outlive terminals."""
    return Path(f"/tmp/retinue-{uid}")


def folder_of(base: Path, key: str) -> Path:
    """The folder of a cluster. EnvironmentProblem when Ray's sockets in it would have too long a path."""
    folder = base / key
    if len(os.fsencode(folder)) + len(_RAY_SOCKET) > _SOCKET_PATH_LIMIT:
        room = _SOCKET_PATH_LIMIT - len(_RAY_SOCKET) - KEY_LENGTH - 1
        raise EnvironmentProblem(
            f"the folder {base} has too long a path for the sockets of a local cluster: at most {room} bytes fit"
        )
    return folder


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("utf-8", "surrogateescape")).hexdigest()
