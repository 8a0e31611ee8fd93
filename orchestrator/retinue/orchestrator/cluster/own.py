"""The local cluster that retinue keeps between commands: find or start it, tell it of runs, end it.

Nothing here imports Ray. A command attaches with `ray.init(address=handle.address)` after it has put `handle.env` into
its environment.
"""

from __future__ import annotations

import importlib.metadata
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from pydantic import BaseModel, ConfigDict, ValidationError

from retinue.orchestrator.cluster.folder import ClusterFolder, base_lock, clusters_in, own_base
from retinue.orchestrator.cluster.identity import (
    KEY_LENGTH,
    ClusterRecord,
    Facts,
    Orders,
    build_of,
    cluster_environment,
    deciding_environment,
    default_base,
    driver_environment,
    family_of,
    folder_of,
    foreign_environment,
    key_of,
)
from retinue.orchestrator.cluster.processes import end_members, members, memory_of, send_signal, wait_gone
from retinue.orchestrator.ledger.lock import is_held
from retinue.orchestrator.state.paths import write_private
from retinue.tools.errors import EnvironmentProblem, StateError

_LOOK_S = 0.02
_KEEPER_LEAVES_S = 30.0
_END_S = 20.0
_HANDLE_FILE = "cluster.json"


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """`base` holds one folder per cluster; its path must be short. `build` replaces what is read off the files."""

    base: Path | None = None
    idle_s: float = 600.0
    ended_s: float = 30.0
    unused_s: float = 120.0
    start_s: float = 60.0
    object_store_bytes: int = 128 * 2**20
    python: str = sys.executable
    build: str = ""

    def base_folder(self) -> Path:
        return self.base or default_base(os.getuid())


class ClusterHandle(BaseModel):
    """How to attach. `folder` and `token_path` are empty for a cluster that somebody else keeps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str
    env: dict[str, str]
    folder: Path | None = None
    token_path: Path | None = None
    tag: str = ""
    started: bool = False
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    key: str
    address: str
    created: float
    ephemeral: bool
    current: bool
    """Is it the one that a command of this build and environment uses?"""
    processes: int
    memory: int
    live_runs: tuple[str, ...]


def ensure(
    environ: Mapping[str, str], *, ephemeral: bool = False, settings: ClusterSettings | None = None
) -> ClusterHandle:
    """The cluster for this build and environment, started if need be; two commands at once get the same.

    Blocks until Ray accepts connections. EnvironmentProblem: it did not start; the message has its last words.
    """
    settings = settings or ClusterSettings()
    base = own_base(settings.base_folder())
    environment = cluster_environment(environ, os.getcwd())
    orders = _orders(_facts(environment, settings), ephemeral, settings)
    folder = ClusterFolder(folder_of(base, orders.key))
    until = time.monotonic() + settings.start_s
    started = False
    while True:
        with base_lock(base):
            _clean(base, orders)
            if not folder.has_keeper():
                if started:
                    _did_not_start(folder)
                _start_keeper(folder, orders, environment)
                started = True
            folder.retired.unlink(missing_ok=True)
            folder.asked.touch(mode=0o600)
        if record := _wait_for_record(folder, until):
            return _handle(record, folder, started)


def status(environ: Mapping[str, str] | None = None, *, settings: ClusterSettings | None = None) -> list[ClusterStatus]:
    """Every cluster of this user that runs."""
    settings = settings or ClusterSettings()
    current = key_of(_facts(cluster_environment(environ, os.getcwd()), settings)) if environ else ""
    return [
        _status(folder, record, current)
        for folder in clusters_in(settings.base_folder())
        if folder.has_keeper() and (record := folder.record()) is not None
    ]


def stop(*, force: bool = False, key: str | None = None, settings: ClusterSettings | None = None) -> list[str]:
    """End this user's clusters (or one), and return their keys when they are gone.

    StateError names the live runs of those that were left alone; with `force` none is.
    """
    base = (settings or ClusterSettings()).base_folder()
    if not base.exists():
        return []
    busy: list[str] = []
    ended: list[str] = []
    with base_lock(base):
        for folder in clusters_in(base):
            if key not in (None, folder.key):
                continue
            runs = () if force else live_runs(folder)
            if runs:
                busy += runs
            elif _end(folder):
                ended.append(folder.key)
    if busy:
        raise StateError(
            f"live runs use the local cluster: {', '.join(busy)}. End them with `retinue down RUN`, or use --force"
        )
    return ended


def register_run(cluster: ClusterHandle, run_id: str, lock: Path) -> None:
    """From now on the cluster stays for this run: until its lock was held and is free again."""
    if cluster.folder is not None:
        ClusterFolder(cluster.folder).register(run_id, lock)


def release_run(cluster: ClusterHandle, run_id: str) -> None:
    """The run is over. An ephemeral cluster without another run is gone when this returns.

    Without this call the keeper notices by itself, after as long as a team may need to restart.
    """
    if cluster.folder is None:
        return
    folder = ClusterFolder(cluster.folder)
    folder.release(run_id)
    if cluster.ephemeral and not folder.registered() and folder.base.exists():
        with base_lock(folder.base):
            _end(folder)


def foreign(address: str, environ: Mapping[str, str]) -> ClusterHandle:
    """A cluster that somebody else keeps. Its token is what RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH of the user says."""
    has_token = any(environ.get(name) for name in ("RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    env = foreign_environment()
    if has_token and "RAY_AUTH_MODE" not in environ:
        env["RAY_AUTH_MODE"] = "token"
    return ClusterHandle(address=address, env=env)


def remember_cluster(run_root: Path, cluster: ClusterHandle) -> None:
    """Write into a run's directory where its actors are. No secret: the token stays in the cluster's folder."""
    write_private(run_root / _HANDLE_FILE, cluster.model_dump_json())


def recall_cluster(run_root: Path) -> ClusterHandle:
    """StateError: the run was never on a cluster, or that one is gone."""
    remedy = f"`retinue resume {run_root.name}` goes on with it on a new one"
    try:
        cluster = ClusterHandle.model_validate_json((run_root / _HANDLE_FILE).read_bytes())
    except (OSError, ValidationError) as error:
        raise StateError(f"run {run_root.name} does not say on which cluster it is; {remedy}") from error
    if cluster.folder is None:
        return cluster
    folder = ClusterFolder(cluster.folder)
    record = folder.record()
    if record is None or record.tag != cluster.tag or not folder.has_keeper():
        raise StateError(f"the cluster of run {run_root.name} is gone; {remedy}")
    return cluster.model_copy(update={"started": False})


def live_runs(folder: ClusterFolder) -> tuple[str, ...]:
    return tuple(sorted(run for run, lock in folder.registered().items() if is_held(lock)))


def _facts(environment: Mapping[str, str], settings: ClusterSettings) -> Facts:
    try:
        ray = importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        raise EnvironmentProblem("Ray is not installed here: install retinue again, as its README says") from None
    build = settings.build or build_of(_files())
    return Facts(os.getuid(), settings.python, sys.version, ray, build, deciding_environment(environment))


def _files() -> Iterator[tuple[str, int, int]]:
    import retinue

    for root in retinue.__path__:
        for folder, folders, names in os.walk(root):
            folders[:] = [name for name in folders if name != "__pycache__"]
            for name in names:
                found = os.stat(os.path.join(folder, name))
                yield os.path.join(folder, name), found.st_size, found.st_mtime_ns


def _orders(facts: Facts, ephemeral: bool, settings: ClusterSettings) -> Orders:
    return Orders(
        key=secrets.token_hex(KEY_LENGTH // 2) if ephemeral else key_of(facts),
        family="" if ephemeral else family_of(facts),
        tag=secrets.token_hex(16),
        python=settings.python,
        ephemeral=ephemeral,
        idle_s=settings.idle_s,
        ended_s=settings.ended_s,
        unused_s=settings.unused_s,
        object_store_bytes=settings.object_store_bytes,
    )


def _start_keeper(folder: ClusterFolder, orders: Orders, environment: Mapping[str, str]) -> None:
    """Returns when the keeper has left the terminal and holds its lock."""
    if (old := folder.orders()) is not None:
        end_members(old.tag)
    folder.prepare(orders, secrets.token_hex(32))
    command = [orders.python, "-P", "-m", "retinue.orchestrator.cluster.keeper", os.fspath(folder.root)]
    try:
        done = subprocess.run(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            timeout=_KEEPER_LEAVES_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EnvironmentProblem(f"the keeper of the local cluster did not start: {error}") from error
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise EnvironmentProblem(f"the keeper of the local cluster did not start: {words[-2000:]}")


def _wait_for_record(folder: ClusterFolder, until: float) -> ClusterRecord | None:
    """None: the keeper ended before the cluster was ready."""
    while folder.has_keeper():
        if (record := folder.record()) is not None:
            return record
        if time.monotonic() > until:
            _did_not_start(folder)
        time.sleep(_LOOK_S)
    return None


def _did_not_start(folder: ClusterFolder) -> NoReturn:
    raise EnvironmentProblem(
        "the local Ray cluster did not start. `retinue doctor` says what the machine lacks; the log is "
        f"{folder.log}, and ends so:\n{folder.last_lines()}"
    )


def _handle(record: ClusterRecord, folder: ClusterFolder, started: bool) -> ClusterHandle:
    return ClusterHandle(
        address=record.address,
        env=driver_environment(record.token_path),
        folder=folder.root,
        token_path=record.token_path,
        tag=record.tag,
        started=started,
        ephemeral=record.ephemeral,
    )


def _clean(base: Path, newest: Orders) -> None:
    """Remove what dead keepers left, and tell clusters of older builds that they need not wait long."""
    for folder in clusters_in(base):
        if folder.key == newest.key:
            continue
        orders = folder.orders()
        if not folder.has_keeper():
            _remove(folder)
        elif orders is not None and newest.family and orders.family == newest.family:
            folder.retired.touch(mode=0o600)


def _remove(folder: ClusterFolder) -> None:
    if (orders := folder.orders()) is not None:
        end_members(orders.tag)
    shutil.rmtree(folder.root, ignore_errors=True)


def _end(folder: ClusterFolder) -> bool:
    """Whether there was one to end."""
    record, there = folder.record(), folder.has_keeper()
    if record is not None and there and send_signal(record.keeper, signal.SIGTERM):
        wait_gone(record.keeper, _END_S)
    _remove(folder)
    return there


def _status(folder: ClusterFolder, record: ClusterRecord, current: str) -> ClusterStatus:
    found = members(record.tag)
    return ClusterStatus(
        key=record.key,
        address=record.address,
        created=record.created,
        ephemeral=record.ephemeral,
        current=record.key == current,
        processes=len(found) + 1,
        memory=memory_of([*found, record.keeper]),
        live_runs=live_runs(folder),
    )
