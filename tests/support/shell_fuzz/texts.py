"""Texts that try the readers of a text: repeated, nested and broken pieces, bytes, and mutations of whole commands."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from support.shell_fuzz.grammar import Grammar
from support.shell_fuzz.vocabulary import PIECES, listed

_LONG = 10_400
_OPENING = (
    *listed("( { [ ' \" ` $( ${ $(( $[ <( >( [[ (( {a, \\ # <<A <<'A'\n <<- case if while for $' $\" !( @( ~["),
    "a\n",
    "é",
)
_BRACKETS = (("(", ")"), ("$(", ")"), ("{ ", "; }"), ('"$(', ')"'), ("{a,", "}"), ("${a:-", "}"), ("[", "]"))
_FRAMES = (
    "{0}",
    "ls {0}",
    "echo '{0}",
    'echo "{0}',
    "rm -rf {0}",
    "bash -c '{0}'",
    "jq {0} x",
    "sed {0} x",
    "git {0} commit",
)
_PLAIN = listed(
    "ls rm -rf cat a.txt /etc .. * ? ; && || | & > < 2>&1 /dev/null /proc/ environ IFS= git commit jq sed s/a/b/ find"
)


def hard_texts(seed: int, grammar: Grammar) -> Iterator[str]:
    """Without end. Lone surrogates, NUL and more than the analysis reads are among them."""
    rng = Random(seed)
    makers = (_repeated, _nested, _shuffled, _bytes, _unicode)
    while True:
        if rng.random() < 0.3:
            yield grammar.mutant(rng.choice(grammar.seeds) * rng.choice((1, 1, 3, 60)))
        else:
            yield rng.choice(makers)(rng)


def _length(rng: Random) -> int:
    return rng.choice((20, 200, 2_000, 9_990, _LONG))


def _repeated(rng: Random) -> str:
    """A few pieces over and over: what a pattern that backtracks is slow with."""
    piece = "".join(rng.choice((*_OPENING, *PIECES, *_PLAIN)) for _ in range(rng.choice((1, 1, 2, 3))))
    end = rng.choice(("", "x", "'", '"', "\n", "#", ")", "}", " rm -rf /"))
    frame = rng.choice(_FRAMES)
    return frame.replace("{0}", piece * max(1, _length(rng) // len(piece)) + end)


def _nested(rng: Random) -> str:
    depth = rng.choice((3, 50, 500, 3_000))
    opening, closing = rng.choice(_BRACKETS)
    closed = closing * rng.choice((depth, depth - 1, 0))
    return f"{rng.choice(('', 'ls ', 'echo '))}{opening * depth}x{closed}"[:_LONG]


def _shuffled(rng: Random) -> str:
    pieces = (*PIECES, *_OPENING, *_PLAIN)
    count = rng.choice((5, 30, 300, 2_500))
    return "".join(rng.choice(pieces) + rng.choice(("", " ", " ")) for _ in range(count))[:_LONG]


def _bytes(rng: Random) -> str:
    raw = rng.randbytes(_length(rng))
    encoding, errors = rng.choice((("latin-1", "strict"), ("utf-8", "surrogateescape"), ("utf-16-le", "replace")))
    return raw.decode(encoding, errors)


def _unicode(rng: Random) -> str:
    odd = ("\0", "\ud800", "\udfff", "\u202e", "\u00a0", "\ufeff", "\U0001f600", "\x7f", "\x1b")
    letters = (*"ab '\"\\$`|&;<>(){}#\n\t", *odd)
    return "".join(rng.choices(letters, k=_length(rng)))
