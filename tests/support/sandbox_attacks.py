"""Ways out of a sandbox. Each does harm when nothing confines it, so that a refusal is one of the sandbox."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Harm = Literal["write", "read", "kill", "network"]


@dataclass(frozen=True)
class Attack:
    """`command` takes the scene's words in braces; `needs_root`: does harm only as root, however little confines it."""

    name: str
    harm: Harm
    command: str
    needs_root: bool = False


def python(text: str) -> str:
    """A command that runs `text`, which has no single quote."""
    assert "'" not in text
    return f"\"$PY\" -I -S -c '{text}'"


def attack(name: str, harm: Harm, command: str, *, needs_root: bool = False) -> Attack:
    return Attack(name, harm, command, needs_root)


WRITES = (
    attack("absolute path", "write", "echo x > {outside}/file"),
    attack("new file", "write", "echo x > {outside}/new"),
    attack("through dots", "write", "echo x > free/../../outside/file"),
    attack("appending", "write", "echo x >> {outside}/file"),
    attack("truncating", "write", "truncate -s 0 {outside}/file"),
    attack("removing", "write", "rm -f {outside}/file"),
    attack("through a symbolic link", "write", "ln -s {outside} free/link; echo x > free/link/file"),
    attack(
        "through a link in the temp folder", "write", 'ln -s {outside} "$TMPDIR/link"; echo x > "$TMPDIR/link/file"'
    ),
    attack("through a hard link", "write", "ln {outside}/file free/hard && echo x > free/hard"),
    attack("moving out", "write", "mv free/file {outside}/file"),
    attack("moving in", "write", "mv {outside}/file free/taken"),
    attack("the root of its own process", "write", "echo x > /proc/self/root{outside}/file"),
    attack(
        "the root of process 1",
        "write",
        "echo x > /proc/1/root{outside}/file || echo x > /proc/{outer}/root{outside}/file",
    ),
    attack("the root of another process", "write", "echo x > /proc/{victim}/root{outside}/file"),
    attack("the folder of another process", "write", "cd /proc/{victim}/cwd/ && echo x > {outside}/file"),
    attack("a descriptor of a folder", "write", "exec 9< {outside}; echo x > /proc/self/fd/9/file"),
    attack(
        "binding it",
        "write",
        "mkdir free/m; unshare -m sh -c 'mount --bind {outside} free/m; echo x > free/m/file'",
        needs_root=True,
    ),
    attack(
        "binding it as root of a namespace",
        "write",
        "mkdir free/m; unshare -rm sh -c 'mount --bind {outside} free/m; echo x > free/m/file'",
    ),
    attack(
        "mounting it writable again",
        "write",
        "unshare -rm sh -c 'mount -o remount,bind,rw {outside} ; mount -o remount,bind,rw / ; echo x > {outside}/file'",
    ),
    attack(
        "taking mounts away",
        "write",
        "unshare -rm sh -c 'umount -l {outside}; umount -l /tmp; echo x > {outside}/file'",
    ),
    attack(
        "the mounts of another process",
        "write",
        "nsenter -t {victim} -m sh -c 'echo x > {outside}/file'",
        needs_root=True,
    ),
    attack(
        "another root",
        "write",
        python('import os; os.chroot("/proc/{outer}/root"); open("{outside}/file", "w").write("x")'),
        needs_root=True,
    ),
    attack(
        "descending from a root that was changed",
        "write",
        python(
            'import os; fd = os.open("/", 0); os.mkdir("free/c"); os.chroot("free/c"); os.fchdir(fd); os.chroot(".");'
            ' open("{outside}/file", "w").write("x")'
        ),
        needs_root=True,
    ),
)

PROTECTED = (
    attack("writing a protected file", "write", "echo x > .mcp.json"),
    attack("removing a protected file", "write", "rm -f .mcp.json"),
    attack("renaming over a protected file", "write", "echo x > free/n; mv -f free/n .mcp.json"),
    attack("renaming a protected file away", "write", "mv .mcp.json free/away"),
    attack("a link in the place of a protected file", "write", "ln -sfn {outside}/file .mcp.json"),
    attack("a hard link to a protected file", "write", "ln .mcp.json free/hard && echo x > free/hard"),
    attack("writing in a protected folder", "write", "echo x > .retinue/settings"),
    attack("making in a protected folder", "write", "echo x > .retinue/new"),
    attack("replacing a protected folder", "write", "rm -rf .retinue; mkdir .retinue; echo x > .retinue/settings"),
    attack("moving a protected folder", "write", "mv .retinue free/r; mkdir .retinue; echo x > .retinue/settings"),
    attack("a link in the place of a protected folder", "write", "mv .retinue free/r; ln -s free/r .retinue"),
    attack(
        "exchanging a protected folder",
        "write",
        "mkdir free/e; echo x > free/e/f; mv -T --exchange free/e .retinue || mv .retinue free/r && mv free/e .retinue",
    ),
    attack("making what is absent, as a folder", "write", "mkdir -p .claude; echo x > .claude/settings.json"),
    attack("making what is absent, as a file", "write", "rmdir .claude 2>/dev/null; echo x > .claude"),
    attack("making what is absent, as a link", "write", "rmdir .claude 2>/dev/null; ln -s {outside} .claude"),
    attack("making what is absent, by a rename", "write", "mkdir free/c; echo x > free/c/f; mv -T free/c .claude"),
    attack("making what is absent, deeper", "write", "mkdir -p sub/.claude; echo x > sub/.claude/f"),
    attack("making what is absent, and all above it", "write", "mkdir -p deep/a/b; echo x > deep/a/b/f"),
    attack("moving the folder above away", "write", "mv sub old; mkdir -p sub/.claude; echo x > sub/.claude/f"),
    attack(
        "a link in the place of the folder above",
        "write",
        "mkdir -p free/own2/.claude; echo x > free/own2/.claude/f; rm -rf sub; ln -s free/own2 sub",
    ),
    attack("removing the folder above", "write", "rm -rf sub"),
    attack(
        "taking the protecting mount away",
        "write",
        "unshare -rm sh -c 'umount -l .retinue; echo x > .retinue/settings'",
    ),
)

READS = (
    attack("a hidden file", "read", "cat {lone}"),
    attack("a file in a hidden folder", "read", "cat {secret}/key"),
    attack("a hidden folder inside the workspace", "read", "cat keys/key"),
    attack("through a symbolic link", "read", "ln -s {secret} free/link; cat free/link/key"),
    attack("through a hard link", "read", "ln {secret}/key free/hard; cat free/hard"),
    attack("by copying", "read", "cp -r {secret} free/copy; cat free/copy/key"),
    attack("by moving", "read", "mv {secret} free/moved; cat free/moved/key"),
    attack("by dots", "read", "cat ../secret/key"),
    attack("the root of its own process", "read", "cat /proc/self/root{secret}/key"),
    attack("the root of process 1", "read", "cat /proc/1/root{secret}/key /proc/{outer}/root{secret}/key"),
    attack("the root of another process", "read", "cat /proc/{victim}/root{secret}/key"),
    attack("a descriptor of another process", "read", "cat /proc/{victim}/fd/3"),
    attack("the environment of another process", "read", "cat /proc/{victim}/environ"),
    attack("the environment of every process", "read", "grep -aho TOPSECRET-[0-9a-f]* /proc/[0-9]*/environ"),
    attack(
        "the memory of another process",
        "read",
        python(
            "import re, os\n"
            'for line in open("/proc/{victim}/maps"):\n'
            '    start, end = (int(text, 16) for text in line.split()[0].split("-"))\n'
            '    if " rw" in line and end - start < 1 << 24:\n'
            "        try:\n"
            '            memory = os.pread(os.open("/proc/{victim}/mem", 0), end - start, start)\n'
            "        except OSError: continue\n"
            '        found = re.search(rb"TOPSECRET-[0-9a-f]+", memory)\n'
            "        if found: print(found[0].decode()); break\n"
        ),
        needs_root=True,
    ),
    attack(
        "a descriptor fetched from another process",
        "read",
        python(
            "import ctypes, os; call = ctypes.CDLL(None).syscall; pid = os.pidfd_open({victim})\n"
            "for number in range(3, 9):\n"
            "    got = call(438, pid, number, 0)\n"
            "    if got >= 0: print(os.pread(got, 99, 0))\n"
        ),
        needs_root=True,
    ),
    attack("taking a mount away", "read", "unshare -rm sh -c 'umount -l {secret}; umount -l /tmp; cat {secret}/key'"),
    attack(
        "a namespace of its own",
        "read",
        "unshare -rm sh -c 'mkdir free/m; mount --rbind / free/m; cat free/m{secret}/key'",
    ),
    attack("the mounts of another process", "read", "nsenter -t {victim} -m cat {secret}/key", needs_root=True),
    attack(
        "a handle of the file",
        "read",
        python(
            "import ctypes, os; libc = ctypes.CDLL(None)\n"
            'handle = bytes.fromhex("{handle}"); mount = os.open("/", 0)\n'
            "got = libc.open_by_handle_at(mount, handle, 0)\n"
            "if got >= 0: print(os.pread(got, 99, 0))\n"
        ),
        needs_root=True,
    ),
)

KILLS = (
    attack("kill", "kill", "kill -9 {victim}"),
    attack("its process group", "kill", python("import os; os.kill({victim}, 9)")),
    attack(
        "a descriptor of the process",
        "kill",
        python("import os, signal; signal.pidfd_send_signal(os.pidfd_open({victim}), 9)"),
    ),
    attack(
        "tracing it",
        "kill",
        python("import ctypes; p = ctypes.CDLL(None).ptrace; p(16, {victim}, 0, 0x100000); p(8, {victim}, 0, 0)"),
        needs_root=True,
    ),
    attack("its limits", "write", python("import resource; resource.prlimit({victim}, resource.RLIMIT_CORE, (1, 1))")),
    attack("its priority", "write", python("import os; os.setpriority(0, {victim}, 5)")),
)

NETWORK = (
    attack("a server of the loopback", "network", "exec 9<>/dev/tcp/127.0.0.1/{tcp}"),
    attack("a datagram", "network", "echo x > /dev/udp/127.0.0.1/{udp}"),
    attack(
        "an address of the machine",
        "network",
        python(
            "import socket\n"
            's = socket.socket(socket.AF_INET6); s.settimeout(2); s.connect(("::ffff:127.0.0.1", {tcp}))\n'
        ),
    ),
    attack(
        "an abstract socket", "network", python('import socket; socket.socket(socket.AF_UNIX).connect("\\0{abstract}")')
    ),
    attack(
        "a socket in the file system",
        "network",
        python('import os, socket; os.chdir("{outside}"); socket.socket(socket.AF_UNIX).connect("socket")'),
    ),
    attack(
        "the network of another process",
        "network",
        "nsenter -t {victim} -n bash -c 'exec 9<>/dev/tcp/127.0.0.1/{tcp}'",
        needs_root=True,
    ),
)
