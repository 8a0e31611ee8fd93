"""What an edit does to a text: find, fold quotes, splice. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.tools.files.codec import Offsets, Text

_FOLD = str.maketrans("\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f", "''''\"\"\"\"")
_OPENS_AFTER = frozenset(" \t\n\r([{<\u2014\u2013\u2018\u201c")


@dataclass(frozen=True, slots=True)
class Found:
    """Where the old text stands in `Text.normal`, and whether quotes had to be folded to find it."""

    starts: tuple[int, ...]
    folded: bool


def find(text: str, old: str) -> Found:
    """Exact matches; without one, matches that differ only in the style of their quotation marks."""
    exact = _positions(text, old)
    if exact:
        return Found(exact, folded=False)
    return Found(_positions(text.translate(_FOLD), old.translate(_FOLD)), folded=True)


def splice(text: Text, found: Found, old: str, new: str) -> bytes:
    """The whole file after the edit. What `old` and `new` share at both ends keeps its bytes, like all the rest."""
    normal, offsets = text.normal, Offsets(text.raw)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    middle = new[head : len(new) - tail]
    pieces: list[bytes] = [text.bom]
    done = 0
    for start in found.starts:
        first, last = offsets[start + head], offsets[start + len(old) - tail]
        matched = normal[start : start + len(old)]
        styled = _curl(middle, matched, normal[: start + head][-1:]) if found.folded else middle
        ending = _ending(text.raw[offsets[start] : offsets[start + len(old)]], text.newline)
        pieces += [text.encode(text.raw[done:first]), text.encode_new(styled.replace("\n", ending))]
        done = last
    pieces.append(text.encode(text.raw[done:]))
    return b"".join(pieces)


def _positions(text: str, old: str) -> tuple[int, ...]:
    starts: list[int] = []
    at = text.find(old)
    while at >= 0:
        starts.append(at)
        at = text.find(old, at + len(old))
    return tuple(starts)


def _shared(one: str, other: str) -> int:
    """Length of the common start."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _ending(region: str, usual: str) -> str:
    crlf = region.count("\r\n")
    bare = region.count("\n") - crlf
    if crlf and not bare:
        return "\r\n"
    return "\n" if bare and not crlf else usual


def _curl(new: str, matched: str, before: str) -> str:
    """`new` with the file's own style of quotation marks, as far as the matched text shows one."""
    double = any(mark in matched for mark in "\u201c\u201d")
    single = any(mark in matched for mark in "\u2018\u2019")
    characters: list[str] = []
    for index, character in enumerate(new):
        previous = new[index - 1] if index else before
        following = new[index + 1 : index + 2]
        if character == '"' and double:
            characters.append("\u201c" if _opens(previous) else "\u201d")
        elif character == "'" and single:
            apostrophe = previous.isalnum() and following.isalnum()
            characters.append("\u2018" if _opens(previous) and not apostrophe else "\u2019")
        else:
            characters.append(character)
    return "".join(characters)


def _opens(previous: str) -> bool:
    return not previous or previous in _OPENS_AFTER
