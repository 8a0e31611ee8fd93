"""Which flags take the next word for their value: what the table says, held against the programs of this machine.

A flag that the table believes to take a word, and that takes none, lets that word be a flag of its own: one that writes
or runs something. A flag that takes a word of which the table does not know shifts all that follows it.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request
from retinue.tools.shell.analysis.table import Entry, builtin_table
from support.shell_fuzz.vocabulary import listed

SEARCH_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TABLE = builtin_table()
WRITERS = [
    name.partition(" ")[2]
    for name, entry in TABLE.items()
    if name.startswith("git ") and {"--stat", "--numstat", "--summary"} & entry.flags.keys()
]
"""Commands of git that write what they find to a file if they are told."""
OBJECT = frozenset(("diff-tree", "diff-index", "rev-list"))
"""They do nothing without a commit."""
OTHERS = listed(
    "ls cat tac head tail nl wc stat file realpath readlink basename dirname du df cmp diff diff3 comm sort uniq cut "
    "paste join fold fmt pr expand unexpand column hexdump od strings nm size readelf base64 base32 b2sum cksum sum "
    "md5sum grep numfmt shuf date uname nproc id iconv objdump pgrep ss"
)
NO_SUCH = "--no-such-flag"
REFUSALS = ("unrecognized option", "unknown option", "invalid option")


class Folder:
    """Where programs are tried; what they do is seen by the file `seen`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = {"PATH": SEARCH_PATH, "HOME": str(root), "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1"}
        for who in ("AUTHOR", "COMMITTER"):
            self.environment |= {f"GIT_{who}_NAME": "dev", f"GIT_{who}_EMAIL": "dev@example.org"}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=20,
            check=False,
        )

    def does(self, *words: str) -> bool:
        """Whether the file is there afterwards; it is taken away again."""
        self.run(*words)
        made = (self.root / "seen").exists()
        (self.root / "seen").unlink(missing_ok=True)
        return made


@pytest.fixture
def repository(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.run("git", "init", "-q")
    for text in ("one\n", "two\n", "three\n"):
        (tmp_path / "a.txt").write_text(text)
        folder.run("git", "add", "a.txt")
        assert text == "three\n" or folder.run("git", "commit", "-q", "-m", text).returncode == 0
    return folder


def approved(words: Sequence[str]) -> bool:
    """Whether the analysis would let these words run unasked."""
    return analyse(Request(" ".join(words), "/srv/tree", "/home/me")).outcome == "read-only"


def hidden(entry: Entry, call: Sequence[str], harm: str, tail: Sequence[str] = ()) -> list[list[str]]:
    """The call with each of its flags before what it must not have, and before a flag that would take that for a value.

    The first is let through by a table that has the flag take a word which it does not take, the second the reverse.
    """
    flags = [flag if flag != "#" else "-3" for flag in entry.flags]
    takers = [flag for flag in flags if approved([*call, flag, harm, *tail])]
    return [
        [*call, flag, *between, harm, *tail] for flag in flags for between in ([], *([each] for each in takers[:2]))
    ]


@pytest.mark.parametrize("command", WRITERS)
def test_no_flag_of_git_hides_one_that_writes(repository: Folder, command: str) -> None:
    call = ["git", command, *(["list"] if command == "stash" else [])]
    tail = ["HEAD"] if command in OBJECT else []
    tried = hidden(TABLE[f"git {command}"], call, "--output=seen", tail)
    assert [words for words in tried if approved(words) and repository.does(*words)] == []


@pytest.mark.parametrize("command", sorted(set(WRITERS) - {"stash"}))
def test_git_writes_where_it_is_told_so_that_the_trial_means_something(repository: Folder, command: str) -> None:
    assert repository.does("git", command, "--output=seen", *(["HEAD"] if command in OBJECT else []))


@pytest.mark.parametrize("flag", ["--unified", "-U", "-M", "-C", "--format", "--decorate-refs", "--abbrev"])
def test_a_flag_of_git_that_was_wrong_once_is_asked_about(repository: Folder, flag: str) -> None:
    assert repository.does("git", "diff", flag, "--output=seen")
    assert not approved(["git", "diff", flag, "--output=seen"])


def test_no_flag_of_a_search_hides_one_that_runs_a_program(tmp_path: Path) -> None:
    if shutil.which("rg", path=SEARCH_PATH) is None:
        assert not approved(["rg", "--engine", "--pre=./run", "x"])
        return
    folder = Folder(tmp_path)
    (tmp_path / "a.txt").write_text("x\n")
    (tmp_path / "run").write_text("#!/bin/sh\n: > seen\n")
    (tmp_path / "run").chmod(0o755)
    assert folder.does("rg", "--pre=./run", "x", ".")
    tried = [words for tail in (["x", "."], ["."]) for words in hidden(TABLE["rg"], ["rg"], "--pre=./run", tail)]
    assert [words for words in tried if approved(words) and folder.does(*words)] == []


@pytest.mark.parametrize("program", OTHERS)
def test_a_flag_takes_a_word_exactly_when_the_table_says_so(tmp_path: Path, program: str) -> None:
    folder = Folder(tmp_path)
    found = shutil.which(program, path=SEARCH_PATH)
    assert not approved([program, NO_SUCH])
    if found is None or not _refuses(folder.run(found, NO_SUCH).stderr):
        return
    tried = hidden(TABLE[program], [program], NO_SUCH)
    assert [words for words in tried if approved(words) and _refuses(folder.run(*words).stderr)] == []


def _refuses(told: str) -> bool:
    return NO_SUCH in told and any(refusal in told for refusal in REFUSALS)


def test_a_word_behind_the_first_file_is_a_file_to_some(repository: Folder) -> None:
    """Flags end there; the table asks about them."""
    if shutil.which("xxd", path=SEARCH_PATH) is not None:
        repository.run("xxd", "a.txt", "-p")
        assert (repository.root / "-p").exists()
    repository.run("git", "config", "user.name", "--get")
    assert "name = --get" in (repository.root / ".git" / "config").read_text()
    assert not approved(["xxd", "a.txt", "-p"])
    assert not approved(["git", "config", "user.name", "--get"])
