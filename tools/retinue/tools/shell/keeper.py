"""The keeper of one shell command: starts it, watches over its whole process tree, and outlives it.

A program of its own (`python -I -S -E`), with nothing but the standard library, and of that only what loads fast:
signals come through a descriptor, since the module for them costs more than all the rest.

It reads one marshalled request from standard input, and writes one marshalled report to standard output when not a
single process of the tree is left. Until then it holds the lock descriptors that it was given, so the kernel frees the
locks when the tree is gone and not before. Standard input stays open: its end means that the command is called off,
and a byte in it that the command goes on without locks and without its time limit.

What ends the tree: the command's own end, its deadline, too much output, the end of standard input, SIGTERM, and the
death of the parent (the kernel then sends SIGTERM). What is killed with the keeper itself (SIGKILL): the command; what
the command had started is found later by its environment.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from retinue.tools.shell.protocol import KeeperReport, KeeperRequest

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CHUNK = 65_536
LINGER_S = 0.2
POLITE_S = 0.5
MOST_ASKED = 64
SWEEP_S = 0.02
LONGEST_PATH = 4_096
SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM, SIGCHLD, SIGXFSZ = 1, 2, 9, 13, 15, 17, 25
WATCHED = (SIGHUP, SIGINT, SIGTERM, SIGCHLD)
SIG_BLOCK, SIG_UNBLOCK = 0, 1
SIGNAL_RECORD = 128
LONGEST_WAIT_S = 3_600
LOCK_UN = 8
HANDED_OVER = b"H"
KEYCTL = {"x86_64": 250, "aarch64": 219}.get(os.uname().machine)
KEYCTL_JOIN_SESSION_KEYRING = 1
libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def watched_signals() -> ctypes.Array[ctypes.c_char]:
    mask = ctypes.create_string_buffer(SIGNAL_RECORD)
    libc.sigemptyset(mask)
    for number in WATCHED:
        libc.sigaddset(mask, number)
    return mask


def signals_as_descriptor() -> int:
    """The watched signals do nothing from now on but to become readable here."""
    mask = watched_signals()
    libc.sigprocmask(SIG_BLOCK, mask, None)
    descriptor = libc.signalfd(-1, mask, os.O_NONBLOCK | os.O_CLOEXEC)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "signalfd")
    return descriptor


class Keeper:
    """One command. `reason` says why it is being ended from outside; empty while it is not."""

    def __init__(self, request: KeeperRequest, signals: int) -> None:
        self.request = request
        self.pid = os.getpid()
        self.signals = signals
        self.reason = ""
        self.status: int | None = None
        self.killed: set[int] = set()
        self.written = 0
        self.failure = ""
        self.started = time.monotonic()
        self.deadline = self.started + request["timeout_s"]
        self.streams: dict[int, int] = {}
        ends = [self._stream(path) for path in (request["output_file"], request["error_file"]) if path]
        self.child = os.fork()
        if self.child == 0:
            self._become_command(ends[0], ends[-1])
        for end in ends:
            os.close(end)
        self.poll = select.poll()
        for descriptor in (0, signals, *self.streams):
            self.poll.register(descriptor, select.POLLIN)

    def _stream(self, path: str) -> int:
        """The end to write into of a pipe that is emptied into this file."""
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        output, write_end = os.pipe()
        os.set_blocking(output, False)
        self.streams[output] = file
        return write_end

    def run(self) -> KeeperReport:
        while self.status is None and not self.reason:
            left = self.deadline - time.monotonic()
            if left <= 0:
                self.reason = "timeout"
                break
            self._wait(left)
        self._end_tree()
        for descriptor in tuple(self.streams):
            while self._take_output(descriptor):
                pass
        return {
            "exit": os.waitstatus_to_exitcode(self.status) if self.status is not None else -SIGKILL,
            "reason": self.reason,
            "killed": len(self.killed),
            "bytes": self.written,
            "failure": self.failure,
            "cwd": self._end_directory(),
        }

    def _become_command(self, output: int, errors: int) -> None:
        """In the child: never returns."""
        try:
            os.setsid()
            prctl(PR_SET_PDEATHSIG, SIGKILL)
            if os.getppid() != self.pid:
                os._exit(125)
            for number in (SIGPIPE, SIGXFSZ):  # which Python ignores, and a command must not
                libc.signal(number, None)
            libc.sigprocmask(SIG_UNBLOCK, watched_signals(), None)
            if KEYCTL is not None:  # a session keyring of its own: that of the user may hold keys
                libc.syscall(KEYCTL, KEYCTL_JOIN_SESSION_KEYRING, None)
            for source, target in ((self._input(), 0), (output, 1), (errors, 2)):
                os.dup2(source, target)
            os.chdir(self.request["cwd"])
            os.execve(self.request["argv"][0], self.request["argv"], self.request["env"])
        except BaseException as error:  # the child must never go on as a second keeper
            os.write(2, f"the command could not be started: {error}\n".encode())
        finally:
            os._exit(126)

    def _input(self) -> int:
        """What the command reads. It lies in memory: no other process can find or change it, and nothing stays."""
        if not self.request["input"]:
            return os.open("/dev/null", os.O_RDONLY)
        descriptor = os.memfd_create("input")
        left = memoryview(self.request["input"])
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def _wait(self, seconds: float) -> None:
        """For anything to happen, and take it in."""
        for descriptor, _ in self.poll.poll(min(seconds, LONGEST_WAIT_S) * 1_000 + 1):
            if descriptor in self.streams:
                self._take_output(descriptor)
            elif descriptor == self.signals:
                self._take_signals()
            elif os.read(0, CHUNK):
                self._hand_over()
            else:
                self.poll.unregister(0)
                self.reason = self.reason or "called off"
        self._reap()

    def _hand_over(self) -> None:
        """Go on without locks and time limit, unless the command is ending already: then its report is the answer."""
        self._reap()
        if self.status is not None or self.reason:
            return
        for descriptor in self.request["keep_fds"]:
            libc.flock(descriptor, LOCK_UN)  # closing frees nothing while the agent still has its copy
            os.close(descriptor)
        self.request["keep_fds"] = []
        seconds = self.request["background_s"]
        self.deadline = self.started + seconds if seconds else float("inf")
        try:
            os.write(1, HANDED_OVER)
        except OSError:
            self.reason = "called off"

    def _take_signals(self) -> None:
        records = os.read(self.signals, SIGNAL_RECORD * len(WATCHED))
        numbers = [int.from_bytes(records[at : at + 4], sys.byteorder) for at in range(0, len(records), SIGNAL_RECORD)]
        if SIGTERM in numbers:
            self.reason = self.reason or "called off"

    def _take_output(self, descriptor: int) -> bool:
        """One piece from a pipe into its file; whether there was one."""
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            self.poll.unregister(descriptor)
            del self.streams[descriptor]
            return False
        room = self.request["max_file_bytes"] - self.written
        if len(data) > room:
            self.reason = self.reason or "too much output"
        self._store(self.streams[descriptor], data[:room])
        return True

    def _store(self, file: int, data: bytes) -> None:
        try:
            while data and not self.failure:
                count = os.write(file, data)
                self.written += count
                data = data[count:]
        except OSError as error:
            self.failure = f"its output could not be stored: {error.strerror}"
            self.reason = self.reason or "no room for output"

    def _reap(self) -> bool:
        """Take in every process that ended; whether any is left, at any depth (orphans become ours)."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = status

    def _end_tree(self) -> None:
        """Leave a moment to what ends by itself, ask, then kill until nothing is left."""
        if not self.reason:
            self._gone_within(LINGER_S)
        if self._reap() and self._signal_all(SIGTERM) <= MOST_ASKED:
            self._gone_within(POLITE_S)
        while self._reap():
            self._signal_all(SIGKILL)
            self._gone_within(SWEEP_S)

    def _gone_within(self, seconds: float) -> bool:
        until = time.monotonic() + seconds
        while self._reap():
            left = until - time.monotonic()
            if left <= 0:
                return False
            self._wait(left)
        return True

    def _signal_all(self, number: int) -> int:
        """By process groups: a fork cannot slip through a signal to its whole group, so a tree that grows ends too.

        The command leads a session of its own, so every group in the tree belongs to it alone; before it has got there
        it is still in the keeper's group, and is named by itself. Its own group comes first, before looking costs time.
        What stands guard over a sandbox is not asked: it would answer by killing all inside at once.
        Returns how many processes there were.
        """
        spared = self.child if self.request["guarded"] and number == SIGTERM else 0
        if self.status is None and not spared:
            self._send(-self.child, number)
        found = descendants(self.pid)
        self.killed.update(process.pid for process in found if process.alive)
        own = os.getpgrp()
        for target in {process.pid if process.group == own else -process.group for process in found}:
            if target != -spared or not spared:
                self._send(target, number)
        return len(found)

    def _send(self, target: int, number: int) -> None:
        try:
            os.kill(target, number)
        except (ProcessLookupError, PermissionError):
            return

    def _end_directory(self) -> str:
        """What the command's last act wrote; empty when it did not come to that."""
        path = self.request["cwd_file"]
        if not path:
            return ""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            os.unlink(path)
            text = os.read(descriptor, LONGEST_PATH + 1)
        except OSError:
            return ""
        return os.fsdecode(text[:-1]) if text.startswith(b"/") and text.endswith(b"\n") else ""


class Process:
    """`alive` is false for a zombie; it still counts, since it may have living threads."""

    __slots__ = ("alive", "group", "parent", "pid")

    def __init__(self, pid: int, stat: bytes) -> None:
        fields = stat.rpartition(b")")[2].split(maxsplit=3)
        self.pid = pid
        self.alive = fields[0] != b"Z"
        self.parent = int(fields[1])
        self.group = int(fields[2])


def descendants(root: int) -> list[Process]:
    """Every process below `root`."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):
        process = look_at(name) if name.isdigit() else None
        if process is not None:
            children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.pid for process in below]
    return found


def look_at(pid: str) -> Process | None:
    """None for a process that is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read(1_024)
    except OSError:
        return None
    return Process(int(pid), stat) if stat else None


def read_request() -> KeeperRequest:
    """Its length, then the marshalled request. A parent that is gone leaves nothing to do."""
    size = int.from_bytes(read_exactly(8), "little")
    return marshal.loads(read_exactly(size))


def read_exactly(size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = os.read(0, size - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return data


def main() -> None:
    signals = signals_as_descriptor()
    prctl(PR_SET_PDEATHSIG, SIGTERM)
    request = read_request()
    if os.getppid() != request["parent"]:
        return
    for descriptor in request["keep_fds"]:
        os.set_inheritable(descriptor, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    try:
        keeper = Keeper(request, signals)
    except OSError as error:
        report = not_started(error)
    else:
        report = keeper.run()
    try:
        os.write(1, marshal.dumps({**report}))
    except OSError:
        return


def not_started(error: OSError) -> KeeperReport:
    failure = f"it could not be started: {error}"
    return {"exit": 126, "reason": "not started", "killed": 0, "bytes": 0, "failure": failure, "cwd": ""}
