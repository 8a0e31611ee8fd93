"""The process that keeps one local cluster: starts Ray, watches it, ends it. `python -m …keeper FOLDER`.

It leaves the terminal before anything else. Ray's daemons die with `ray start`, which is asked to end when the keeper
dies, and what still remains is found by its tag: by the keeper, or by the next command.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from retinue.orchestrator.cluster.folder import ClusterFolder, base_lock
from retinue.orchestrator.cluster.identity import ClusterRecord, Orders, daemon_environment, ray_command
from retinue.orchestrator.cluster.idle import Patience, Watch
from retinue.orchestrator.cluster.processes import die_with_parent, end_members, identify_self, members
from retinue.orchestrator.ledger.lock import is_held
from retinue.tools.errors import EnvironmentProblem, RetinueError

LOOK_S = 0.5
_READY_S = 0.05
START_S = 90.0
END_S = 5.0


class Keeper:
    """One cluster, from the start of Ray to the end of its last process."""

    def __init__(self, folder: ClusterFolder, orders: Orders) -> None:
        self._folder = folder
        self._orders = orders
        self._stirred = threading.Event()
        self._told_to_end = False
        self._ray: subprocess.Popen[bytes] | None = None
        self._asked = 0.0

    def run(self) -> bool:
        """Whether the end was wanted. Afterwards nothing of the cluster is left."""
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, self._on_term)
        signal.signal(signal.SIGCHLD, self._on_child)
        try:
            return self._start() and self._keep()
        finally:
            self._folder.drop_record()
            self._end()

    def _on_term(self, *_: object) -> None:
        self._told_to_end = True
        self._stirred.set()

    def _on_child(self, *_: object) -> None:
        self._stirred.set()

    def _start(self) -> bool:
        folder = self._folder
        env = daemon_environment(os.environ, folder.token, self._orders.tag)
        self._ray = subprocess.Popen(
            ray_command(self._orders, folder.ray),
            env=env,
            stdin=subprocess.DEVNULL,
            preexec_fn=die_with_parent(),
        )
        until = time.monotonic() + START_S
        while not (address := self._address()):
            if self._told_to_end:
                return True
            if self._ray.poll() is not None or time.monotonic() > until:
                _say("Ray did not start")
                return False
            self._pause(_READY_S)
        folder.write_record(
            ClusterRecord(
                key=self._orders.key,
                tag=self._orders.tag,
                ephemeral=self._orders.ephemeral,
                created=time.time(),
                address=address,
                token_path=folder.token,
                keeper=identify_self(),
                processes=tuple(members(self._orders.tag)),
            )
        )
        return True

    def _address(self) -> str:
        """Of a cluster that accepts connections; empty until then."""
        try:
            address = self._folder.address_file.read_text(encoding="ascii").strip()
            host, _, port = address.rpartition(":")
            with socket.create_connection((host, int(port)), timeout=1):
                return address
        except (OSError, ValueError):
            return ""

    def _keep(self) -> bool:
        orders = self._orders
        patience = Patience(orders.idle_s, orders.ended_s, orders.unused_s, orders.ephemeral)
        watch = Watch(patience, time.monotonic())
        while not self._told_to_end:
            if self._ray is None or self._ray.poll() is not None:
                _say("Ray has ended by itself")
                return False
            self._look(watch)
            if watch.may_end(time.monotonic(), retired=self._folder.retired.exists()) and self._end_unless_asked(watch):
                return True
            self._pause(LOOK_S)
        return True

    def _look(self, watch: Watch) -> None:
        now = time.monotonic()
        held = {run: _is_held(lock) for run, lock in self._folder.registered().items()}
        for run in watch.look(now, held):
            self._folder.release(run)
        asked = self._folder.asked.stat().st_mtime
        if asked != self._asked:
            self._asked = asked
            watch.asked(now)

    def _end_unless_asked(self, watch: Watch) -> bool:
        """No command may be told to use this cluster between the decision and the end: both happen under the lock."""
        with base_lock(self._folder.base, wait=False) as taken:
            if not taken:
                return False
            self._look(watch)
            if not watch.may_end(time.monotonic(), retired=self._folder.retired.exists()):
                return False
            self._folder.drop_record()
            self._end()
            shutil.rmtree(self._folder.root, ignore_errors=True)
            return True

    def _end(self) -> None:
        if self._ray is not None and self._ray.poll() is None:
            self._ray.terminate()
            try:
                self._ray.wait(END_S)
            except subprocess.TimeoutExpired:
                self._ray.kill()
                self._ray.wait()
        end_members(self._orders.tag)

    def _pause(self, seconds: float) -> None:
        self._stirred.wait(seconds)
        self._stirred.clear()


def _is_held(lock: Path) -> bool:
    try:
        return is_held(lock)
    except EnvironmentProblem:
        return False


def _say(text: str) -> None:
    os.write(2, f"keeper: {text}\n".encode())


def leave_terminal(folder: ClusterFolder) -> None:
    """Returns in a child that holds the keeper's lock and cannot get a terminal; the session's leader exits."""
    lock = os.open(folder.keeper_lock, os.O_RDWR | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.fork():
        os._exit(0)
    os.chdir(folder.root)
    os.umask(0o077)
    log = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    for target, source in ((0, null), (1, log), (2, log)):
        os.dup2(source, target)
    os.close(null)
    os.close(log)


def main(arguments: list[str]) -> int:
    folder = ClusterFolder(Path(arguments[0]))
    orders = folder.orders()
    if orders is None:
        _say(f"{folder.root} holds no orders")
        return 2
    leave_terminal(folder)
    try:
        wanted = Keeper(folder, orders).run()
    except (RetinueError, OSError) as error:
        _say(str(error))
        return 1
    if wanted:
        shutil.rmtree(folder.root, ignore_errors=True)
    return 0 if wanted else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
