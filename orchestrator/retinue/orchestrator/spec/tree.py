"""One YAML 1.2 document as a tree that knows the place of every key and value.

Built from parser events: no tags, no objects, no merge keys; aliases are resolved within a budget; every duplicate key
is a problem. Depth and size are limited before anything recurses over the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from retinue.orchestrator.spec.events import YamlEvent, read_events, syntax
from retinue.orchestrator.spec.problems import InvalidSpec, Mark, Path, Problem, invalid, quoted
from retinue.tools.errors import InvariantBroken

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 20
MAX_NODES = 20_000

_STRING_TAGS = ("!", "tag:yaml.org,2002:str")
_INT = re.compile(r"[-+]?[0-9]{1,300}\Z|0o[0-7]{1,20}\Z|0x[0-9a-fA-F]{1,15}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?\Z")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True, slots=True)
class Scalar:
    """`raw` is the text as written, without quotes; `plain` tells that it had none."""

    value: str | int | float | bool | None
    raw: str
    mark: Mark
    plain: bool = True


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    mark: Mark


@dataclass(frozen=True, slots=True)
class Entry:
    key_mark: Mark
    node: Node


@dataclass(frozen=True, slots=True)
class Mapping:
    entries: dict[str, Entry]
    mark: Mark


Node = Scalar | Sequence | Mapping


def scalar_of(text: str, mark: Mark) -> Scalar:
    """A plain scalar, read by the core schema of YAML 1.2: `no` is a word and `1:30` is no number."""
    if text in _WORDS:
        return Scalar(_WORDS[text], text, mark)
    if _INT.match(text):
        base = {"0o": 8, "0x": 16}.get(text[:2], 10)
        return Scalar(int(text, base), text, mark)
    if len(text) <= 40 and _FLOAT.match(text):
        return Scalar(float(text), text, mark)
    return Scalar(text, text, mark)


def plain_of(node: Node) -> JsonValue:
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [plain_of(item) for item in node.items]
        case Mapping():
            return {key: plain_of(entry.node) for key, entry in node.entries.items()}


def walk(node: Node, path: Path = ()) -> Iterator[tuple[Path, Node]]:
    """Every node with its path, parents first."""
    yield path, node
    if isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield from walk(item, (*path, index))
    elif isinstance(node, Mapping):
        for key, entry in node.entries.items():
            yield from walk(entry.node, (*path, key))


def mark_of(root: Node, path: Path, *, on_key: bool = False) -> Mark:
    """The place of what stands at `path`, or of the last part of the path that exists.

    A collection in a mapping is named by its key, which is where its author looks.
    """
    node, mark = root, root.mark
    for depth, part in enumerate(path):
        last = depth == len(path) - 1
        if isinstance(node, Mapping) and isinstance(part, str) and part in node.entries:
            entry = node.entries[part]
            node = entry.node
            is_value = isinstance(node, Scalar) and node.value is not None
            mark = node.mark if is_value and not (last and on_key) else entry.key_mark
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
            mark = node.mark
        else:
            break
    return mark


def node_at(root: Node, path: Path) -> Node | None:
    node: Node = root
    for part in path:
        if isinstance(node, Mapping) and isinstance(part, str) and part in node.entries:
            node = node.entries[part].node
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        else:
            return None
    return node


def read_tree(text: str, name: str) -> tuple[Node, list[Problem]]:
    """The document and its duplicate keys. What cannot be read at all raises the spec error at once."""
    if len(text) > MAX_CHARACTERS:
        raise invalid(name, [syntax(Mark(name, 1, 1), f"the spec is longer than {MAX_CHARACTERS:,} characters")])
    builder = _Builder(name)
    for event in read_events(text, name):
        builder.take(event)
    if builder.root is None:
        raise invalid(
            name, [syntax(Mark(name, 1, 1), "the spec is empty", remedy="`retinue init` writes one to start from")]
        )
    return builder.root, builder.problems


@dataclass(slots=True)
class _Open:
    """A collection that is still being read, and the number of nodes that there were before it."""

    mark: Mark
    anchor: str | None
    before: int
    key: tuple[str, Mark] | None = None
    entries: dict[str, Entry] | None = None
    items: list[Node] = field(default_factory=list["Node"])


@dataclass(slots=True)
class _Builder:
    name: str
    root: Node | None = None
    problems: list[Problem] = field(default_factory=list[Problem])
    _open: list[_Open] = field(default_factory=list[_Open])
    _anchors: dict[str, tuple[Node, int]] = field(default_factory=dict[str, "tuple[Node, int]"])
    _nodes: int = 0
    _documents: int = 0

    def take(self, event: YamlEvent) -> None:
        match event.kind:
            case "document":
                self._document(event)
            case "mapping" | "list":
                self._start(event)
            case "end":
                self._end()
            case "scalar":
                self._scalar(event)
            case "alias":
                self._alias(event)

    def _refuse(self, mark: Mark, what: str, remedy: str = "") -> InvalidSpec:
        return invalid(self.name, [syntax(mark, what, remedy)])

    def _document(self, event: YamlEvent) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._refuse(event.mark, "a second document starts here", "a spec is one YAML document")
        if event.version not in (None, (1, 2)):
            raise self._refuse(event.mark, "a spec is YAML 1.2", "remove the %YAML line")

    def _start(self, event: YamlEvent) -> None:
        self._check_tag(event.tag, event.mark)
        self._count(1, event.mark)
        self._check_no_key(event.mark)
        if len(self._open) >= MAX_DEPTH:
            raise self._refuse(event.mark, f"nested deeper than {MAX_DEPTH} levels")
        entries: dict[str, Entry] | None = {} if event.kind == "mapping" else None
        self._open.append(_Open(event.mark, event.anchor, self._nodes - 1, entries=entries))

    def _end(self) -> None:
        done = self._open.pop()
        node = Mapping(done.entries, done.mark) if done.entries is not None else Sequence(tuple(done.items), done.mark)
        self._remember(done.anchor, node, self._nodes - done.before)
        self._place(node)

    def _scalar(self, event: YamlEvent) -> None:
        self._count(1, event.mark)
        if self._wants_key():
            self._open[-1].key = (self._whole(event), event.mark)
            return
        self._check_tag(event.tag, event.mark)
        text = self._whole(event)
        node = scalar_of(text, event.mark) if event.plain else Scalar(text, text, event.mark, plain=False)
        self._remember(event.anchor, node, 1)
        self._place(node)

    def _alias(self, event: YamlEvent) -> None:
        anchor = event.anchor or ""
        if anchor not in self._anchors:
            raise self._refuse(event.mark, f"the alias *{anchor} has no anchor &{anchor} that ends before it")
        node, size = self._anchors[anchor]
        self._count(size, event.mark)
        self._check_no_key(event.mark)
        if _depth(node) + len(self._open) > MAX_DEPTH:
            raise self._refuse(event.mark, f"nested deeper than {MAX_DEPTH} levels")
        self._place(node)

    def _whole(self, event: YamlEvent) -> str:
        """JSON writes some characters as two escapes, which the parser leaves apart."""
        if not any("\ud800" <= character <= "\udfff" for character in event.text):
            return event.text
        try:
            return event.text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._refuse(
                event.mark, "half of a character, escaped as in \\ud800", "write the character"
            ) from None

    def _wants_key(self) -> bool:
        return bool(self._open) and self._open[-1].entries is not None and self._open[-1].key is None

    def _check_no_key(self, mark: Mark) -> None:
        if self._wants_key():
            raise self._refuse(mark, "expected a key that is a single word")

    def _check_tag(self, tag: str | None, mark: Mark) -> None:
        if tag is not None and tag not in _STRING_TAGS:
            raise self._refuse(mark, f"the tag {quoted(tag)} has no meaning in a spec", "remove it")

    def _count(self, nodes: int, mark: Mark) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._refuse(mark, f"the spec has more than {MAX_NODES:,} values, aliases counted in full")

    def _remember(self, anchor: str | None, node: Node, size: int) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, size)

    def _place(self, node: Node) -> None:
        if not self._open:
            self.root = node
            return
        parent = self._open[-1]
        if parent.entries is None:
            parent.items.append(node)
            return
        if parent.key is None:
            raise InvariantBroken("a value of a mapping came before its key")
        (key, mark), parent.key = parent.key, None
        if key in parent.entries:
            first = parent.entries[key].key_mark
            path = (*self._path(), key)
            what = f"the key {quoted(key)} is already on line {first.line}"
            self.problems.append(Problem("duplicate_key", path, what, remedy="remove one of the two", mark=mark))
            return
        parent.entries[key] = Entry(mark, node)

    def _path(self) -> Path:
        return tuple(
            each.key[0] if each.key is not None else len(each.items)
            for each in self._open[:-1]
            if each.key is not None or each.entries is None
        )


def _depth(node: Node) -> int:
    children: list[Node] = []
    if isinstance(node, Sequence):
        children = list(node.items)
    elif isinstance(node, Mapping):
        children = [entry.node for entry in node.entries.values()]
    return 1 + max(map(_depth, children), default=0) if not isinstance(node, Scalar) else 0
