"""Starts a command that the kernel confines by Landlock, without capabilities and without dangerous system calls.

A program of its own (`python -I -S -E`), which loads nothing but `ctypes`:
`landlocked off|full (rPATH|wPATH)... -- PROGRAM ARGUMENT...`. `r` may be read, `w` changed as well. Nothing is started
when anything of it cannot be done.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

LOWEST_ABI = 6
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
ASK_VERSION = 1
PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
MAKE_CHAR, MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEV = 1 << 14, 1 << 15
ALL_ON_FILES = (1 << 16) - 1
ALL_ON_TCP = 3
ALL_SCOPES = 3
READ = EXECUTE | READ_FILE | READ_DIR
CHANGE = ALL_ON_FILES & ~(MAKE_CHAR | MAKE_BLOCK)
ONLY_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV

PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 22, 24, 38, 47
AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
CAPABILITY_VERSION = 0x20080522
MOST_CAPABILITIES = 64
SIGPIPE, SIGXFSZ = 13, 25

ALLOW, REFUSE, KILL = 0x7FFF0000, 0x00050000, 0x80000000
LOAD, EQUAL, AT_LEAST, ANSWER = 0x20, 0x15, 0x35, 0x06
STEP_BYTES = 8
AT_NUMBER, AT_ARCHITECTURE, AT_ARGUMENTS = 0, 4, 16
X32_CALLS = 0x40000000
INTERNET = (2, 10, 16)  # IPv4, IPv6, and netlink, by which a program asks for its addresses

# The architecture's number for seccomp; socket; calls that are refused; calls of which one argument names a process.
FORBIDDEN_CALLS = {
    # io_uring (would go around all this), keys, System V and POSIX queues and memory, bpf, userfaultfd, perf
    "x86_64": (0xC000003E, 41, (425, 426, 427, 248, 249, 250, 29, 64, 68, 240, 321, 323, 298)),
    "aarch64": (0xC00000B7, 198, (425, 426, 427, 217, 218, 219, 194, 190, 186, 180, 280, 282, 241)),
}
# (call, which argument): prlimit64, sched_setscheduler, sched_setparam, sched_setattr; setpriority, ioprio_set
CALLS_ON_OTHERS = {
    "x86_64": ((302, 0), (144, 0), (142, 0), (314, 0), (141, 1), (251, 1)),
    "aarch64": ((261, 0), (119, 0), (118, 0), (274, 0), (140, 1), (30, 1)),
}

libc = ctypes.CDLL(None, use_errno=True)


class Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))


def main() -> None:
    network, *words = sys.argv[1:]
    cut = words.index("--")
    try:
        confine(network == "full", words[:cut])
        for number in (SIGPIPE, SIGXFSZ):  # which Python ignores, and a command must not
            libc.signal(number, None)
        program = words[cut + 1]
        os.execv(program, words[cut + 1 :])
    except BaseException as error:  # what cannot be confined must not run
        os.write(2, f"the command could not be confined: {error}\n".encode())
    finally:
        os._exit(126)


def confine(network: bool, rules: list[str]) -> None:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    drop_capabilities()
    restrict_files(network, rules)
    restrict_calls(network, os.uname().machine)


def prctl(option: int, *values: int) -> None:
    numbers = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    if libc.prctl(option, *numbers) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def call(number: int, *arguments: object) -> int:
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"system call {number}")
    return result


def drop_capabilities() -> None:
    """All sets become empty. Who has no right to empty the bounding set gains nothing by it either."""
    prctl(PR_CAP_AMBIENT, AMBIENT_CLEAR_ALL)
    for capability in range(MOST_CAPABILITIES):
        if libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), *[ctypes.c_ulong(0)] * 3) != 0:
            break
    if libc.capset(struct.pack("Ii", CAPABILITY_VERSION, 0), bytes(24)) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def abi() -> int:
    """Zero or less where the kernel has no Landlock, or has it switched off."""
    return libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ASK_VERSION)


def restrict_files(network: bool, rules: list[str]) -> None:
    if abi() < LOWEST_ABI:
        raise OSError(errno.ENOSYS, f"the kernel's Landlock is older than version {LOWEST_ABI}")
    handled = struct.pack("QQQ", ALL_ON_FILES, 0 if network else ALL_ON_TCP, ALL_SCOPES)
    ruleset = call(CREATE_RULESET, handled, ctypes.c_size_t(len(handled)), 0)
    for rule in rules:
        allow(ruleset, rule[1:], CHANGE if rule[0] == "w" else READ)
    call(RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    """Never through a symbolic link. What is gone by now needs no right."""
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    mode = os.fstat(place).st_mode & 0o170000
    if mode != 0o120000:
        rights = rights if mode == 0o040000 else rights & ONLY_OF_FILES
        call(ADD_RULE, ruleset, PATH_BENEATH, struct.pack("=Qi", rights, place), 0)
    os.close(place)


def restrict_calls(network: bool, machine: str) -> None:
    if machine not in FORBIDDEN_CALLS:
        raise OSError(errno.ENOSYS, f"no filter of system calls is known for {machine}")
    code = filter_code(network, machine)
    steps = ctypes.create_string_buffer(code, len(code))
    program = Filter(len(code) // STEP_BYTES, ctypes.addressof(steps))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))


def filter_code(network: bool, machine: str) -> bytes:
    """A program for the kernel that answers each system call. A test that fails jumps over the rest of its group."""
    architecture, socket_call, forbidden = FORBIDDEN_CALLS[machine]
    refuse = step(ANSWER, REFUSE | errno.EPERM)
    code = [step(LOAD, AT_ARCHITECTURE), step(EQUAL, architecture, 1, 0), step(ANSWER, KILL), step(LOAD, AT_NUMBER)]
    code += [step(AT_LEAST, X32_CALLS, 0, 1), refuse]
    for number in forbidden:
        code += [step(EQUAL, number, 0, 1), refuse]
    for number, argument in CALLS_ON_OTHERS[machine]:
        code += [step(EQUAL, number, 0, 4), step(LOAD, AT_ARGUMENTS + 8 * argument), step(EQUAL, 0, 1, 0), refuse]
        code += [step(ANSWER, ALLOW)]
    families = [step(EQUAL, family, left, 0) for left, family in zip((3, 2, 1), INTERNET, strict=True)]
    group = [step(LOAD, AT_ARGUMENTS), *families, refuse] if network else [refuse]
    code += [step(EQUAL, socket_call, 0, len(group)), *group, step(ANSWER, ALLOW)]
    return b"".join(code)


def step(operation: int, value: int, when_true: int = 0, when_false: int = 0) -> bytes:
    return struct.pack("HBBI", operation, when_true, when_false, value)
