"""What is kept of a long output, and the words in which the model hears how code ended. Pure."""

from __future__ import annotations

from retinue.tools.extension.repl.schema import REPLOutput
from retinue.tools.text import printable


class Kept:
    """The beginning and the end of a text that comes in pieces; `total` is all of it."""

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._half = limit // 2
        self._head = ""
        self._tail = ""

    def add(self, text: str) -> None:
        self.total += len(text)
        room = self._half - len(self._head)
        self._head += text[:room]
        self._tail = (self._tail + text[room:])[-self._half :]

    def text(self) -> str:
        left_out = self.total - len(self._head) - len(self._tail)
        note = f"\n[… {left_out:,} characters of output left out …]\n" if left_out else ""
        return printable(self._head + note + self._tail)


def content_of(data: REPLOutput) -> str:
    parts = [f"[{_sentence(data.lost)} Variables of earlier calls are gone.]"] if data.lost else []
    parts.append(data.output.rstrip("\n"))
    if data.value is not None:
        parts.append(f"=> {data.value}")
    parts.append((data.error or "").rstrip("\n"))
    if data.stopped:
        parts.append(f"[The code was stopped: {data.stopped}.]")
    if data.gone:
        parts.append(f"[{_sentence(data.gone)} All variables are gone; the next call starts anew.]")
    return "\n".join(part for part in parts if part) or "(no output)"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
