"""A notebook as the model sees it: every cell with its id, its source and what came out of it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from pydantic import JsonValue

from retinue.tools.base import Attachment
from retinue.tools.errors import ToolError
from retinue.tools.files.notebooks import Json, Notebook, name_of, text_of
from retinue.tools.files.read.constants import CHARS_PER_TOKEN, MAX_TOKENS, NOTEBOOK_IMAGES, OUTPUT_CHARS
from retinue.tools.text import printable

Draw = Callable[[bytes, str], Attachment]
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_TEXTS = ("text/markdown", "text/plain", "text/latex", "application/json", "text/html")


@dataclass(frozen=True, slots=True)
class Shown:
    """`count` cells from number `first` (from 1) on; `cut` says that more were asked for than fit."""

    text: str
    first: int
    count: int
    total: int
    cut: bool
    images: tuple[Attachment, ...]

    @property
    def whole(self) -> bool:
        return self.first == 1 and self.count == self.total


def show(book: Notebook, offset: int | None, limit: int | None, draw: Draw) -> Shown:
    """`draw` makes an attachment of an image. ToolError when the first cell alone is too large."""
    first = max(offset or 1, 1)
    cells = list(enumerate(book.cells))[first - 1 :][:limit]
    room = MAX_TOKENS * CHARS_PER_TOKEN
    images = _Images(draw)
    texts: list[str] = []
    for index, cell in cells:
        drawn = len(images.taken)
        text = _cell(cell, index, book.language, images)
        room -= len(text) + 1
        if room < 0:
            del images.taken[drawn:]
            break
        texts.append(text)
    if cells and not texts:
        raise ToolError(f"Cell {first} alone is larger than {MAX_TOKENS:,} tokens. Use Grep, or jq in the shell.")
    return Shown("\n".join(texts), first, len(texts), len(book.cells), len(texts) < len(cells), tuple(images.taken))


class _Images:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self.taken: list[Attachment] = []

    def note(self, data: JsonValue, media_type: str) -> str:
        """The words that stand in the text for an image."""
        if len(self.taken) >= NOTEBOOK_IMAGES:
            return f"[{media_type}: not shown, these are more than {NOTEBOOK_IMAGES} images]"
        try:
            self.taken.append(self._draw(base64.b64decode(text_of(data)), media_type))
        except (binascii.Error, ValueError, ToolError):
            return f"[{media_type}: it cannot be decoded]"
        return f"[image {len(self.taken)}]"


def _cell(cell: Json, index: int, language: str, images: _Images) -> str:
    kind = str(cell.get("cell_type", "raw"))
    facts = {"id": name_of(cell, index), "type": kind}
    if kind == "code":
        facts["language"] = language
        if isinstance(count := cell.get("execution_count"), int):
            facts["execution_count"] = str(count)
    attributes = " ".join(f'{key}="{escape(value)}"' for key, value in facts.items())
    parts = [f"<cell {attributes}>", text_of(cell.get("source")).removesuffix("\n")]
    if output := _bounded(list(_outputs(cell, images))):
        parts += ["<output>", output, "</output>"]
    return "\n".join([*parts, "</cell>"])


def _bounded(outputs: Sequence[str]) -> str:
    text = "\n".join(part.removesuffix("\n") for part in outputs if part.strip())
    more = len(text) - OUTPUT_CHARS
    return text if more <= 0 else f"{text[:OUTPUT_CHARS]}\n[{more:,} more characters of output are not shown]"


def _outputs(cell: Json, images: _Images) -> Iterator[str]:
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        if not isinstance(output, dict):
            continue
        match output.get("output_type"):
            case "stream":
                yield printable(text_of(output.get("text")))
            case "error":
                yield printable(f"{output.get('ename')}: {output.get('evalue')}")
                yield printable("\n".join(text_of(line) for line in _list(output.get("traceback"))))
            case _:
                yield from _display(output.get("data"), images)


def _display(data: JsonValue, images: _Images) -> Iterator[str]:
    """The richest form that a model can take: an image and its caption, else text."""
    forms = data if isinstance(data, dict) else {}
    drawn = next((kind for kind in _IMAGES if kind in forms), None)
    if drawn:
        yield images.note(forms[drawn], drawn)
    text = next((kind for kind in _TEXTS if kind in forms), None)
    if text:
        yield printable(text_of(forms[text]) or str(forms[text]))
    elif forms and not drawn:
        yield f"[{', '.join(sorted(forms))}: not shown]"


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
