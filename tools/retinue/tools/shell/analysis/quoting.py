"""Quoting as bash resolves it: one word at a time, and a whole text in three variants. Pure."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from retinue.tools.shell.analysis.model import Trait, Word

_PLAIN = re.compile(r"[A-Za-z0-9_./:,@%+-][A-Za-z0-9_./:=,@%+#^-]*\Z")
_BRACKETS = frozenset(("[", "]", "[[", "]]"))
_PIECE = re.compile(
    r"""'(?P<single>[^']*)'
      |"(?P<double>(?:[^"\\]++|\\[\s\S])*+)"
      |\$'(?P<ansi>(?:[^'\\]++|\\[\s\S])*+)'
      |\\(?P<escaped>[\s\S])
      |(?P<bare>[^'"\\$`]+)
      |(?P<dollar>[\s\S])""",
    re.VERBOSE,
)
_IN_DOUBLE = re.compile(r"\\([$`\"\\\n])")
_EXPANDS = re.compile(r"\$[A-Za-z_0-9{(\[@*#?$!-]|`")
_SUBSTITUTES = re.compile(r"\$\(|`|[<>=]\(")
_BRACE = re.compile(r"\{[^{}]*(?:,|\.\.)|\{[^}]*\{")
_ANSI = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c([\s\S])|([\s\S]))")
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}

_EXPANDS_FIRST = ("~", "=")
_SPAN = re.compile(r"""(?P<escaped>\\[\s\S])|(?P<single>'[^']*')|(?P<double>"(?:[^"\\]++|\\[\s\S])*+")""")


class Variants(NamedTuple):
    """A text without what is quoted: without single quotes only, without both, and with the quote characters left."""

    with_double: str
    unquoted: str
    keep_quotes: str


def resolve(raw: str) -> Word:
    """The word that bash makes of this text. Never raises; what cannot be resolved is told by the traits."""
    return _remembered(raw) if len(raw) <= _SHORT else _resolve(raw)


def _resolve(raw: str) -> Word:
    if _PLAIN.match(raw) or raw in _BRACKETS:
        return Word(raw, raw, 0)
    value: list[str] = []
    traits = 0
    empty = True
    for found in _PIECE.finditer(raw):
        text, piece_traits = _piece(found, first=empty)
        if value and empty and text[:1] in _EXPANDS_FIRST and found.lastgroup == "bare":
            piece_traits |= Trait.EQUALS  # behind empty quotes zsh expands it, and bash does not
        value.append(text)
        empty = empty and not text
        traits |= piece_traits
    if _SUBSTITUTES.search(raw) and traits & (Trait.EXPANSION | Trait.SUBSTITUTION | Trait.GLOB):
        traits |= _substitution(raw)
    return Word(raw, "".join(value), traits)


_SHORT = 32
_remembered = lru_cache(maxsize=4096)(_resolve)
"""Commands of one agent are made of the same names and flags again and again."""


def _piece(found: re.Match[str], *, first: bool) -> tuple[str, int]:
    kind = found.lastgroup
    text = found[kind or 0]
    match kind:
        case "bare":
            return text, _bare_traits(text, first=first)
        case "single":
            return text, Trait.QUOTED
        case "double":
            expands = _EXPANDS.search(_IN_DOUBLE.sub("", text))
            return _IN_DOUBLE.sub(_escaped_in_double, text), Trait.QUOTED | (Trait.EXPANSION if expands else 0)
        case "ansi":
            return ansi(text), Trait.QUOTED | Trait.ANSI
        case "escaped":
            return ("" if text == "\n" else text), Trait.ESCAPED
        case _:
            return text, Trait.EXPANSION


def _escaped_in_double(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _bare_traits(text: str, *, first: bool) -> int:
    traits = 0
    if "*" in text or "?" in text or "[" in text:
        traits |= Trait.GLOB
    if "{" in text or "}" in text:
        traits |= Trait.BRACE if _BRACE.search(text) or text.count("{") != text.count("}") else 0
    if "~" in text and ((first and text[0] == "~") or ":~" in text or "=~" in text):
        traits |= Trait.TILDE
    if first and text[0] == "=" and len(text) > 1:
        traits |= Trait.EQUALS
    if "(" in text or ")" in text:
        traits |= Trait.GLOB
    return traits


def _substitution(raw: str) -> int:
    """Whether a command may run inside the word: outside single quotes, and not escaped."""
    kept = variants(raw).with_double
    return Trait.SUBSTITUTION if _SUBSTITUTES.search(re.sub(r"\\[\s\S]", "", kept)) else 0


def ansi(text: str) -> str:
    """The inside of `$'…'`."""
    return _ANSI.sub(_ansi_character, text)


def _ansi_character(found: re.Match[str]) -> str:
    hexadecimal = found[1] or found[2] or found[3]
    if hexadecimal is not None:
        code = int(hexadecimal, 16)
        return chr(code) if 0 < code < 0x110000 else ""
    if found[4] is not None:
        return chr(int(found[4], 8) & 0xFF)
    if found[5] is not None:
        return chr(ord(found[5]) & 0x1F)
    return _ANSI_LETTERS.get(found[6], found[6] if found[6] in "\\'\"?" else f"\\{found[6]}")


def variants(text: str) -> Variants:
    """The text as each pattern needs it. An unclosed quote stays as written: its pattern then sees too much."""
    if "'" not in text and '"' not in text:
        return Variants(text, text, text)
    return Variants(
        _SPAN.sub(_without_single, text), _SPAN.sub(_without_quoted, text), _SPAN.sub(_only_quote_characters, text)
    )


def _without_single(found: re.Match[str]) -> str:
    return "" if found.lastgroup == "single" else found[0]


def _without_quoted(found: re.Match[str]) -> str:
    return found[0] if found.lastgroup == "escaped" else ""


def _only_quote_characters(found: re.Match[str]) -> str:
    match found.lastgroup:
        case "escaped":
            return found[0]
        case "single":
            return "''"
        case _:
            return '""'
