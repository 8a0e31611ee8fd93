"""A published package's source, fetched by name when a test runs, and a git repository made of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

PACKAGE, VERSION = "more-itertools", "10.8.0"
"""Pure Python, and its tests are one class for each function: they need nothing installed and run one by one."""

GIT_ENV = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0"}
OUR_REFS = ("refs/heads/retinue/", "refs/retinue/")


def fetch_source(folder: Path) -> Path:
    """The unpacked source distribution."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted = ["--no-binary", ":all:", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"pip could not fetch {PACKAGE} {VERSION}:\n{done.stderr[-2000:]}"
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [source] = (entry for entry in folder.iterdir() if entry.is_dir())
    return source


def git(repo: Path, *args: str) -> str:
    """A git call of the test's own, on a repository of the test's own. Takes no lock that it can do without."""
    done = subprocess.run(
        ["git", "-C", str(repo), *args], env={**os.environ, **GIT_ENV}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
    return done.stdout


def make_repository(source: Path, repo: Path) -> None:
    """One commit of a person with all of the source; and a checkout in the middle of work of their own."""
    shutil.copytree(source, repo)
    with (repo / ".gitignore").open("a") as ignored:
        ignored.write("\n__pycache__/\n")
    git(repo, "init", "--quiet", "--initial-branch=main")
    git(repo, "config", "user.name", "Pat")
    git(repo, "config", "user.email", "pat@example.invalid")
    git(repo, "add", "--all")
    git(repo, "commit", "--quiet", "--message", "What is being worked on")
    git(repo, "branch", "elsewhere")
    for name, text in (("README.rst", "staged"), ("Makefile", "not staged"), ("notes.txt", "untracked")):
        with (repo / name).open("a") as file:
            file.write(f"\n# {text}\n")
    git(repo, "add", "README.rst")


@dataclass(frozen=True, slots=True)
class Checkout:
    """All of a person's repository that a run has to leave alone."""

    head: str
    refs: str
    files: dict[str, str]
    git_files: dict[str, str]

    @classmethod
    def of(cls, repo: Path) -> Checkout:
        """Bytes first: `git status` may write to the index."""
        files = {name: digest for name, digest in _digests(repo) if not name.startswith(".git/")}
        git_files = {name: digest for name, digest in _digests(repo / ".git") if not _is_ours(name)}
        refs = [line for line in git(repo, "for-each-ref").splitlines() if not _is_our_ref(line.split("\t")[1])]
        return cls(git(repo, "rev-parse", "HEAD"), "\n".join(refs), files, git_files)


def _digests(root: Path) -> list[tuple[str, str]]:
    return [
        (str(path.relative_to(root)), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(root.rglob("*"))
        if path.is_file()
    ]


def _is_ours(name: str) -> bool:
    """Objects, and our refs with their logs; every other file in `.git` belongs to the person."""
    return name.startswith("objects/") or _is_our_ref(name.removeprefix("logs/"))


def _is_our_ref(name: str) -> bool:
    return name.startswith(OUR_REFS)
