"""`--set key=value` and `--model`: changes that are applied to the document before anything is checked."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from retinue.orchestrator.spec.problems import InvalidSpec, Mark, Path, Problem, quoted
from retinue.orchestrator.spec.tree import Entry, Mapping, Node, Scalar, Sequence, read_tree, scalar_of

_PART = re.compile(r"([^.\[\]]+)((?:\[[0-9]{1,6}\])*)\Z")


def apply_overrides(root: Node, overrides: Iterable[str]) -> tuple[Node, list[Problem]]:
    """Each `key=value` in turn. The value is YAML, so `[a, b]`, `3` and `null` mean what they mean in the spec."""
    problems: list[Problem] = []
    for override in overrides:
        try:
            root = _apply(root, override)
        except _Refused as refused:
            problems.append(refused.problem)
    return root, problems


def apply_model(root: Node, use: str) -> Node:
    """Every agent gets this model. Options of the spec's `model` stay when the provider stays."""
    if not isinstance(root, Mapping):
        return root
    mark = Mark("--model")
    entries = dict(root.entries)
    node: Node = Scalar(use, use, mark, plain=False)
    old = entries.get("model")
    if old is not None and isinstance(old.node, Mapping) and _provider(old.node) == use.partition(":")[0]:
        node = replace(old.node, entries={**old.node.entries, "use": Entry(mark, node)})
    entries["model"] = Entry(old.key_mark if old else mark, node)
    agents = entries.get("agents")
    if agents is not None and isinstance(agents.node, Mapping):
        kept = {key: Entry(entry.key_mark, _without_model(entry.node)) for key, entry in agents.node.entries.items()}
        entries["agents"] = Entry(agents.key_mark, replace(agents.node, entries=kept))
    return replace(root, entries=entries)


def _without_model(agent: Node) -> Node:
    if not isinstance(agent, Mapping):
        return agent
    return replace(agent, entries={key: entry for key, entry in agent.entries.items() if key != "model"})


def _provider(model: Mapping) -> str:
    use = model.entries.get("use")
    return use.node.raw.partition(":")[0] if use is not None and isinstance(use.node, Scalar) else ""


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.text)
        self.problem = problem


def _apply(root: Node, override: str) -> Node:
    key, equals, value = override.partition("=")
    mark = Mark("--set")
    if not equals or not key:
        raise _refused(mark, (), f"expected key=value, found {quoted(override)}", "as in --set limits.usd=2")
    path = _path(key, mark)
    return _assign(root, path, 0, _value(path, key, value, mark), mark)


def _refused(mark: Mark, path: Path, what: str, remedy: str = "") -> _Refused:
    return _Refused(Problem("override", path, what, remedy=remedy, mark=mark))


def _path(key: str, mark: Mark) -> Path:
    path: list[str | int] = []
    for part in key.split("."):
        found = _PART.match(part)
        if found is None or len(path) > 20:
            raise _refused(mark, (), f"{quoted(key)} is no path", "write it as in tasks[0].owner")
        path += [int(part) if part.isdecimal() and path and part.isascii() else found[1]]
        path += [int(index) for index in re.findall(r"[0-9]+", found[2])]
    return tuple(path)


def _value(path: Path, key: str, text: str, mark: Mark) -> Node:
    if not text.strip():
        return scalar_of("", mark)
    try:
        node, problems = read_tree(text, mark.file)
    except InvalidSpec as error:
        problems, node = list(error.problems), None
    if node is None or problems:
        raise _refused(mark, path, problems[0].what, f"""put the value in quotes, as in --set '{key}="..."'""")
    return _marked(node, mark)


def _marked(node: Node, mark: Mark) -> Node:
    match node:
        case Scalar():
            return replace(node, mark=mark)
        case Sequence():
            return Sequence(tuple(_marked(item, mark) for item in node.items), mark)
        case Mapping():
            return Mapping({key: Entry(mark, _marked(e.node, mark)) for key, e in node.entries.items()}, mark)


def _assign(node: Node | None, path: Path, depth: int, value: Node, mark: Mark) -> Node:
    if depth == len(path):
        return value
    part = path[depth]
    match node:
        case Sequence():
            return _assign_item(node, part, path, depth, value, mark)
        case Mapping():
            key = str(part)
            old = node.entries.get(key)
            child = _assign(old.node if old else None, path, depth + 1, value, mark)
            return replace(node, entries={**node.entries, key: Entry(old.key_mark if old else mark, child)})
        case None | Scalar(value=None):
            empty: Node = Sequence((), mark) if part == 0 and isinstance(part, int) else Mapping({}, mark)
            return _assign(empty, path, depth, value, mark)
        case Scalar():
            raise _refused(mark, path[:depth], f"holds a single value and has no key {quoted(str(part))}")


def _assign_item(node: Sequence, part: str | int, path: Path, depth: int, value: Node, mark: Mark) -> Node:
    count = len(node.items)
    if not isinstance(part, int) or part > count:
        what = f"is a list of {count} and has no {quoted(str(part))}"
        raise _refused(mark, path[:depth], what, f"give an index from 0 to {count}; {count} adds one")
    old = node.items[part] if part < count else None
    child = _assign(old, path, depth + 1, value, mark)
    return replace(node, items=(*node.items[:part], child, *node.items[part + 1 :]))
