"""Ways by which a command looked as if it only read, each with what is like it and does only read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.model import Request, Shell
from retinue.tools.shell.disk import Disk


def outcome(command: str, shell: Shell = "bash") -> str:
    return analyse(Request(command, "/srv/tree", "/home/me", shell)).outcome


@pytest.mark.parametrize(
    "script",
    [
        "/[/p;s,hi]/e touch x #,x,",
        "/[/p;s,]/w x,x,",
        "s/[^]/a/;s,]/b/w x,x,",
        "s/[[:alpha:]/a/;s,]/b/w x,x,",
        "s/[]/a/;s,]/b/w x,x,",
        "s/[a[.].]/b/;p]/c/",
        "s/[\\]/a/;s,]/b/w x,x,",
        "s/[\\\\\\]/a/;s,]/b/w x,x,",
        "s/[\\c]/a/;s,]/b/w x,x,",
        "s/a[/b]/c/",
        "/[/]/p",
        "1,/[^]/p;s,]/w x,x,",
        "y/[/]/",
    ],
)
def test_a_sed_script_whose_brackets_seds_end_differently_is_asked_about(script: str) -> None:
    assert outcome(f"sed '{script}' a.txt") == "ask"


@pytest.mark.parametrize(
    "script",
    ["s/[[:space:]]*$//", "/[0-9]/p", "s/[^a-z]//g", "s/[ \\t]*//", "/^[[:alpha:]_]/p", "s/[\\.]/x/", "s/\\[x\\]/y/"],
)
def test_a_sed_script_with_brackets_that_end_in_one_way_is_not(script: str) -> None:
    assert outcome(f"sed -n '{script}' a.txt") == "read-only"


@pytest.mark.parametrize(
    "command",
    [
        # a flag whose value is absent or attached to git, and the next word to a table that errs
        "git diff -U --output=x",
        "git diff --unified --output=x",
        "git log --min-parents --output=x",
        "git log --max-parents --output=x",
        "git log -M --output=x",
        "git log -C --output=x",
        "git log --format --output=x",
        "git diff -L --output=x",
        "git diff --decorate-refs --output=x",
        "git blame --abbrev --output=x a",
        "git branch --merged --sort -D main",
        "git reflog -S delete HEAD@{0}",
        "rg --engine --pre=./x foo",
        "ag -A --pager=./x foo",
        "ag --after --pager=./x foo",
        "ag -g x /etc",
        "nm -U -X --plugin x",
        "lsof -s -D b",
        "ls --color --foo",
        # programs for which flags end at the first other word
        "unzip a.zip -v x",
        "unzip a.zip x -v",
        "unzip -l a.zip -d x",
        "unzip -ol a.zip",
        "unzip -l '*'",
        "zipinfo \\*",
        "zipinfo -1 'a[b].zip'",
        "zipinfo a.zip -1",
        "xxd a.txt -p",
        "xxd -po a.txt x",
        "xxd -ao a.txt x",
        "xxd -p a.txt -u",
        "git config user.name --get",
        "git config core.fsmonitor ./x --get",
        "git config core.pager --list",
        "git stash -p list",
        "git worktree -v add",
        "git reflog -n expire --all",
        # letters in one word that take their values from later ones
        "tree -Po x y",
        "tree -Io x y",
        "tree -Lo 2 y",
        "tree -LP 2 x",
        "tree -L2o x",
        "tree --sort -P -o x",
        "tree --filelimit -o x",
        # a glob that finds more words than one
        "git config a.*",
        "git symbolic-ref H*",
        "printf *",
        "printf -* PATH x",
        "test *",
        "[ -f * ]",
        "cd s* && ls",
        # what zsh expands behind empty quotes
        "df ''~",
        "cat ''~/x",
        "cat \"\"''~",
        "ls ''=ls",
        # arguments from a file
        "nm @opts",
        "strings @opts",
        "strings *",
        "readelf -a '@opts'",
        "objdump -d @opts",
        "size @opts",
        "nm -X @opts a.o",
        # names of files that are flags
        "rg --files -0 | xargs -0 tree",
        "rg --files -0 | xargs -0 diff3",
        "rg --files -0 | xargs -0 strings",
        "rg --files -0 | xargs -0 grep x",
        "rg --files -0 -- '-x' | xargs -0 wc",
        "rg --files -0 @x | xargs -0 wc",
        "grep -rlZ x | xargs -0 wc",
        "find @x -type f -print0 | xargs -0 wc",
        "find src +x -type f -print0 | xargs -0 tail",
        "ls | xargs which",
        "ls | xargs getconf",
        # programs that a file of the folder chooses (rust-toolchain.toml, go.mod, global.json ...). Some lists of cases
        # call `cargo --version` harmless; where rustup stands behind it, it fetches and runs what the folder names
        "cargo --version",
        "cargo -V",
        "rustc -V",
        "rustup --version",
        "go version",
        "terraform version",
        "dotnet --version",
        "poetry --version",
        # files that the value of a flag names, or the file itself
        "git blame -S /etc/passwd README.md",
        "git ls-files -o --exclude-per-directory=../x",
        "objdump -S a.o",
        "objdump --source a.o",
        "git show --remerge-diff",
        # where a command runs
        "! cd missing && cat ../x",
        "timeout 5 cd src && cat ../x",
        "nice cd src && cat ../x",
        "nohup cd src && cat ../x",
        "cd src && cat ../../x",
        "cd +1 && ls",
        "diff -r a b",
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_only_looks_like_reading_is_asked_about(command: str, shell: Shell) -> None:
    assert outcome(command, shell) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "git diff -U5 HEAD",
        "git diff --unified=5",
        "git diff -U HEAD",
        "git log --min-parents=2",
        "git log -M -C --stat",
        "git diff -M90% HEAD",
        "git log -L 1,5:a.txt",
        "git branch --merged",
        "git branch --merged main",
        "git blame --abbrev=8 a.txt",
        "rg --engine=auto x",
        "ag -A 3 x src",
        "ls --color -l",
        "git config --get user.name",
        "git stash show -p",
        "unzip -l a.zip",
        "unzip -l a.zip 'src/*.py'",
        "unzip -Z1 a.zip",
        "zipinfo -1 a.zip",
        "zipinfo a.zip 'src/*.py'",
        "xxd -p -l 16 a.txt",
        "xxd -c8 -ps a.txt",
        "tree -a -L 2 src",
        "tree -aL 2 src",
        "tree -I 'node_modules|dist' --filelimit=50",
        "nm -C a.o",
        "strings ./@opts",
        "rg --files -0 src | xargs -0 wc -l",
        "rg --files -0 | xargs -0 wc -l --",
        "rg -l0 x | xargs -0 grep y --",
        "cd src && cat ../x",
        "time cd src && ls",
        "tail -n +3 a.txt",
        "printf '%d %5.2f\\n' 3 4",
        "printf '%-10s|%s%%\\n' PATH=0 x",
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_only_reads_is_not_asked_about(command: str, shell: Shell) -> None:
    assert outcome(command, shell) == "read-only"


@pytest.mark.parametrize(
    "command",
    [
        "printf %d PATH=0; ls",
        "printf '%ld' PATH=0",
        "printf '%ld' 'a[$(touch x)]'",
        "printf '%hhx' y",
        "printf '%1$d' y",
        "printf '%*s' y z",
        "printf '%.*s' y z",
        "printf '%s %jd' a b",
        "printf '%c%f' a b",
        "printf '%ln' x",
        "printf '%s' x; printf %d 1+1",
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_printf_calculates_nothing_but_literal_numbers(command: str, shell: Shell) -> None:
    assert outcome(command, shell) == "ask"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A workspace with links that lead out of it, and folders to compare."""
    root = tmp_path / "home" / "proj"
    for folder in ("outside/sub", "home/proj/a", "home/proj/b", "home/proj/src/deep", "home/proj/empty"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("outside/secret", "home/proj/README.md", "home/proj/b/f", "home/proj/src/x"):
        (tmp_path / name).write_text("x\n")
    links = {"ext": "../../outside/sub", "+l": "../../outside/secret", "a/f": "../../../outside/secret"}
    for name, target in {**links, "inner": "src/deep"}.items():
        os.symlink(target, root / name)
    return root


def judged(root: Path, command: str, folder: str = "") -> str:
    disk = Disk(root)
    request = Request(
        command,
        str(root / folder),
        str(root.parent),
        real=disk.real,
        expand=disk.expand,
        below=disk.below,
        ours=disk.ours,
        root=str(root),
    )
    return analyse(request).outcome


@pytest.mark.parametrize(
    "command",
    [
        "cat ext/../secret",
        "grep -r x ext/..",
        "ls ext/..",
        "find ext/.. -name x",
        "stat ./ext/../secret",
        "cat src/../ext/../secret",
        "cat ext/../s*",
        "cd -P ext/.. && cat secret",
        "cd ext/.. && cat secret",
        "tail -n 3 +l",
        "tail +l",
        "diff a b",
        "diff a README.md",
        "diff --from-file=a README.md",
        "diff ? b",
        "rg ./*",
        "grep [+]*",
        "grep e* README.md",
        "jq ./*",
        "git grep -n ext/*",
    ],
)
def test_a_link_is_followed_before_the_way_goes_up_again(tree: Path, command: str) -> None:
    assert judged(tree, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "cat src/../README.md",
        "cat inner/../x",
        "cd inner && cat ../x",
        "cd src/deep && cat ../x ../../README.md",
        "diff README.md src/x",
        "diff -r --no-dereference a b",
        "tail -n +3 README.md",
        "grep RE* README.md",
        "grep -rn x.* src",
    ],
)
def test_ways_up_that_stay_inside_are_free(tree: Path, command: str) -> None:
    assert judged(tree, command) == "read-only"


def test_each_place_of_a_list_that_fails_halfway_is_looked_at(tree: Path) -> None:
    assert judged(tree, "cd .. && cd missing || cat ../x", "src") == "ask"
    assert judged(tree, "cd deep && cd missing || cat ../x", "src") == "read-only"


@pytest.mark.parametrize(
    ("asked", "read"),
    [
        ("command -p rm -v a.txt", "command -v rm"),
        ("find -type f -print0 | xargs -0a names grep -h x", "find -type f -print0 | xargs -0 grep -h x --"),
        ("cat a.txt 63>&1", "cat a.txt 2>&1"),
        ("echo {PATH}>/dev/null; ls", "echo {PATH} >/dev/null; ls"),
        ("git branch --sort a*", "git branch --sort 'a*'"),
        ("grep -e x -m 1* a.txt", "grep -e x -m 1 a*"),
        ("sqlite3 version", "sqlite3 --version"),
        ("ruby version", "ruby -v"),
        ("java version", "java -version"),
        ("netstat -r", "netstat -rn"),
        ("iconv -f /etc/shadow a.txt", "iconv -f UTF-8 -t ASCII//TRANSLIT a.txt"),
    ],
)
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_looks_like_a_reader_and_is_none_is_asked_about(asked: str, read: str, shell: Shell) -> None:
    assert (outcome(asked, shell), outcome(read, shell)) == ("ask", "read-only")


def test_a_glob_that_looks_through_a_link_is_asked_about_whatever_it_finds(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "plain").mkdir(parents=True)
    disk = Disk(root)

    def judged(command: str) -> str:
        request = Request(command, str(root), str(tmp_path), real=disk.real, expand=disk.expand, below=disk.below)
        return analyse(request).outcome

    assert judged("echo */*.none/") == "read-only"
    (root / "way").symlink_to("/etc")
    assert judged("echo */*.none/") == "ask"
