"""A small strict lexer that knows nothing of the parser, and gives up on whatever it does not fully understand.

It is the second reading of a text: what it and the parser both make the same words of may be approved unasked.
"""

from __future__ import annotations

import re

from retinue.tools.shell.analysis.model import RawPart, Redirect

_DOLLAR = r"\$\{[A-Za-z_]\w*\}|\$(?![({\['\"])"
_WORD = rf"""(?:
      [^\ \t\n'"\\$`|&;<>()]++
    | '[^']*+'
    | "(?:[^"\\`$]++|\\[\s\S]|\$\{{[A-Za-z_]\w*\}}|\$(?![({{\[]))*+"
    | \$'(?:[^'\\]++|\\[\s\S])*+'
    | \\[^\n]
    | {_DOLLAR}
    )+"""
_TOKEN = re.compile(
    rf"""[ \t]*(?:
      (?P<comment>\#[^\n]*)
    | (?P<redirect>\d*(?:<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)|&>>|&>)
    | (?P<operator>&&|\|\||\|&|;;&|;;|;&|[;|&\n])
    | (?P<word>{_WORD})
    | (?P<joined>(?<=[ \t])\\\n(?=[ \t]))
    )""",
    re.VERBOSE,
)
_REDIRECT = re.compile(r"(\d*)(\D+)")
_DELIMITER = re.compile(r"[A-Za-z_]\w*\Z")
_ACTIVE_IN_HEREDOC = re.compile(r"[$`\\]")
_ENDS = frozenset((";", "&", "\n"))
_CONNECTORS = frozenset(("&&", "||", "|", "|&", ";", "&", "\n"))


class _NotUnderstood(Exception):
    pass


class _Lexer:
    """Reads one text once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[RawPart] = []
        self.connector = ""
        self.words: list[str] = []
        self.redirects: list[Redirect] = []
        self.negated = False
        self.pending: Redirect | None = None
        self.delimiter: tuple[str, bool, bool] | None = None

    def run(self) -> list[RawPart]:
        text, at, length = self.text, 0, len(self.text)
        match = _TOKEN.match
        while at < length:
            found = match(text, at)
            if found is None:
                if text[at:].strip(" \t"):
                    raise _NotUnderstood
                break
            at = found.end()
            kind = found.lastgroup
            if kind == "word":
                self._word(found["word"])
            elif kind == "operator":
                at = self._operator(found["operator"], at)
            elif kind == "redirect":
                self._redirect(found["redirect"], found.start("redirect"))
        return self._finish()

    def _word(self, raw: str) -> None:
        if self.pending is not None:
            self._target(self.pending, raw)
        elif raw == "!" and not self.words and not self.redirects and not self.negated:
            self.negated = True
        else:
            self.words.append(raw)

    def _target(self, pending: Redirect, raw: str) -> None:
        if pending.operator in ("<<", "<<-"):
            name = raw.strip("'\"")
            quoted = raw in (f"'{name}'", f'"{name}"')
            if self.delimiter is not None or not _DELIMITER.match(name) or not (quoted or raw == name):
                raise _NotUnderstood
            self.delimiter = (name, quoted, pending.operator == "<<-")
        self.redirects.append(pending._replace(target=raw))
        self.pending = None

    def _redirect(self, token: str, start: int) -> None:
        if self.pending is not None:
            raise _NotUnderstood
        found = _REDIRECT.match(token)
        assert found is not None
        if len(found[1]) > 1 or self.text[start - 1 : start] == "}":
            raise _NotUnderstood  # zsh takes more digits than one for a word; bash sets the variable in `{name}>file`
        self.pending = Redirect(found[1], found[2], "")

    def _operator(self, operator: str, at: int) -> int:
        if operator not in _CONNECTORS:
            raise _NotUnderstood
        if operator == "\n" and self.delimiter is not None:
            at = self._heredoc(at)
        if self.words or self.redirects:
            self._end_part()
            self.connector = operator
        elif operator != "\n" or self.negated:
            raise _NotUnderstood
        return at

    def _heredoc(self, at: int) -> int:
        assert self.delimiter is not None
        name, quoted, strips = self.delimiter
        self.delimiter = None
        end = re.compile(rf"^{'	*' if strips else ''}{name}(?:\n|\Z)", re.MULTILINE).search(self.text, at)
        if end is None or (not quoted and _ACTIVE_IN_HEREDOC.search(self.text, at, end.start())):
            raise _NotUnderstood
        return end.end()

    def _end_part(self) -> None:
        if self.pending is not None:
            raise _NotUnderstood
        self.parts.append(RawPart(self.connector, self.negated, tuple(self.words), tuple(self.redirects)))
        self.words, self.redirects, self.negated = [], [], False

    def _finish(self) -> list[RawPart]:
        if self.delimiter is not None or self.pending is not None:
            raise _NotUnderstood
        if self.words or self.redirects:
            self._end_part()
        elif self.negated or self.connector not in _ENDS | {""}:
            raise _NotUnderstood
        return self.parts


def lex(text: str) -> list[RawPart] | None:
    """The simple commands of a text without groups, substitutions and control flow; None for any other text."""
    try:
        return _Lexer(text).run()
    except _NotUnderstood:
        return None
