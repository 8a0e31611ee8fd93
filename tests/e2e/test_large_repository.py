"""Read, Edit, Grep and Glob on the source of a large published package, beside the programs that people would use."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from retinue.tools.base import ToolContext
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.glob.tool import Glob
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.read.tool import Read

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = spec_from_file_location("files_benchmark", Path(__file__).parents[2] / "benchmarks" / "files.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["files_benchmark"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def repository(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetched once; the tests leave it as it is."""
    root: Path = bench.fetch(tmp_path_factory.mktemp("large"))
    assert len(tracked(bench, root)) > 2_000
    return root


@pytest.fixture
def ctx(bench: ModuleType, repository: Path) -> ToolContext:
    made: ToolContext = bench.context(repository)
    return made


def tracked(bench: ModuleType, root: Path, *patterns: str) -> list[str]:
    return sorted(name for name in bench.git(root, "ls-files", "-z", *patterns).split("\0") if name)


async def test_glob_finds_the_files_that_git_knows(bench: ModuleType, repository: Path, ctx: ToolContext) -> None:
    for pattern in ("**/*.py", "*.html", "django/db/**/*.py"):
        args = Glob.Input(pattern=pattern)
        data = (await Glob().call(args, ctx, lambda _: None)).data
        known = tracked(bench, repository, f":(glob){pattern}" if "/" in pattern else pattern)
        assert (data.total, data.complete) == (len(known), True)
        assert set(data.filenames) <= set(known)
        assert len(data.filenames) == min(len(known), 100)


@pytest.mark.parametrize("pattern", ["get_queryset", r"class \w+Migration", "import .* as", "ñ"])
async def test_grep_finds_what_git_grep_finds(
    bench: ModuleType, repository: Path, ctx: ToolContext, pattern: str
) -> None:
    found = ("grep", "-I", "-P")
    names = await bench.use(Grep(), ctx, pattern=pattern, head_limit=0)
    assert sorted(names.splitlines()) == bench.git(repository, *found, "-l", pattern).splitlines()
    lines = await Grep().call(Grep.Input.model_validate(_content(pattern)), ctx, lambda _: None)
    expected = bench.git(repository, *found, "-n", pattern).splitlines()
    cut = [line[:300] for line in lines.data.entries]
    assert sorted(cut) == sorted(line.rstrip("\r")[:300] for line in expected)
    counts = await bench.use(Grep(), ctx, pattern=pattern, head_limit=0, output_mode="count")
    files = names.count("\n") + 1
    assert counts.splitlines()[-1] == f"Found {len(expected)} matching lines in {files} files."


def _content(pattern: str) -> dict[str, object]:
    return {"pattern": pattern, "output_mode": "content", "head_limit": 0}


async def test_every_text_that_git_knows_can_be_read_and_comes_back_whole(
    bench: ModuleType, repository: Path, ctx: ToolContext
) -> None:
    texts = [name for name in tracked(bench, repository) if name.endswith((".py", ".txt", ".html", ".po"))]
    assert len(texts) > 2_000
    read = 0
    for name in texts[::7]:
        text = (repository / name).read_bytes().decode().replace("\r\n", "\n")
        result = (await Read().call(Read.Input(file_path=name), ctx, lambda _: None)).data
        if text and not result.cut and not result.note and result.num_lines == result.total_lines:
            shown = [line.partition("\t")[2] for line in result.content.split("\n")]
            assert shown == text.removesuffix("\n").split("\n"), name
            read += 1
    assert read > 300


async def test_an_edit_there_and_back_leaves_no_difference(
    bench: ModuleType, repository: Path, ctx: ToolContext
) -> None:
    for name in tracked(bench, repository, "*.py")[::97]:
        first = next(iter((repository / name).read_text().splitlines()), "")
        if not first or (repository / name).read_text().count(f"{first}\n") != 1:
            continue
        await bench.use(Read(), ctx, file_path=name, limit=1)
        await bench.use(Edit(), ctx, file_path=name, old_string=f"{first}\n", new_string=f"{first}  # X\n")
        assert bench.git(repository, "diff", "--numstat", "--", name).split("\t")[:2] == ["1", "1"]
        await bench.use(Edit(), ctx, file_path=name, old_string=f"{first}  # X\n", new_string=f"{first}\n")
    assert bench.git(repository, "status", "--porcelain") == ""


def test_the_tools_keep_up_with_the_programs_that_do_the_same(bench: ModuleType, repository: Path) -> None:
    rows = bench.measure(repository, rounds=3)
    slow = [row for row in rows if row.tool_ms > 10 * min(row.floors_ms.values()) + 500]
    assert not slow, slow
    assert len(rows) == 7
    assert bench.git(repository, "status", "--porcelain") == ""
