"""Naming processes so that a re-used number is never taken for them, and ending all of one cluster."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from retinue.orchestrator.cluster.identity import TAG, ProcessId

_PR_SET_PDEATHSIG = 1
_SWEEP_S = 0.02


def identify(pid: int) -> ProcessId | None:
    """None when there is no such process, or only what its parent has not taken note of yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else ProcessId(pid=pid, started=int(fields[19]))


def identify_self() -> ProcessId:
    own = identify(os.getpid())
    assert own is not None, "a process can see itself"
    return own


def is_alive(process: ProcessId) -> bool:
    return identify(process.pid) == process


def members(tag: str) -> list[ProcessId]:
    """Every process that was started for the cluster with this tag."""
    mark = f"{TAG}={tag}".encode()
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    found = [identify(pid) for pid in pids if _has(pid, mark)]
    return [process for process in found if process is not None]


def end_members(tag: str, patience_s: float = 10.0) -> int:
    """Kill what is left of a cluster; how many there were. Blocks until they are gone, or patience ends."""
    if not tag:
        raise ValueError("an empty tag names no cluster")
    killed: set[int] = set()
    until = time.monotonic() + patience_s
    while (left := members(tag)) and time.monotonic() < until:
        killed |= {process.pid for process in left if send_signal(process, signal.SIGKILL)}
        time.sleep(_SWEEP_S)
    return len(killed)


def send_signal(process: ProcessId, number: signal.Signals) -> bool:
    """To exactly this process: the descriptor pins its number while its start is compared."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except OSError:
        return False
    try:
        if not is_alive(process):
            return False
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, number)
        return True
    finally:
        os.close(descriptor)


def wait_gone(process: ProcessId, deadline_s: float) -> bool:
    until = time.monotonic() + deadline_s
    while is_alive(process):
        if time.monotonic() > until:
            return False
        time.sleep(_SWEEP_S)
    return True


def memory_of(processes: list[ProcessId]) -> int:
    """Bytes, shared pages counted in parts."""
    return sum(_pss(process.pid) for process in processes)


def die_with_parent() -> Callable[[], None]:
    """For `preexec_fn`: the child is asked to end when the parent's process dies, however it dies."""
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        if os.getppid() != parent:  # it died before the request was made
            os._exit(1)

    return before_exec


def _has(pid: int, mark: bytes) -> bool:
    try:
        return mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
