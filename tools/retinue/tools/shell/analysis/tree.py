"""The parser's reading of a text. The tree is believed only where the lexer reads the same words."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from retinue.tools.shell.analysis.model import DEADLINE_MS, MAX_CHARS, RawPart, Redirect, names

if TYPE_CHECKING:
    from tree_sitter import Language, Node

_CONNECTORS = frozenset(("&&", "||", "|", "|&", ";", "&", "\n"))
_WORDS = names(
    """
    word string raw_string ansi_c_string concatenation number simple_expansion expansion command_substitution
    process_substitution arithmetic_expansion brace_expansion translated_string extglob_pattern regex test_operator
    special_variable_name variable_name subscript array
    """
)
"""Node kinds that are one word of a command."""
_DECLARATIONS = frozenset(("declaration_command", "unset_command"))
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_HEREDOC_PARTS = frozenset(("heredoc_start", "heredoc_body", "heredoc_end", "file_descriptor"))
_KNOWN = (
    _WORDS
    | _DECLARATIONS
    | _HEREDOC_PARTS
    | names(
        """
    program command command_name list pipeline redirected_statement negated_command subshell compound_statement
    if_statement elif_clause else_clause while_statement for_statement c_style_for_statement case_statement
    case_item do_group function_definition test_command binary_expression unary_expression postfix_expression
    parenthesized_expression ternary_expression variable_assignment variable_assignments comment string_content
    file_redirect heredoc_redirect herestring_redirect heredoc_content
    """
    )
)
_HOLDS_COMMAND = frozenset(("command", "redirected_statement", "declaration_command", "unset_command", "test_command"))
_LEAVES = frozenset(("word", "raw_string", "variable_name", "string_content", "comment", "file_descriptor"))
_MAX_NODES = 40_000
_MAX_SURVEYED = 4 * MAX_CHARS
"""Characters of all commands together: one in brackets is counted again with each command around it."""


class TooLong(Exception):
    """The parser did not finish before its deadline."""


class Raw(Protocol):
    """Gives the text of a node."""

    def __call__(self, node: Node, /) -> str: ...


class Tree(NamedTuple):
    """A parsed text. Offsets of nodes are bytes."""

    root: Node
    text: str
    data: bytes

    def reader(self) -> Raw:
        """Gives the text of each node."""
        text, data = self.text, self.data
        if len(data) == len(text):
            return lambda node: text[node.start_byte : node.end_byte]
        return lambda node: data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")


class Survey(NamedTuple):
    """All simple commands anywhere in a tree, also in substitutions, and the first thing that is not known."""

    parts: tuple[RawPart, ...]
    unknown: str | None


@lru_cache(maxsize=1)
def _language() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


class _Parsers(threading.local):
    """One parser for each thread: none may be used by two at once."""

    def __init__(self) -> None:
        from tree_sitter import Parser

        self.parser = Parser(_language())


@lru_cache(maxsize=1)
def _parsers() -> _Parsers:
    return _Parsers()


_SHORT = 256
"""No text of so few bytes takes the parser a tenth of its deadline: it needs no one who looks at the clock."""


def parse(text: str, deadline_ms: float = DEADLINE_MS) -> Tree:
    """TooLong when the deadline passes. ImportError when there is no parser on this machine."""
    data = text.encode("utf-8", "surrogatepass")
    parser = _parsers().parser
    if len(data) <= _SHORT:
        return Tree(parser.parse(data).root_node, text, data)
    until = time.thread_time() + deadline_ms / 1000
    try:
        tree = parser.parse(
            lambda offset, _point: data[offset : offset + 4096],
            progress_callback=lambda _offset, _error: time.thread_time() > until,
        )
    except ValueError as stopped:
        parser.reset()
        raise TooLong from stopped
    return Tree(tree.root_node, text, data)


class _Unlike(Exception):
    """The tree holds more than lists and pipelines of simple commands."""


class _Simple:
    """Reads the parts off a tree of lists and pipelines."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.raw: Raw = tree.reader()
        self.parts: list[RawPart] = []
        self.connector = ""

    def statement(self, node: Node, *, negated: bool = False) -> None:
        kind = node.type
        if kind == "command":
            words, redirects = _command(node, self.raw)
            self._add(negated, words, redirects)
        elif kind in ("program", "list", "pipeline"):
            self._sequence(node, negated)
        elif kind == "redirected_statement":
            self._redirected(node, negated)
        elif kind == "negated_command" and not negated:
            self.statement(node.children[1], negated=True)
        elif kind == "variable_assignment":
            self._add(negated, (self.raw(node),), ())
        elif kind == "variable_assignments":
            self._add(negated, tuple(self.raw(child) for child in node.children), ())
        elif kind == "test_command" or kind in _DECLARATIONS:
            self._add(negated, tuple(_flat_words(node, self.raw)), ())
        else:
            raise _Unlike

    def _sequence(self, node: Node, negated: bool) -> None:
        for child in node.children:
            if child.is_named:
                if child.type != "comment":
                    if self.parts and not self.connector:
                        self.connector = "\n"
                    self.statement(child, negated=negated)
                    negated = False
            elif child.type in _CONNECTORS:
                if child.type != "\n" or not self.connector:
                    self.connector = child.type
            else:
                raise _Unlike

    def _redirected(self, node: Node, negated: bool) -> None:
        before: list[Redirect] = []
        after: list[str] = []
        started = len(self.parts)
        end = node.start_byte
        for child in node.children:
            lost = self.tree.data[end : child.start_byte].strip().decode("utf-8", "surrogateescape")
            end = child.end_byte
            if lost:  # a dash before a heredoc belongs to no node
                after.append(lost)
            if child.type == "file_redirect":
                redirect, extra = _redirect(child, self.raw)
                before.append(redirect)
                after.extend(extra)
            elif child.type in ("heredoc_redirect", "herestring_redirect"):
                redirects, extra = _here(child, self.raw)
                before.extend(redirects)
                after.extend(extra)
            else:
                self.statement(child, negated=negated)
        if len(self.parts) == started:
            self._add(negated, (), ())
        last = self.parts[-1]
        self.parts[-1] = last._replace(words=(*last.words, *after), redirects=(*last.redirects, *before))

    def _add(self, negated: bool, words: tuple[str, ...], redirects: tuple[Redirect, ...]) -> None:
        self.parts.append(RawPart(self.connector, negated, words, redirects))
        self.connector = ""


def _command(node: Node, raw: Raw) -> tuple[tuple[str, ...], tuple[Redirect, ...]]:
    children = node.children
    if _REDIRECTS.isdisjoint([child.type for child in children]):
        return tuple(map(raw, children)), ()
    words: list[str] = []
    redirects: list[Redirect] = []
    for child in children:
        kind = child.type
        if kind == "file_redirect":
            redirect, extra = _redirect(child, raw)
            redirects.append(redirect)
            words.extend(extra)
        elif kind in _REDIRECTS:
            found, extra = _here(child, raw)
            redirects.extend(found)
            words.extend(extra)
        else:
            words.append(raw(child))
    return tuple(words), tuple(redirects)


def _redirect(node: Node, raw: Raw) -> tuple[Redirect, list[str]]:
    """The redirect, and the words behind its target: arguments that the parser takes for further targets."""
    fd, operator, words = "", "", list[str]()
    for child in node.children:
        if child.type == "file_descriptor":
            fd = raw(child)
        elif not operator:
            operator = child.type
        else:
            words.append(raw(child))
    return Redirect(fd, operator, words[0] if words else ""), words[1:]


def _here(node: Node, raw: Raw) -> tuple[list[Redirect], list[str]]:
    """The redirect, those that stand behind it on its line, and the words behind their targets."""
    fd, operator, target = "", "", ""
    behind: list[Redirect] = []
    words: list[str] = []
    for child in node.children:
        if child.type == "file_descriptor":
            fd = raw(child)
        elif not operator:
            operator = child.type
        elif child.type in ("heredoc_body", "heredoc_end"):
            continue
        elif child.type == "file_redirect" and target:
            redirect, extra = _redirect(child, raw)
            behind.append(redirect)
            words.extend(extra)
        elif target:
            raise _Unlike
        else:
            target = raw(child)
    return [Redirect(fd, operator, target), *behind], words


def _flat_words(node: Node, raw: Raw) -> Iterator[str]:
    """The words of a declaration or of `[ … ]`, whose tree is deeper than a list."""
    for child in node.children:
        if child.type in ("unary_expression", "binary_expression", "negated_command", "parenthesized_expression"):
            yield from _flat_words(child, raw)
        else:
            yield raw(child)


def simple_parts(tree: Tree) -> list[RawPart] | None:
    """The parts of a tree that holds only lists and pipelines of simple commands; None for any other."""
    reader = _Simple(tree)
    try:
        reader.statement(tree.root)
    except _Unlike:
        return None
    return reader.parts


def survey(tree: Tree) -> Survey:
    """Every simple command of any tree. Iterative: brackets nest as deep as the text is long."""
    parts: list[RawPart] = []
    unknown: str | None = None
    stack = [tree.root]
    raw = tree.reader()
    seen = surveyed = 0
    while stack:
        node = stack.pop()
        seen += 1
        if seen > _MAX_NODES or surveyed > _MAX_SURVEYED:
            return Survey(tuple(parts), "a tree too large")
        if node.is_named:
            kind = node.type
            if kind in _HOLDS_COMMAND:
                parts.extend(_part_of(node, raw))
                surveyed += node.end_byte - node.start_byte
            elif kind not in _KNOWN:
                unknown = unknown or kind
            if kind not in _LEAVES:
                stack.extend(reversed(node.children))
        elif node.child_count:
            stack.extend(reversed(node.children))
    return Survey(tuple(parts), unknown)


def _part_of(node: Node, raw: Raw) -> list[RawPart]:
    try:
        match node.type:
            case "command":
                words, redirects = _command(node, raw)
                return [RawPart(";", False, words, redirects)]
            case "redirected_statement":
                return _redirects_alone(node, raw)
            case "declaration_command" | "unset_command" | "test_command":
                return [RawPart(";", False, tuple(_flat_words(node, raw)), ())]
            case _:
                return []
    except _Unlike:
        return []


def _redirects_alone(node: Node, raw: Raw) -> list[RawPart]:
    """The redirects of a statement, as a part without words; and words behind them as a command of their own."""
    redirects: list[Redirect] = []
    extra: list[str] = []
    heres = (inner for child in node.children if child.type == "heredoc_redirect" for inner in child.children)
    for child in (*node.children, *heres):
        if child.type == "file_redirect":
            redirect, more = _redirect(child, raw)
            redirects.append(redirect)
            extra.extend(more)
    first = next((child for child in node.children if child.type == "command"), None)
    if extra and first is not None:
        words, inner = _command(first, raw)
        return [RawPart(";", False, (*words, *extra), (*inner, *redirects))]
    return [RawPart(";", False, tuple(extra), tuple(redirects))] if redirects else []
