"""The parser and the lexer: what both read alike is simple, what they read differently is never approved."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis import tree
from retinue.tools.shell.analysis.analyse import analyse
from retinue.tools.shell.analysis.lexer import lex
from retinue.tools.shell.analysis.model import MAX_CHARS, Redirect, Request
from retinue.tools.shell.analysis.reading import read

SIMPLE = (
    "ls -la",
    "ls | head -5 && pwd; id",
    "ls 2>/dev/null >&2",
    "2>/dev/null ls",
    "ls 2>/dev/null -l",
    "X=1 Y='a b' ls",
    "! grep -q x a",
    "[ -f a ] && ls",
    "cat <<'E'\n$(x)\nE",
    "cat <<E\nplain\nE\nls",
    "cat <<-E\n\tplain\n\tE",
    "kubectl apply -f - <<E\nx: 1\nE",
    "cat <<< x",
    "ls # it is\npwd",
    "ls \\\n  -l",
    "ls &&\n  pwd",
    'echo "$HOME" $x',
    "ls a#b",
    "export X=1",
    "ls &",
    "ls é '説明'",
)

COMPLEX = (
    "for i in a b; do ls $i; done",
    "if ls; then pwd; fi",
    "while :; do ls; done",
    "case a in a) ls;; esac",
    "(ls)",
    "{ ls; }",
    "ls $(pwd)",
    'ls "$(pwd)"',
    "ls `pwd`",
    "f() { ls; }",
    "diff <(ls) a",
    "cat <<E\n$(x)\nE",
)

BROKEN = (
    "ls 'a",
    "ls &&",
    "if ls; then",
    "echo a\rb",
    "echo x ==\nrm y",
    "ls =~\nrm y",
    "export $\nrm y",
    "ls \x0b#;rm y",
    "ls \\ #;rm y",
    "cat <<A <<B\nA\nB",
    "ls <> x",
    "",
    " \n ",
    "# a note",
    "x" * (MAX_CHARS + 1),
)


@pytest.mark.parametrize("command", SIMPLE)
def test_both_read_a_simple_text_alike(command: str) -> None:
    assert read(command).status == "simple"
    assert lex(command) == tree.simple_parts(tree.parse(command))


@pytest.mark.parametrize("command", COMPLEX)
def test_what_is_more_than_a_list_is_complex(command: str) -> None:
    assert read(command).status == "complex"
    assert analyse(Request(command, "/t", "/h")).outcome == "ask"


@pytest.mark.parametrize("command", BROKEN)
def test_what_can_be_read_in_two_ways_or_none_is_broken(command: str) -> None:
    assert read(command).status == "broken"
    assert analyse(Request(command, "/t", "/h")).outcome == "ask"


def test_words_behind_a_redirect_are_arguments() -> None:
    (part,) = read("find . 2>/dev/null -delete").parts
    assert [word.value for word in part.words] == ["find", ".", "-delete"]
    assert part.raw.redirects == (Redirect("2", ">", "/dev/null"),)


def test_a_text_is_taken_apart_as_bash_would() -> None:
    parts = read("A=1 l\"s\" 'a b' | grep -v x; ! id").parts
    assert [(part.raw.connector, part.raw.negated, [word.value for word in part.words]) for part in parts] == [
        ("", False, ["ls", "a b"]),
        ("|", False, ["grep", "-v", "x"]),
        (";", True, ["id"]),
    ]
    assert [word.value for word in parts[0].assignments] == ["A=1"]


def test_commands_inside_other_commands_are_surveyed() -> None:
    programs = {part.program for part in read('a "$(b `c`)" <(d); if e; then f; else (g); fi; h() { i; }').parts}
    assert programs >= set("abcdefgi")


def test_the_parser_is_stopped_at_its_deadline() -> None:
    with pytest.raises(tree.TooLong):
        tree.parse("${" * 5_000, deadline_ms=0.0)


def test_without_a_parser_nothing_is_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_text: str) -> tree.Tree:
        raise ImportError("tree_sitter")

    monkeypatch.setattr(tree, "parse", missing)
    assert analyse(Request("ls", "/t", "/h")).outcome == "ask"
    assert analyse(Request("ls; rm -rf /", "/t", "/h")).outcome == "hard-stop"


def test_a_node_of_an_unknown_kind_is_never_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_KNOWN", frozenset({"program"}))
    assert read("(ls)").status == "broken"
