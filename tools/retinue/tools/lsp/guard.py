"""Stands between an agent and a language server: the server, and all that it started, ends when the agent does.

A program of its own, with the standard library alone. The server has the guard's standard streams; the guard keeps none
of them. It ends the tree when the server has ended, at SIGTERM, and when its parent dies: the kernel sends one then.
"""

from __future__ import annotations

import os
import signal
import sys

from retinue.tools.shell.keeper import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, descendants, prctl

_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
NOT_STARTED = 126


def main() -> None:
    """Arguments: the parent's process id, and the server's program with its arguments."""
    parent, *argv = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    own = os.getpid()
    child = os.fork()
    if child == 0:
        _become(argv, own)
    _let_go_of_streams()
    status = _until_it_ends(child)
    _end_tree(own)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF if status is not None else 0)


def _become(argv: list[str], guard: int) -> None:
    """In the child: never returns."""
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:
            os._exit(NOT_STARTED)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        os.execvp(argv[0], argv)
    except OSError as error:
        os.write(2, f"{argv[0]} could not be started: {error.strerror}\n".encode())
    finally:
        os._exit(NOT_STARTED)


def _let_go_of_streams() -> None:
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)


def _until_it_ends(child: int) -> int | None:
    """Its status; None when it is to be ended."""
    while True:
        if signal.sigwait(_WATCHED) != signal.SIGCHLD:
            return None
        for pid, status in _ended():
            if pid == child:
                return status


def _ended() -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        found.append((pid, status))


def _end_tree(own: int) -> None:
    """Orphans become the guard's, so it has no child left when the tree is gone."""
    while True:
        for process in descendants(own):
            if process.alive:
                _kill(process.pid)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
