"""A tree to work in with much that tempts, and a box of namespaces in which a traced shell runs commands in it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from retinue.tools.shell.analysis.model import Shell
from retinue.tools.shell.environment import GitIdentity, tool_environment
from support.shell_fuzz.vocabulary import listed

TRACED = (
    "execve,execveat,open,openat,openat2,creat,chdir,fchdir,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,"
    "mkdirat,mknod,mknodat,link,linkat,symlink,symlinkat,truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,lchown,"
    "fchownat,utime,utimes,utimensat,setxattr,lsetxattr,fsetxattr,removexattr,mount,connect,sendto,bind,memfd_create"
)
LIMIT_S = 4
SHELLS: Mapping[Shell, tuple[str, ...]] = {"bash": ("bash", "--norc", "-c", "--"), "zsh": ("zsh", "-f", "-c", "--")}
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib32", "lib64")
_ETC = listed(
    "ld.so.cache alternatives nsswitch.conf localtime timezone magic magic.mime locale.alias services protocols group "
    "os-release debian_version lsb-release host.conf networks terminfo"
)
_DRIVER = """\
n=0
while IFS= read -r -d '' -u 9 fuzzed; do
  timeout -s KILL {limit} strace -f --seccomp-bpf -y -xx -s 4096 -e trace={traced} -e signal=none \\
    -o {out}/$n.trace {shell} "$fuzzed" </dev/null >/dev/null 2>&1
  echo $? >{out}/$n.status
  n=$((n+1))
done 9<{commands}
"""
_WORDS_DRIVER = """\
n=0
while IFS= read -r -d '' -u 9 fuzzed; do
  for answer in 0 1; do
    export ANSWER=$answer NOTES={out}/$n.$answer
    BASH_ENV={notes} timeout -s KILL {limit} bash --norc -f -c -- "$fuzzed" </dev/null >/dev/null 2>&1
  done
  n=$((n+1))
done 9<{commands}
"""
_NOTES = """\
command_not_found_handle() { enable printf return; printf '%s\\0' "$#" "$@" >"$NOTES.$BASHPID"; return "$ANSWER"; }
PATH=/nonexistent
enable -n $(compgen -b | while read -r name; do [ "$name" = enable ] || printf '%s ' "$name"; done)
"""
"""Bash without programs and builtins but one: each call is noted by a process of its own, in a file of its own, since
those of a pipeline write at the same time."""


@dataclass(frozen=True, slots=True)
class Traced:
    """What one command did: lines of its trace, and its exit code."""

    lines: tuple[str, ...]
    status: int


@dataclass(frozen=True, slots=True)
class Scene:
    """`root` holds a home with a project, and beside the project what no command may read."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home" / "dev"

    @property
    def project(self) -> Path:
        return self.home / "proj"

    @property
    def git_config(self) -> Path:
        return self.root / "gitconfig"

    @property
    def environment(self) -> dict[str, str]:
        """What the tool would give its commands."""
        return tool_environment(
            {},
            home=self.home,
            tmp=self.root / "tmp",
            identity=GitIdentity("Dev", "dev@example.org"),
            spec_env={},
            git_config=self.git_config,
            git_ceilings=(self.home,),
        )

    def state(self) -> dict[str, str]:
        """Of all that lies in the scene: rights, times, contents."""
        places = (path for folder, names, files in os.walk(self.root) for path in _in(folder, names, files))
        return {path: _state(path) for path in places if path != str(self.root / "tmp")}

    def trace(self, commands: Sequence[str], shell: Shell = "bash") -> list[Traced]:
        """Runs each command on its own, one after the other, all in one box."""
        driver = partial(_DRIVER.format, limit=LIMIT_S, traced=TRACED, shell=" ".join(SHELLS[shell]))
        with self._box(commands, driver) as out:
            return [_traced(out, n) for n in range(len(commands))]

    def words(self, commands: Sequence[str]) -> list[set[tuple[str, ...]]]:
        """What bash would have called: it finds no program, notes the words, and goes on with success or failure."""
        notes = self.root / "notes.sh"
        notes.write_text(_NOTES)
        driver = partial(_WORDS_DRIVER.format, limit=LIMIT_S, notes=notes)
        with self._box(commands, driver) as out:
            return [set(filter(None, map(_noted, out.glob(f"{n}.[01].*")))) for n in range(len(commands))]

    @contextmanager
    def _box(self, commands: Sequence[str], driver: Callable[..., str]) -> Generator[Path]:
        with tempfile.TemporaryDirectory(prefix="rt-trace-") as folder:
            out = Path(folder)
            listed = out / "commands"
            listed.write_bytes(b"".join(command.encode("utf-8", "surrogateescape") + b"\0" for command in commands))
            (out / "driver.sh").write_text(driver(out=out, commands=listed))
            done = subprocess.run(
                [*self._walls(out), "/bin/bash", "--norc", str(out / "driver.sh")],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60 + 2 * LIMIT_S * len(commands),
                check=False,
            )
            if done.returncode != 0:
                raise AssertionError(f"the box did not work: {done.stderr.decode(errors='replace')[-2000:]}")
            yield out

    def _walls(self, out: Path) -> list[str]:
        walls = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "1000"]
        walls += ["--gid", "1000", "--tmpfs", "/"]
        for name in _SYSTEM:
            path = Path("/") / name
            if path.is_symlink():
                walls += ["--symlink", os.readlink(path), str(path)]
            elif path.exists():
                walls += ["--ro-bind", str(path), str(path)]
        for name in _ETC:
            walls += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
        walls += ["--ro-bind", str(self.root / "passwd"), "/etc/passwd"]
        for name in ("hosts", "canary", "shadow"):
            walls += ["--ro-bind", str(self.root / "canary"), f"/etc/{name}"]
        walls += ["--ro-bind", str(self.root / "canary"), "/srv/canary", "--proc", "/proc", "--dev", "/dev"]
        walls += ["--tmpfs", "/tmp", "--bind", str(self.root), str(self.root), "--bind", str(out), str(out)]
        return [*walls, "--chdir", str(self.project)]


def _in(folder: str, names: list[str], files: list[str]) -> Iterator[str]:
    yield folder
    yield from (os.path.join(folder, name) for name in (*files, *(n for n in names if os.path.islink(f"{folder}/{n}"))))


def _state(path: str) -> str:
    facts = os.lstat(path)
    content = hashlib.sha256(Path(path).read_bytes()).hexdigest() if stat.S_ISREG(facts.st_mode) else ""
    return f"{facts.st_mode} {facts.st_size} {facts.st_mtime_ns} {content}"


def _traced(out: Path, number: int) -> Traced:
    lines = (out / f"{number}.trace").read_text(errors="replace").splitlines()
    if not any("execve(" in line for line in lines):
        raise AssertionError("the shell was not traced")
    return Traced(tuple(lines), int((out / f"{number}.status").read_text()))


def _noted(note: Path) -> tuple[str, ...]:
    """The words of one call; none of a note whose writer was killed."""
    count, *words = note.read_bytes().decode("utf-8", "surrogateescape").split("\0")
    return tuple(words[:-1]) if count.isdigit() and len(words) == int(count) + 1 else ()


@contextmanager
def fresh_scene() -> Generator[Scene]:
    """A scene with a short path, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="rt-", ignore_cleanup_errors=True) as folder:
        scene = Scene(Path(folder).resolve())
        furnish(scene)
        yield scene


def furnish(scene: Scene) -> None:
    """Makes everything anew."""
    for child in scene.root.iterdir():
        shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    (scene.root / "canary").write_text("outside\n")
    (scene.root / "gitconfig").write_text("[diff]\n\tautoRefreshIndex = false\n")
    (scene.root / "passwd").write_text(f"root:x:0:0::/root:/bin/sh\ndev:x:1000:1000::{scene.home}:/bin/bash\n")
    (scene.root / "tmp").mkdir()
    project = scene.project
    for folder in ("src/deep", "docs", "odd", "odd/x /etc", "left", "right"):
        (project / folder).mkdir(parents=True)
    for name, text in _FILES.items():
        (project / name).write_text(text)
    for name in (
        "-n",
        "-delete",
        "--help",
        "-o",
        "weird;touch pwned",
        "$(touch pwned)",
        "x\ny",
        "a b",
        "--pre=x",
        "-f",
    ):
        (project / "odd" / name).write_text("x\n")
    (project / "odd" / "--files0-from=list").write_text("../../other/secret.txt\0")
    (project / "odd" / "list").write_text("../../other/secret.txt\0")
    (project / "odd" / "@list").write_text("x\n")
    (project / "@opts").write_text("x\n")
    (project / "opts").write_text("../other/secret.txt\n")
    (project / "odd" / "x " / "etc" / "hosts").write_text("x\n")
    for name in ("pwned", "git", "ls", "cat"):
        program = project / "bin" / name if name != "pwned" else project / "runs"
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n: > pwned-by-program\n")
        program.chmod(0o755)
    shutil.copy("/usr/bin/true", project / "prog.o")
    _pack(project)
    for name, text in (("other/secret.txt", "s"), (".ssh/id_rsa", "k"), (".bashrc", ""), (".netrc", "n")):
        (scene.home / name).parent.mkdir(exist_ok=True)
        (scene.home / name).write_text(f"{text}\n")
    links = {"ext": "/etc", "key": "../.ssh/id_rsa", "out.log": "../.bashrc", "inner": "src", "src/up": "../.."}
    links |= {"+l": "../.bashrc", "left/f": "../../other/secret.txt"}
    for name, target in links.items():
        (project / name).symlink_to(target)
    _commit(scene)


_FILES = {
    "a.txt": "x foo\ny bar\na b\n\nx foo\n",
    "b.txt": "x foo\nz\n",
    "c.md": "# c\n\ntext it's\n",
    "data.json": '{"a": 1, "b": [1, "x", {"env": "e"}]}\n',
    "nums.txt": "3\n1\n2\n",
    "names.csv": "a.txt,b.txt\n",
    "empty.txt": "",
    "two words.txt": "two\n",
    "src/main.py": "def main():\n    return 'x'\n",
    "src/util.py": "def util():\n    pass\n",
    "src/deep/x.txt": "x deep\n",
    "docs/readme.md": "# docs\n",
    "right/f": "x\n",
}


_SIGNATURE = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----"


def _pack(project: Path) -> None:
    with tarfile.open(project / "old.tar", "w") as archive:
        archive.add(project / "a.txt", "a.txt")
    with tarfile.open(project / "old.tgz", "w:gz") as archive:
        archive.add(project / "a.txt", "a.txt")
    with zipfile.ZipFile(project / "old.zip", "w") as archive:
        archive.write(project / "a.txt", "a.txt")
    shutil.copy(project / "old.tgz", project / "text.gz")


def _commit(scene: Scene) -> None:
    """Two commits, one of them signed; a tag; a changed file; and a repository that nobody should fall into."""

    def git(*words: str, given: str = "") -> str:
        called = ["git", *words]
        done = subprocess.run(
            called, cwd=scene.project, env=scene.environment, check=True, input=given, capture_output=True, text=True
        )
        return done.stdout

    git("init", "-q", "-b", "main")
    git("add", "a.txt", "src/main.py")
    git("commit", "-q", "-m", "first")
    git("tag", "v1")
    (scene.project / "a.txt").write_text(_FILES["a.txt"] + "more\n")
    git("add", "a.txt", "docs")
    git("commit", "-q", "-m", "second")
    head, message = git("cat-file", "commit", "HEAD").split("\n\n", 1)
    signed = git("hash-object", "-t", "commit", "-w", "--stdin", given=f"{head}\n{_SIGNATURE}\n\n{message}")
    git("update-ref", "HEAD", signed.strip())
    git("init", "-q", "--bare", "bare")
    (scene.project / "bare" / "config").write_text(
        '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = "touch pwned"\n'
    )
    (scene.project / "a.txt").write_text(_FILES["a.txt"] + "changed\n")
