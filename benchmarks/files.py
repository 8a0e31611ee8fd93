"""What the file tools take on a large repository, against the programs that people would use: cat, rg, git grep.

    python benchmarks/files.py [--repo FOLDER] [--rounds 7] [--json]

Without `--repo` the source of a large published package is fetched by pip. Tool and program run in turns, in the same
process tree; of each the median counts. The tools run as the pipeline calls them, without hooks and permissions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from retinue.tools.base import AnyTool, ToolContext
from retinue.tools.files import ripgrep
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.glob.tool import Glob
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.read.tool import Read
from retinue.tools.files.state import FileState
from retinue.tools.shell.runner import KeeperShell

PACKAGE, VERSION = "django", "5.2.8"
SYMBOL = "get_queryset"
MOST_RATIO, SLACK_MS = 4.0, 60.0
"""A tool may take so many times what the fastest program takes, and so much more."""


@dataclass(frozen=True)
class Row:
    """Milliseconds of the tool, and of each program that does the same."""

    what: str
    tool_ms: float
    floors_ms: dict[str, float]

    @property
    def within(self) -> bool:
        return self.tool_ms <= min(self.floors_ms.values()) * MOST_RATIO + SLACK_MS


def fetch(folder: Path) -> Path:
    """The unpacked source of the package, as a git repository with one commit."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    wanted = ["--no-binary", ":all:", "--dest", str(folder), f"{PACKAGE}=={VERSION}"]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, timeout=240, check=False)
    if done.returncode:
        raise SystemExit(f"pip could not fetch {PACKAGE} {VERSION}:\n{done.stderr[-2000:]}")
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    [root] = (entry for entry in folder.iterdir() if entry.is_dir())
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "all of it"]):
        git(root, *arguments)
    return root


def git(root: Path, *arguments: str) -> str:
    """A git call of our own on a repository of our own."""
    settings = ("user.name=Pat", "user.email=pat@example.invalid", "core.fsmonitor=false", "gc.auto=0")
    flags = [part for setting in settings for part in ("-c", setting)]
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", "-C", str(root), *flags, *arguments], env=env, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


async def use(tool: AnyTool, ctx: ToolContext, **values: Any) -> str:
    """Validation and the call, and the text that the model gets."""
    args = tool.Input.model_validate(values)
    refused = await tool.validate_input(args, ctx)
    assert refused is None, refused
    return tool.to_content((await tool.call(args, ctx, lambda _: None)).data)


def context(root: Path) -> ToolContext:
    return ToolContext(agent="bench~1", cwd=root, root=root, files=FileState(), shell=KeeperShell())


def measure(root: Path, rounds: int) -> list[Row]:
    """One row for each kind of work; the programs are run on the same files, in turns with the tool."""
    rg = str(ripgrep.binary())
    largest = max((path for path in root.rglob("*.py") if path.stat().st_size < 90_000), key=lambda p: p.stat().st_size)
    name = str(largest.relative_to(root))
    anything = {"pattern": SYMBOL, "output_mode": "content", "head_limit": 0}
    return [
        _row("Read a large file", root, rounds, lambda ctx: use(Read(), ctx, file_path=name), {"cat": ["cat", name]}),
        _row("Read many files", root, rounds, _read_many(root), {"cat": ["cat", *_many(root)]}),
        _row("Edit a large file", root, rounds, _edit(name), {"cat and mv": _rewrite(name)}),
        _row(
            "Grep: names",
            root,
            rounds,
            lambda ctx: use(Grep(), ctx, pattern=SYMBOL),
            {"rg": [rg, "-l", SYMBOL], "git grep": ["git", "grep", "-l", SYMBOL]},
        ),
        _row(
            "Grep: lines",
            root,
            rounds,
            lambda ctx: use(Grep(), ctx, **anything),
            {"rg": [rg, "-n", "--sort=path", SYMBOL], "git grep": ["git", "grep", "-n", SYMBOL]},
        ),
        _row(
            "Grep: counts of a common word",
            root,
            rounds,
            lambda ctx: use(Grep(), ctx, pattern="self", output_mode="count"),
            {"rg": [rg, "-c", "self"], "git grep": ["git", "grep", "-c", "self"]},
        ),
        _row(
            "Glob: one kind of files",
            root,
            rounds,
            lambda ctx: use(Glob(), ctx, pattern="**/*.py"),
            {"rg": [rg, "--files", "-uu", "-g", "*.py"], "git ls-files": ["git", "ls-files", "*.py"]},
        ),
    ]


def _row(
    what: str,
    root: Path,
    rounds: int,
    work: Callable[[ToolContext], Any],
    programs: dict[str, list[str]],
) -> Row:
    async def turns() -> tuple[list[float], dict[str, list[float]]]:
        mine: list[float] = []
        theirs: dict[str, list[float]] = {name: [] for name in programs}
        for _ in range(rounds + 1):  # the first one warms up, and does not count
            ctx = context(root)
            start = time.perf_counter()
            await work(ctx)
            mine.append(time.perf_counter() - start)
            for name, command in programs.items():
                start = time.perf_counter()
                process = await asyncio.create_subprocess_exec(*command, cwd=root, stdout=subprocess.PIPE)
                await process.communicate()
                theirs[name].append(time.perf_counter() - start)
                if process.returncode not in (0, 1):
                    raise SystemExit(f"{' '.join(command[:3])} failed in {root}: it must be a git repository")
        return mine[1:], {name: times[1:] for name, times in theirs.items()}

    mine, theirs = asyncio.run(turns())
    return Row(what, _ms(mine), {name: _ms(times) for name, times in theirs.items()})


def _ms(times: Iterable[float]) -> float:
    return round(statistics.median(times) * 1e3, 2)


def _many(root: Path) -> list[str]:
    small = sorted(path for path in root.rglob("*.py") if 0 < path.stat().st_size < 40_000)
    return [str(path.relative_to(root)) for path in small[:200]]


def _read_many(root: Path) -> Callable[[ToolContext], Any]:
    names = _many(root)

    async def work(ctx: ToolContext) -> None:
        for name in names:
            await use(Read(), ctx, file_path=name)

    return work


def _edit(name: str) -> Callable[[ToolContext], Any]:
    async def work(ctx: ToolContext) -> None:
        """There and back, so that the file stays as it was; the read before it belongs to an edit."""
        await use(Read(), ctx, file_path=name, limit=1)
        line = (ctx.root / name).read_text().splitlines()[0]
        await use(Edit(), ctx, file_path=name, old_string=f"{line}\n", new_string=f"{line} #\n")
        await use(Edit(), ctx, file_path=name, old_string=f"{line} #\n", new_string=f"{line}\n")

    return work


def _rewrite(name: str) -> list[str]:
    once = f"cat '{name}' > '{name}.copy' && mv '{name}.copy' '{name}'"
    return ["sh", "-c", f"{once} && {once}"]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--repo", type=Path)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = (asked.repo or fetch(Path(folder))).resolve()
        rows = measure(root, asked.rounds)
    for row in rows:
        if asked.json:
            print(json.dumps({**asdict(row), "within_targets": row.within}))
        else:
            floors = ", ".join(f"{name} {ms:.1f}" for name, ms in row.floors_ms.items())
            print(f"{row.what}: {row.tool_ms:.1f} ms ({floors})")
    return 0 if all(row.within for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
