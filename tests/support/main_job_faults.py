"""Faults planted by a seed into a package's source: names misspelt where one of the package's own tests notices.

A fault drops one letter out of a name that is read somewhere in a function. Which class of tests, which function,
which of its names: the seed decides. A place counts when the tests prove it: the class passes without the fault and
fails with it, with nothing but a NameError whose last frame is that line, whatever the other faults do.
"""

from __future__ import annotations

import ast
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

TARGETS = (
    ("tests/test_more.py", "more_itertools/more.py"),
    ("tests/test_more.py", "more_itertools/more.py"),
    ("tests/test_recipes.py", "more_itertools/recipes.py"),
)
SHORTEST_NAME = 6
TAIL = 2
"""Letters that follow the dropped one."""
FAR = 40
"""Lines between two faults in one file: they are different places for a merge, and for a reader."""
SLOWEST_S = 30.0


@dataclass(frozen=True, slots=True)
class Fault:
    """`line` counts from 1, `column` in bytes from 0; `tests` is the class that notices, as unittest names it."""

    file: str
    line: int
    column: int
    function: str
    right: str
    tests: str = ""

    @property
    def wrong(self) -> str:
        return self.right[: -TAIL - 1] + self.right[-TAIL:]

    @property
    def command(self) -> str:
        return f"python3 -m unittest {self.tests}"

    def put_into(self, text: str) -> str:
        lines = text.split("\n")
        code, end = lines[self.line - 1].encode(), self.column + len(self.right)
        assert code[self.column : end].decode() == self.right
        lines[self.line - 1] = (code[: self.column] + self.wrong.encode() + code[end:]).decode()
        return "\n".join(lines)


class Workbench:
    """A copy of the source in which faults are tried out."""

    def __init__(self, source: Path, folder: Path) -> None:
        shutil.copytree(source, folder)
        self._source = source
        self._folder = folder

    def run(self, tests: str, faults: Sequence[Fault]) -> tuple[int, str]:
        """The outcome of a class of tests, with exactly these faults in the source."""
        for file in {file for _, file in TARGETS}:
            shutil.copyfile(self._source / file, self._folder / file)
        write_faulty(faults, self._folder)
        return run_tests(self._folder, tests)


def plant(source: Path, root: Path, scratch: Path, seed: int, unnamed_in: str) -> tuple[Fault, ...]:
    """Three faults, in `root` afterwards; nothing that tells their places is in the text `unnamed_in`."""
    rng = random.Random(seed)
    bench = Workbench(source, scratch)
    faults: list[Fault] = []
    for test_file, file in TARGETS:
        candidates = _candidates(source, test_file, file, rng)
        faults.append(next(f for f in candidates if _is_hidden(f, unnamed_in) and _belongs(f, faults, source, bench)))
    write_faulty(faults, root)
    return tuple(faults)


def write_faulty(faults: Sequence[Fault], root: Path) -> None:
    for fault in faults:
        path = root / fault.file
        path.write_text(fault.put_into(path.read_text()))


def run_tests(root: Path, tests: str) -> tuple[int, str]:
    """Exit code and output; -1 when it took too long."""
    env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "unittest", *tests.split()]
    try:
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, timeout=SLOWEST_S, check=False)
    except subprocess.TimeoutExpired:
        return -1, ""
    return done.returncode, done.stderr.decode(errors="replace")


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _candidates(source: Path, test_file: str, file: str, rng: random.Random) -> Iterator[Fault]:
    """Names in the functions that a class of tests calls; few of each class, so that all of the file has its turn."""
    functions = {
        node.name: node for node in ast.parse((source / file).read_text()).body if isinstance(node, ast.FunctionDef)
    }
    classes = [n for n in ast.parse((source / test_file).read_text()).body if isinstance(n, ast.ClassDef)]
    module = test_file.removesuffix(".py").replace("/", ".")
    for tested in rng.sample(classes, len(classes)):
        called = {n.attr for n in ast.walk(tested) if isinstance(n, ast.Attribute)} & functions.keys()
        places = [place for name in sorted(called) for place in _places(functions[name], file)]
        for place in rng.sample(places, min(len(places), 2)):
            yield replace(place, tests=f"{module}.{tested.name}")


def _places(function: ast.FunctionDef, file: str) -> Iterator[Fault]:
    for node in (node for statement in function.body for node in ast.walk(statement)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and len(node.id) >= SHORTEST_NAME:
            yield Fault(file, node.lineno, node.col_offset, function.name, node.id)


def _is_hidden(fault: Fault, text: str) -> bool:
    telling = {fault.right, fault.wrong, fault.function, str(fault.line), fault.tests.rpartition(".")[2]}
    return not telling & names_in(text) and fault.file not in text


def _belongs(fault: Fault, others: Sequence[Fault], source: Path, bench: Workbench) -> bool:
    return (
        all(fault.right != o.right and (fault.file != o.file or abs(fault.line - o.line) >= FAR) for o in others)
        and _can_be_searched_for(fault, (source / fault.file).read_text())
        and _is_noticed(fault, bench.run(fault.tests, [*others, fault]))
        and bench.run(fault.tests, others)[0] == 0
        and all(bench.run(o.tests, [*(x for x in others if x is not o), fault])[0] == 0 for o in others)
    )


def _can_be_searched_for(fault: Fault, text: str) -> bool:
    """The right name is the only one of the file that is the wrong one with a letter more in that place."""
    head, tail = fault.wrong[:-TAIL], fault.wrong[-TAIL:]
    alike = re.findall(rf"\b{head}\w{tail}\b", text)
    return fault.wrong not in text and len(alike) > 1 and set(alike) == {fault.right}


def _is_noticed(fault: Fault, outcome: tuple[int, str]) -> bool:
    code, output = outcome
    frame = rf'File "[^"]*{re.escape(fault.file)}", line {fault.line}, in \S+\n(?:    .*\n)+'
    here = re.findall(rf"{frame}NameError: name '{fault.wrong}' is not defined", output)
    return code == 1 and len(here) > 0 and len(here) == len(re.findall(r"^\w+Error: ", output, re.MULTILINE))
