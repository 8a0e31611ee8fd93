"""Finding what a killed keeper left behind, by the mark in its environment."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

TAG = "RETINUE_CALL"
_SWEEP_S = 0.02
_PATIENCE_S = 5.0


def reap(tag_prefix: str) -> int:
    """Kill every process whose call tag starts so, with all that it started; how many there were. Blocks.

    A process that was started with an emptied environment and has lost its parent is not found.
    """
    if not tag_prefix:
        raise ValueError("an empty prefix would name the calls of every run")
    mark = f"{TAG}={tag_prefix}".encode()
    killed: set[int] = set()
    until = time.monotonic() + _PATIENCE_S
    while found := _marked(mark):
        for pid in found:
            if _kill(pid, mark):
                killed.add(pid)
        if time.monotonic() > until:
            break
        time.sleep(_SWEEP_S)
    return len(killed)


def _marked(mark: bytes) -> list[int]:
    own = os.getpid()
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid != own and _has(pid, mark)]


def _has(pid: int, mark: bytes) -> bool:
    """Zombies have no environment any more."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(mark) for entry in file.read().split(b"\0"))
    except OSError:
        return False


def _kill(pid: int, mark: bytes) -> bool:
    """The descriptor pins the process, so that its number cannot have been given to another one."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _has(pid, mark):
            return False
        with suppress(PermissionError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(descriptor)
