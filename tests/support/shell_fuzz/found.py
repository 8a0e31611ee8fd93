"""What fuzzing has found so far: commands that were called read-only and were more. Every run tries them again."""

from __future__ import annotations

COUNTEREXAMPLES = (
    # a glob finds a link that leads out, or looks into a directory behind one
    "cat *",
    "sum [^a]*",
    "head k''*",
    "diff -r */*.py k*",
    "wc -l e*/hosts",
    "seq 1 */*.py",
    "true **/*.py",
    "echo ../*",
    "cd e* && cat hosts",
    # a name that a glob finds is taken for a flag, and that names a file with names of others
    "cd odd && wc *",
    "cd odd && du *",
    # names for xargs that are links, fall apart at a blank, or are lines of a file
    "find . | xargs grep -l main",
    "find -type f | xargs wc -l",
    "find . -print0 | xargs -0 cat",
    "grep -h . names.csv | xargs cat",
    "ls | xargs cat",
    "git ls-files -z | xargs -0 cat",
    # links followed on the way down
    "grep -R x .",
    "fgrep -R 'a > pwned' src",
    "egrep -rR x .",
    "ls -LR .",
    "diff -rN src docs",
    # a first argument that is no file, and that a glob makes several
    "rg ./*",
    "grep k* a.txt",
    # what zsh expands behind empty quotes
    "df ''~",
    # one letter in a word, and a second file, which is written
    "xxd -po old.zip x",
    # files of arguments
    "strings @opts",
    # formats for which git runs another program
    "git log -1 --format=%G?",
    "git rev-list --format=%GS HEAD",
    # names of machines that are looked up
    "ss dst example.org",
    "ss -r",
    "lsof -i @example.org",
    # a glob looks into a directory behind a link that an earlier part of it finds
    "fmt */*./",
    "echo */*/none",
    # the value of a flag that a glob makes several: the flag takes one, the others are arguments
    "grep -m 1* x ../other/secret.txt",
    "git branch --sort k*",
    "nl -b k*",
    # flags of xargs that begin like a known one, and reach a file or a terminal
    "find -type f -print0 | xargs -0a names.csv grep -h",
    "find -type f -print0 | xargs -0p grep -h",
    # a flag behind the program is the program's, not that of `command`, which runs it
    "command -p fgrep -v x",
    "command -p rm -v a.txt",
    # zsh takes for a word what bash takes for a descriptor; bash sets a variable
    "fmt 63>&1",
    "echo {PATH}>/dev/null; ls",
    # words that some programs take for a version, and others for a file to make or to run
    "arch | sqlite3 version",
    "ruby version",
    "java version",
    "ffmpeg version",
    # names of machines and of encodings that are looked up
    "netstat -6r",
    "netstat --route",
    "iconv -f/",
    "iconv -fsrc/up",
    "iconv --to-code=/etc/canary a.txt",
)
