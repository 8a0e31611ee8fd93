"""One text, read twice: by the parser and by the lexer. Only what they agree on may be approved unasked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from retinue.tools.shell.analysis import tree
from retinue.tools.shell.analysis.coarse import coarse_commands
from retinue.tools.shell.analysis.environment import is_assignment
from retinue.tools.shell.analysis.inner import commands_fed, commands_in, commands_of_variables, feeds_a_shell
from retinue.tools.shell.analysis.lexer import lex
from retinue.tools.shell.analysis.model import (
    MAX_CHARS,
    MAX_PARTS,
    UNPRINTABLE,
    Part,
    RawPart,
    Reason,
    Status,
    Word,
    names,
)
from retinue.tools.shell.analysis.quoting import resolve
from retinue.tools.shell.analysis.wrappers import unwrap

_RESERVED = names(
    """
    if then elif else fi for while until do done case esac select function { } ! [[ coproc time in foreach repeat
    end nocorrect ((
    """
)
_CONTINUED = "\\\n"
_MAX_OPERATORS = 8 * MAX_PARTS


class Reading(NamedTuple):
    """The simple commands of a text, and why they may not be all that it runs."""

    status: Status
    parts: tuple[Part, ...]
    reasons: tuple[Reason, ...]


def read(text: str) -> Reading:
    """Never raises. A line that goes on in the middle of a word is no plain list: its parts are found in both."""
    reading = _read(text)
    if reading.status == "simple" or _CONTINUED not in text or len(text) > MAX_CHARS:
        return reading
    joined = _read(text.replace(_CONTINUED, ""))
    return reading._replace(parts=tuple(dict.fromkeys((*joined.parts, *reading.parts))))


def _read(text: str) -> Reading:
    if len(text) > MAX_CHARS:
        return _broken("limit", f"more than {MAX_CHARS} characters")
    lexed = lex(text)
    if (unreadable := _unreadable(text, lexed)) is not None:
        return _broken(*unreadable, lexed or ())
    try:
        parsed = tree.parse(text)
    except tree.TooLong:
        return _broken("deadline", "reading it takes too long")
    except (ImportError, OSError):
        return _broken("parser", "there is no parser on this machine", lexed or ())
    if parsed.root.has_error:
        return _broken("syntax", "it cannot be read with certainty", lexed or ())
    simple = tree.simple_parts(parsed)
    if lexed is not None and simple == lexed:
        return Reading("simple", tuple(map(part_of, lexed)), ())
    return _not_simple(parsed, simple, lexed)


def _unreadable(text: str, lexed: list[RawPart] | None) -> tuple[str, str] | None:
    """What makes a text not worth parsing: the parser is slow with it, and the answer would be the same."""
    if not (text.isascii() and text.isprintable()) and UNPRINTABLE.search(text):
        return "characters", "it holds characters that shells and people read differently"
    if lexed is not None and not lexed:
        return "empty", "no command"
    if lexed is not None and len(lexed) > MAX_PARTS:
        return "limit", f"more than {MAX_PARTS} commands"
    if lexed is None and sum(map(text.count, "|&;")) > _MAX_OPERATORS:
        return "limit", f"more than {_MAX_OPERATORS} operators"
    return None


def _not_simple(parsed: tree.Tree, simple: list[RawPart] | None, lexed: list[RawPart] | None) -> Reading:
    found = tree.survey(parsed)
    if found.unknown is not None:
        return _broken("syntax", f"it holds {found.unknown}", (*found.parts, *(lexed or ())))
    if lexed is not None and (simple is not None or not any(_is_reserved(part) for part in lexed)):
        return _broken("readings", "it can be read in two ways", (*found.parts, *lexed))
    parts = tuple(map(part_of, found.parts))
    if len(parts) > MAX_PARTS:
        return _broken("limit", f"more than {MAX_PARTS} commands", found.parts)
    return Reading("complex", parts, (Reason("complex", 0, "more than a list of simple commands"),))


def _is_reserved(part: RawPart) -> bool:
    return bool(part.words) and part.words[0] in _RESERVED


def _broken(kind: str, text: str, parts: Sequence[RawPart] = ()) -> Reading:
    return Reading("broken", tuple(map(part_of, parts)), (Reason(kind, 0, text),))


def part_of(raw: RawPart) -> Part:
    """The part with its quoting resolved."""
    words = tuple(map(resolve, raw.words))
    at = 0
    if words and "=" in words[0].raw:
        while at < len(words) and is_assignment(words[at].raw):
            at += 1
    if at == 0:
        return Part(raw, (), words, unwrap(words))
    return Part(raw, words[:at], words[at:], unwrap(words[at:]))


def all_commands(text: str, reading: Reading) -> Iterator[Sequence[Word]]:
    """Every command that the text may run, as far as anyone can tell: to look for what is forbidden."""
    for part in reading.parts:
        yield from commands_of(part)
    yield from commands_fed(reading.parts)
    if reading.status == "broken" or ("<<" in text and feeds_a_shell(reading.parts)):
        for words in coarse_commands(text):
            yield words
            yield from commands_in(words)


def may_be_fed(text: str) -> bool:
    """A first look: whether one command of the text may be handed another as its input."""
    return "|" in text or "<<" in text


def commands_of(part: Part) -> Iterator[Sequence[Word]]:
    """What one part runs: its words, and what is in strings for another shell."""
    if part.words:
        yield part.words
        yield from commands_in(part.words)
    yield from commands_of_variables(part)
