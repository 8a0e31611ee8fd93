"""Path rules mean what git's own ignore patterns mean."""

from __future__ import annotations

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from retinue.tools.permissions.rules import Anchors, path_matcher

FILES = [
    "a.py",
    "b.txt",
    ".env",
    "src/a.py",
    "src/.env",
    "src/lib/b.py",
    "src/lib/deep/c.py",
    "lib/src/d.py",
    "lib/e[1].txt",
    "docs/#notes",
    "docs/with space.md",
    "build/out/x.o",
    "deep/build/y.o",
]
PATTERNS = [
    *("*.py", "/*.py", "src", "/src", "src/", "src/*", "src/**", "**/src", "**/src/**", "/src/**", "src/lib"),
    *("**/lib/**", "lib/**/c.py", "src/**/c.py", "*", "**", "/**", "build/", "/build/", "**/build/**", "b*", "?.py"),
    *(
        "[ab].*",
        "[!a].py",
        "lib/e\\[1\\].txt",
        "docs/with space.md",
        ".env",
        "/.env",
        ".*",
        "src/*/",
        "*/lib",
        "\\#notes",
    ),
    *(f"{a}/{b}" for a, b in itertools.product(("src", "**", "*", "lib"), ("*.py", "lib", "**", "deep"))),
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in FILES:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    _git(root, "init", "-q")
    return root


@pytest.mark.parametrize("pattern", sorted(set(PATTERNS)))
def test_a_path_rule_allows_what_git_would_ignore(tree: Path, pattern: str) -> None:
    (tree / ".git" / "info" / "exclude").write_text(f"{pattern}\n")
    listed = _git(tree, "check-ignore", "--no-index", "-z", "--stdin", stdin="\0".join(FILES))
    fits = path_matcher(pattern, "allow", Anchors(tree, Path("/home/nobody")))
    assert {name for name in FILES if fits(str(tree / name), False)} == set(filter(None, listed.split("\0")))


def _git(root: Path, *arguments: str, stdin: str = "") -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    done = subprocess.run(["git", *arguments], cwd=root, input=stdin, capture_output=True, text=True, env=env)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout
