"""Glob and Grep on real files, through ripgrep."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retinue.tools.base import Refused, Tool, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.files import ripgrep
from retinue.tools.files.glob.tool import Glob
from retinue.tools.files.grep.tool import Grep
from retinue.tools.files.state import FileState
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.shell.runner import KeeperShell


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "work"
    for name, content in {
        "src/a.py": "import os\nclass A:\n    pass\n",
        "src/b.py": "import os\nimport sys\n",
        "src/deep/c.ts": "const x = 'os'\n",
        ".hidden/d.py": "import os\n",
        ".git/config": "import os\n",
        "nested/.git/e.py": "import os\n",
        "README.md": "about OS\n",
        "ignored.log": "import os\n",
        ".gitignore": "*.log\n",
    }.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return ToolContext(agent="a~1", cwd=root, root=root, files=FileState(), shell=KeeperShell())


async def use(tool: Tool[Any, Any], ctx: ToolContext, **args: object) -> str:
    parsed = tool.Input.model_validate({name.replace("_dash_", "-"): value for name, value in args.items()})
    verdict = await tool.validate_input(parsed, ctx)
    if isinstance(verdict, Refused):
        raise ToolError(f"{verdict.code}: {verdict.message}")
    return tool.to_content((await tool.call(parsed, ctx, lambda _: None)).data)


async def glob(ctx: ToolContext, pattern: str, path: str | None = None) -> list[str]:
    return (await use(Glob(), ctx, pattern=pattern, path=path)).splitlines()


# --- Glob ------------------------------------------------------------------------------------------------------------


async def test_the_newest_file_comes_first(ctx: ToolContext) -> None:
    for age, name in enumerate(("src/b.py", ".hidden/d.py", "src/a.py")):
        os.utime(ctx.root / name, (1_000_000 - age, 1_000_000 - age))
    assert await glob(ctx, "**/*.py") == ["src/b.py", ".hidden/d.py", "src/a.py"]


async def test_patterns_match_as_in_a_shell_with_double_stars(ctx: ToolContext) -> None:
    assert sorted(await glob(ctx, "*.py")) == [".hidden/d.py", "src/a.py", "src/b.py"]
    assert sorted(await glob(ctx, "src/*")) == ["src/a.py", "src/b.py"]
    assert sorted(await glob(ctx, "src/**/*.{py,ts}")) == ["src/a.py", "src/b.py", "src/deep/c.ts"]
    assert await glob(ctx, "*.ts", "src") == ["src/deep/c.ts"]
    assert await glob(ctx, f"{ctx.root}/src/*.ts") == ["No files found"]
    assert await glob(ctx, f"{ctx.root}/src/deep/*") == ["src/deep/c.ts"]


async def test_ignored_files_are_found_and_the_inside_of_repositories_is_not(ctx: ToolContext) -> None:
    assert await glob(ctx, "*.log") == ["ignored.log"]
    assert await glob(ctx, "**/.git/**") == ["No files found"]
    assert await glob(ctx, "**/e.py") == ["No files found"]
    with pytest.raises(ToolError, match=r"inside \.git"):
        await glob(ctx, "*", ".git")
    with pytest.raises(ToolError, match=r"inside \.git"):
        await glob(ctx, f"{ctx.root}/.git/*")


async def test_at_most_a_hundred_files_are_shown_and_the_rest_is_counted(ctx: ToolContext) -> None:
    for number in range(150):
        (ctx.root / f"f{number}.txt").touch()
    lines = await glob(ctx, "*.txt")
    assert len(lines) == 101
    assert lines[-1].startswith("(100 of 150 files are shown")


async def test_a_bad_pattern_or_place_is_an_error_and_not_an_empty_result(ctx: ToolContext) -> None:
    with pytest.raises(ToolError, match="The search for files failed: "):
        await glob(ctx, "a{b")
    with pytest.raises(ToolError, match="is not a directory"):
        await glob(ctx, "*", "missing")
    for pattern in ("", "a\0b", "*/../../x"):
        with pytest.raises(ToolError, match="3: "):
            await glob(ctx, pattern)


async def test_what_a_pattern_names_outside_is_asked_for(ctx: ToolContext, tmp_path: Path) -> None:
    for pattern, path in (("/etc/*", None), ("../*", None), ("*", ".."), ("*", "/etc")):
        decision = await Glob().check_permissions(Glob.Input(pattern=pattern, path=path), ctx)
        assert decision is not None
        assert decision.behavior == "ask"
    assert await Glob().check_permissions(Glob.Input(pattern="**/*"), ctx) is None


# --- Grep ------------------------------------------------------------------------------------------------------------


async def test_files_with_matches_is_the_default_newest_first(ctx: ToolContext) -> None:
    for age, name in enumerate(("src/b.py", ".hidden/d.py", "src/a.py")):
        os.utime(ctx.root / name, (1_000_000 - age, 1_000_000 - age))
    assert await use(Grep(), ctx, pattern="^import os") == "src/b.py\n.hidden/d.py\nsrc/a.py"


async def test_content_shows_lines_with_numbers_and_context(ctx: ToolContext) -> None:
    grep = Grep()
    content = {"output_mode": "content", "path": "src"}
    assert await use(grep, ctx, pattern="class", **content) == "src/a.py:2:class A:"
    assert await use(grep, ctx, pattern="class", **content, _dash_n=False) == "src/a.py:class A:"
    assert await use(grep, ctx, pattern="class", **content, _dash_o=True) == "src/a.py:2:class"
    around = "src/a.py-1-import os\nsrc/a.py:2:class A:\nsrc/a.py-3-    pass"
    assert await use(grep, ctx, pattern="class", **content, _dash_C="1") == around
    assert await use(grep, ctx, pattern="class", **content, context=1) == around
    assert await use(grep, ctx, pattern="class", **content, _dash_B=1) == around.rpartition("\n")[0]
    assert await use(grep, ctx, pattern="class", **content, _dash_A=1) == around.partition("\n")[2]


async def test_case_glob_type_and_single_files_narrow_the_search(ctx: ToolContext) -> None:
    grep = Grep()
    assert await use(grep, ctx, pattern="ABOUT", _dash_i=True) == "README.md"
    assert await use(grep, ctx, pattern="os", glob="*.{ts,md}") == "src/deep/c.ts"
    assert await use(grep, ctx, pattern="os", glob="*.py,!b.py", path="src") == "src/a.py"
    assert await use(grep, ctx, pattern="os", type="ts") == "src/deep/c.ts"
    assert await use(grep, ctx, pattern="os", path="src/deep/c.ts", output_mode="content") == (
        "src/deep/c.ts:1:const x = 'os'"
    )


async def test_multiline_lets_a_pattern_cross_line_ends(ctx: ToolContext) -> None:
    grep = Grep()
    assert await use(grep, ctx, pattern="os.class", output_mode="content") == "No matches found"
    assert await use(grep, ctx, pattern="os.class", output_mode="content", multiline=True) == (
        "src/a.py:1:import os\nsrc/a.py:2:class A:"
    )


async def test_counting_ends_with_a_total_over_all_files(ctx: ToolContext) -> None:
    text = await use(Grep(), ctx, pattern="import", path="src", output_mode="count", head_limit=1)
    assert text == (
        "src/a.py:1\n(More is there: read on with offset 1, or raise head_limit.)\nFound 3 matching lines in 2 files."
    )


async def test_ignored_files_need_their_name_and_repositories_stay_closed(ctx: ToolContext) -> None:
    (ctx.root / ".git").joinpath("HEAD").write_text("ref: refs/heads/main\n")
    grep = Grep()
    assert "ignored.log" not in await use(grep, ctx, pattern="import os")
    assert await use(grep, ctx, pattern="import os", path="ignored.log") == "ignored.log"
    assert ".git/" not in await use(grep, ctx, pattern="import os", glob="**/.git/**")
    with pytest.raises(ToolError, match=r"inside \.git"):
        await use(grep, ctx, pattern="import os", path=".git")


async def test_head_limit_and_offset_page_through_stable_results(ctx: ToolContext) -> None:
    (ctx.root / "big.txt").write_text("".join(f"row {n}\n" for n in range(600)))
    grep = Grep()
    first = (await use(grep, ctx, pattern="row", output_mode="content")).splitlines()
    assert len(first) == 251
    assert first[249:] == ["big.txt:250:row 249", "(More is there: read on with offset 250, or raise head_limit.)"]
    rest = (await use(grep, ctx, pattern="row", output_mode="content", offset=550)).splitlines()
    assert (len(rest), rest[0]) == (50, "big.txt:551:row 550")
    assert len((await use(grep, ctx, pattern="row", output_mode="content", head_limit=0)).splitlines()) == 600
    assert await use(grep, ctx, pattern="row", output_mode="content", offset=600) == "No entries at this offset"


async def test_long_lines_are_cut(ctx: ToolContext) -> None:
    (ctx.root / "min.js").write_text("needle" + "x" * 10_000)
    assert len(await use(Grep(), ctx, pattern="needle", output_mode="content")) < 700


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"pattern": "a("}, "unclosed group"),
        ({"pattern": "a", "type": "nonsense"}, "unrecognized file type: nonsense"),
        ({"pattern": "a", "glob": "a{b"}, "error parsing glob"),
        ({"pattern": "a", "path": "missing.py"}, "File does not exist"),
        ({"pattern": ""}, "3: The pattern is empty"),
    ],
)
async def test_errors_come_with_their_reason(ctx: ToolContext, args: dict[str, str], message: str) -> None:
    with pytest.raises(ToolError, match=message):
        await use(Grep(), ctx, **args)


async def test_a_pattern_that_looks_like_an_option_is_a_pattern(ctx: ToolContext) -> None:
    (ctx.root / "x.txt").write_text("--files\n")
    assert await use(Grep(), ctx, pattern="--files") == "x.txt"


# --- what may not be read --------------------------------------------------------------------------------------------

MODES = ("content", "count", "files_with_matches")
RULES = ("Read(secrets/**)", "Read(.env)", "Read(we*)")
SECRETS = ("secrets/deep/key.py", ".env", "we\nird.py")


def guarded(ctx: ToolContext, *deny: str) -> tuple[PermissionPolicy, ToolContext]:
    book = RuleBook.of([RuleTexts("project", deny=deny)], Anchors(ctx.root, ctx.root.parent))
    policy = PermissionPolicy((Rights(book),))
    return policy, replace(ctx, may_read=policy.may_read)


@pytest.fixture
def kept(ctx: ToolContext) -> ToolContext:
    for name in SECRETS:
        (ctx.root / name).parent.mkdir(parents=True, exist_ok=True)
        (ctx.root / name).write_text("import os\n")
    (ctx.root / "alias.py").symlink_to("secrets/deep/key.py")
    return ctx


@pytest.mark.parametrize("mode", MODES)
async def test_a_search_leaves_out_what_may_not_be_read_and_finds_the_rest(kept: ToolContext, mode: str) -> None:
    _, ctx = guarded(kept, *RULES)
    text = await use(Grep(), ctx, pattern="import os", output_mode=mode)
    assert all(name in text for name in ("src/a.py", "src/b.py", ".hidden/d.py"))
    assert not [word for word in ("secrets", ".env", "ird", "alias") if word in text]
    assert "secrets" in await use(Grep(), kept, pattern="import os", output_mode=mode)


async def test_names_of_files_that_may_not_be_read_are_left_out_and_not_counted(kept: ToolContext) -> None:
    _, ctx = guarded(kept, *RULES)
    assert sorted(await glob(ctx, "**/*.py")) == [".hidden/d.py", "src/a.py", "src/b.py"]
    assert await glob(ctx, "{.env,key.py,alias.py}") == ["No files found"]


@pytest.mark.parametrize("tool", [Grep(), Glob()], ids=lambda tool: tool.name)
async def test_the_folder_around_them_is_open_to_a_search_that_filters_alone(
    kept: ToolContext, tool: Tool[Any, Any]
) -> None:
    policy, ctx = guarded(kept, *RULES)
    asked = [(ctx, None, "allow"), (ctx, "secrets", "deny"), (kept, None, "deny")]  # the last one has no filter
    for context, path, behavior in asked:
        args = tool.Input.model_validate({"pattern": "x", "path": path})
        assert (await policy.decide(tool, args, context, forced_ask=None)).behavior == behavior


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_left_out_leaves_no_trace_in_numbers_and_pages(kept: ToolContext, mode: str) -> None:
    (kept.root / "secrets" / "many.py").write_text("import os\n" * 1_000)
    _, ctx = guarded(kept, *RULES)
    asked = {"pattern": "^import os$", "output_mode": mode, "head_limit": 2}
    closed = await use(Grep(), ctx, **asked)
    for name in (*SECRETS, "secrets/many.py", "alias.py"):
        (ctx.root / name).unlink()
    assert await use(Grep(), ctx, **asked) == closed


async def test_a_rule_to_ask_about_a_file_closes_it_for_searches_too(kept: ToolContext) -> None:
    book = RuleBook.of([RuleTexts("user", ask=("Read(src/a.py)",))], Anchors(kept.root, kept.root.parent))
    ctx = replace(kept, may_read=PermissionPolicy((Rights(book),)).may_read)
    assert "a.py" not in await use(Grep(), ctx, pattern="class A")


async def test_names_with_line_ends_are_listed_on_one_line(kept: ToolContext) -> None:
    shown = {"files_with_matches": "we\\x0aird.py", "content": "we\\x0aird.py:1:import os", "count": "we\\x0aird.py:1"}
    for mode, line in shown.items():
        assert line in (await use(Grep(), kept, pattern="import os", output_mode=mode)).splitlines()
    assert "we\\x0aird.py" in await glob(kept, "*.py")


async def test_groups_of_lines_are_told_apart_and_carriage_returns_are_not_shown(ctx: ToolContext) -> None:
    (ctx.root / "x.txt").write_bytes(b"hit\r\n" + b"no\r\n" * 9 + b"hit\r\n")
    args = {"pattern": "hit", "path": "x.txt", "output_mode": "content"}
    assert await use(Grep(), ctx, **args, _dash_A=1) == "x.txt:1:hit\nx.txt-2-no\n--\nx.txt:11:hit"
    assert await use(Grep(), ctx, **args, _dash_n=False) == "x.txt:hit\nx.txt:hit"


async def test_a_match_in_a_binary_file_is_told_and_its_bytes_are_not(kept: ToolContext) -> None:
    for name in ("a.bin", "secrets/b.bin"):
        (kept.root / name).write_bytes(b"needle\n" + b"text\n" * 100_000 + b"\0needle\n")
    _, ctx = guarded(kept, *RULES)
    first, second = (await use(Grep(), ctx, pattern="needle", output_mode="content")).splitlines()
    assert first == "a.bin:1:needle"
    assert second.startswith("a.bin: ")
    assert "binary file" in second


@pytest.mark.parametrize("pattern", ["(a+)+$", "x{1000}{1000}", "\\p{L}{50,5000}", "(?i)" + "a?" * 500, "[" * 100])
async def test_a_hostile_pattern_ends_soon(ctx: ToolContext, pattern: str) -> None:
    (ctx.root / "x.txt").write_text("a" * 50_000 + "!\n")
    async with asyncio.timeout(30):
        try:
            text = await use(Grep(), ctx, pattern=pattern, output_mode="count")
        except ToolError as error:
            text = str(error)
    assert any(words in text for words in ("failed", "took longer", "matching lines", "No files"))


async def test_a_pattern_too_long_for_a_command_is_refused(ctx: ToolContext) -> None:
    for tool in (Grep(), Glob()):
        with pytest.raises(ToolError, match=r"3: .*longer than"):
            await use(tool, ctx, pattern="a" * 200_000)


async def test_a_search_that_takes_too_long_is_stopped(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ripgrep, "DEADLINE_S", 0.2)
    slow = ctx.root.parent / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr(ripgrep, "binary", lambda: slow)
    with pytest.raises(ToolError, match="The search took longer than"):
        await use(Grep(), ctx, pattern="x")


def test_ripgrep_is_the_one_of_this_installation() -> None:
    assert ripgrep.binary().parent == Path(sys.prefix) / "bin"
