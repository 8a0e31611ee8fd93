"""Words as bash resolves them."""

from __future__ import annotations

import pytest

from retinue.tools.shell.analysis.model import Trait
from retinue.tools.shell.analysis.quoting import ansi, resolve, variants


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("ls", "ls"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a'b'\"c\"", "abc"),
        ("r\\m", "rm"),
        ("'it'\\''s'", "it's"),
        ('"a\\"b"', 'a"b'),
        ('"a\\nb"', "a\\nb"),
        ("'a\\nb'", "a\\nb"),
        ("''", ""),
        ("a\\ b", "a b"),
        ("a\\\nb", "ab"),
        ("$'\\x72m'", "rm"),
        ("$'a\\tb'", "a\tb"),
        ("$'\\162m'", "rm"),
        ("$'\\u0072m'", "rm"),
        ("$'it\\'s'", "it's"),
        ('"$HOME"', "$HOME"),
        ("*.py", "*.py"),
    ],
)
def test_a_word_is_what_bash_would_pass_on(raw: str, value: str) -> None:
    assert resolve(raw).value == value


@pytest.mark.parametrize(
    ("raw", "traits"),
    [
        ("ls", 0),
        ("a=b", 0),
        ("'*'", Trait.QUOTED),
        ("*", Trait.GLOB),
        ("a?", Trait.GLOB),
        ("[ab]", Trait.GLOB),
        ("[", 0),
        ("{a,b}", Trait.BRACE),
        ("{}", 0),
        ("HEAD@{1}", 0),
        ("~/x", Trait.TILDE),
        ("a~", 0),
        ("'~'", Trait.QUOTED),
        ("=x", Trait.EQUALS),
        ("$x", Trait.EXPANSION),
        ("'$x'", Trait.QUOTED),
        ("\\$x", Trait.ESCAPED),
        ('"\\$x"', Trait.QUOTED),
        ('"$x"', Trait.QUOTED | Trait.EXPANSION),
        ("$'x'", Trait.QUOTED | Trait.ANSI),
    ],
)
def test_what_else_stands_in_a_word_is_told(raw: str, traits: int) -> None:
    assert resolve(raw).traits == traits


@pytest.mark.parametrize("raw", ["$(x)", '"$(x)"', "a`x`", "<(x)", '"a`x`"'])
def test_a_command_inside_a_word_is_told(raw: str) -> None:
    word = resolve(raw)
    assert not word.literal
    assert word.traits & (Trait.SUBSTITUTION | Trait.EXPANSION)


@pytest.mark.parametrize("text", ["\\x", "\\U7fffffff", "\\u", "\\c", "\\777", "\\", "\\q"])
def test_odd_escapes_never_raise(text: str) -> None:
    assert isinstance(ansi(text), str)


def test_the_three_variants_of_a_text() -> None:
    seen = variants("a 'b' \"c\" d\\'e")
    assert seen.with_double == 'a  "c" d\\\'e'
    assert seen.unquoted == "a   d\\'e"
    assert seen.keep_quotes == "a '' \"\" d\\'e"
