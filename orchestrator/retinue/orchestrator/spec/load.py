"""From a file and its flags to a checked team spec, or to every problem at once."""

from __future__ import annotations

import secrets as random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from retinue.orchestrator.spec import expand as expansion
from retinue.orchestrator.spec.check import check
from retinue.orchestrator.spec.expand import Expanded, Variables, expand
from retinue.orchestrator.spec.model import TeamSpec
from retinue.orchestrator.spec.overrides import apply_model, apply_overrides
from retinue.orchestrator.spec.problems import InvalidSpec, Mark, Problem, invalid
from retinue.orchestrator.spec.problems import Path as DocPath
from retinue.orchestrator.spec.structure import Shaped, found_text, shape
from retinue.orchestrator.spec.tree import MAX_CHARACTERS, Node, Scalar, mark_of, read_tree, walk
from retinue.orchestrator.spec.tree import Mapping as MappingNode

__all__ = ["LoadedSpec", "load_spec", "load_spec_text"]


@dataclass(frozen=True, slots=True)
class LoadedSpec:
    """A spec that holds together, and what a run keeps of it.

    source_text  as written, variables not filled in: what goes on disk, together with `overrides` and `model`
    variables    which variables it used, hashed with a salt
    secrets      values that no log, ledger or spill may show, longest first
    folder       what relative paths of definitions and scripts start from
    """

    spec: TeamSpec
    source_text: str
    variables: Variables
    secrets: tuple[str, ...]
    warnings: tuple[Problem, ...]
    path: Path
    folder: Path
    root: Node = field(repr=False)
    overrides: tuple[str, ...] = ()
    model: str | None = None

    def file(self, written: str) -> Path:
        """A path of the spec (a script or a definition) as a path of the file system."""
        return self.folder / Path(written).expanduser()

    def placed(self, problem: Problem) -> Problem:
        """The same problem with its place in the file."""
        return problem.at(mark_of(self.root, problem.path, on_key=problem.on_key))


def load_spec(
    path: Path,
    *,
    env: Mapping[str, str],
    overrides: Sequence[str] = (),
    model: str | None = None,
    salt: str | None = None,
) -> LoadedSpec:
    """Read, expand and check. `script:FILE` in `model` starts from the current directory; in the spec from its own."""
    name = str(path)
    try:
        with path.open("rb") as file:
            data = file.read(4 * MAX_CHARACTERS + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(
            str(path), f"not UTF-8: byte {error.start + 1} cannot be read", "save the file as UTF-8"
        ) from None
    except FileNotFoundError:
        raise _unreadable(name, "no such file", "`retinue init` writes a spec to start from") from None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _unreadable(name, f"cannot be read: {said}") from None
    if model is not None and model.startswith("script:"):
        model = f"script:{Path(model.removeprefix('script:')).expanduser().absolute()}"
    return load_spec_text(text, name, env=env, overrides=overrides, model=model, salt=salt, path=path)


def load_spec_text(
    text: str,
    name: str = "spec.yaml",
    *,
    env: Mapping[str, str],
    overrides: Sequence[str] = (),
    model: str | None = None,
    salt: str | None = None,
    path: Path | None = None,
) -> LoadedSpec:
    """The same for a text; `name` is what errors call it."""
    root, problems = read_tree(text, name)
    root, refused = apply_overrides(root, overrides)
    problems += refused
    if model is not None:
        root = apply_model(root, model)
    expanded = expand(root, env)
    problems += expanded.problems
    shaped = _shaped(expanded.root, name, unsaid=tuple(p.path for p in expanded.problems))
    problems += [p.at(mark_of(root, p.path, on_key=p.on_key)) for p in shaped.problems]
    if problems or shaped.spec is None:
        raise invalid(name, problems)
    where = path or Path(name)
    return LoadedSpec(
        spec=shaped.spec,
        source_text=text,
        variables=expanded.variables(salt or random.token_hex(16)),
        secrets=_secrets(expanded, shaped.spec),
        warnings=tuple(_literal_secrets(root)),
        path=where,
        folder=where.parent,
        root=root,
        overrides=tuple(overrides),
        model=model,
    )


def _unreadable(name: str, what: str, remedy: str = "") -> InvalidSpec:
    return invalid(name, [Problem("syntax", (), what, remedy=remedy, mark=Mark(name))])


def _shaped(root: Node, name: str, unsaid: Iterable[DocPath]) -> Shaped:
    """Structure and, as far as the rest can be read, meaning; nothing is said twice about one place."""
    if not isinstance(root, MappingNode):
        what = f"expected a mapping of keys, found {found_text(root)}"
        remedy = "start with version: 1; `retinue init` writes an example"
        return Shaped(None, (Problem("value", (), what, remedy=remedy),), ())
    shaped = shape(root)
    touched = (*shaped.repaired, *unsaid)
    problems = [p for p in shaped.problems if p.path not in unsaid]
    if shaped.spec is not None:
        problems += [p for p in check(shaped.spec) if not _follows(p, touched)]
    return Shaped(shaped.spec, tuple(problems), shaped.repaired)


def _follows(problem: Problem, touched: Iterable[DocPath]) -> bool:
    """Whether a problem may only be there because another one was taken out of the way."""
    return any(problem.path[: len(path)] == path or _depends(problem, path) for path in touched)


def _depends(problem: Problem, path: DocPath) -> bool:
    part = path[2] if len(path) > 2 else None
    match path[:1], problem.kind:
        case ("agents",), "unknown_owner":
            return part in (None, "replicas")
        case ("tasks",), "unknown_task" | "duplicate":
            return part in (None, "id")
        case ("agents" | "tasks" | "model",), "team" | "missing":
            return problem.path in ((), ("agents",))
        case _:
            return False


def _secrets(expanded: Expanded, spec: TeamSpec) -> tuple[str, ...]:
    found = set(expanded.secrets())
    for env in (spec.env, *(part.env for part in (*spec.agents.values(), *spec.mcp_servers.values()))):
        for name, value in env.items():
            found |= expansion.secret_parts(name, value)
    return tuple(sorted(found, key=lambda value: (-len(value), value)))


def _literal_secrets(root: Node) -> Iterable[Problem]:
    for path, node in walk(root):
        if expansion.in_env(path) and isinstance(node, Scalar) and isinstance(node.value, str):
            name = str(path[-1])
            if "${" not in node.raw and expansion.secret_parts(name, node.value):
                what = f"{name} looks like a secret, and stands in the spec"
                remedy = f"write ${{{name}}} and set it in the environment: copies of the spec keep what is written"
                yield Problem("value", path, what, remedy=remedy, mark=node.mark)
