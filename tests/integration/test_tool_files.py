"""Read, Edit and Write on real files."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from retinue.tools.base import Decision, PathSubject, Refused, Tool, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.files import disk
from retinue.tools.files.edit.tool import Edit
from retinue.tools.files.read.tool import Read
from retinue.tools.files.state import FileState
from retinue.tools.files.swap import exchange
from retinue.tools.files.write.tool import Write
from retinue.tools.shell.runner import KeeperShell


@pytest.fixture
def ctx(tmp_path: Path) -> ToolContext:
    root = tmp_path / "work"
    root.mkdir()
    return ToolContext(
        agent="a~1", cwd=root, root=root, files=FileState(), shell=KeeperShell(), results_dir=tmp_path / "results"
    )


async def use(tool: Tool[Any, Any], ctx: ToolContext, **args: object) -> str:
    """Validation, then the call, as the pipeline does it; a refusal is raised."""
    parsed = tool.Input.model_validate(args)
    verdict = await tool.validate_input(parsed, ctx)
    if isinstance(verdict, Refused):
        raise ToolError(f"{verdict.code}: {verdict.message}")
    return tool.to_content((await tool.call(parsed, ctx, lambda _: None)).data)


async def ask(tool: Tool[Any, Any], ctx: ToolContext, **args: object) -> Decision | None:
    return await tool.check_permissions(tool.Input.model_validate(args), ctx)


# --- Read ------------------------------------------------------------------------------------------------------------


async def test_lines_come_with_their_numbers(ctx: ToolContext) -> None:
    (ctx.root / "a.txt").write_bytes(b"one\r\ntwo\n\nfour")
    assert await use(Read(), ctx, file_path="a.txt") == "1\tone\n2\ttwo\n3\t\n4\tfour"
    assert await use(Read(), ctx, file_path=str(ctx.root / "a.txt"), offset="2", limit="1") == (
        "2\ttwo\n<system-reminder>Lines 2 to 2 of 4 are shown. Read on with offset 3, or use Grep.</system-reminder>"
    )


async def test_two_thousand_lines_are_shown_by_default(ctx: ToolContext) -> None:
    (ctx.root / "a.txt").write_text("x\n" * 2_500)
    text = await use(Read(), ctx, file_path="a.txt")
    assert "\n2000\tx\n" in text
    assert "2001\t" not in text
    assert "Lines 1 to 2000 of 2500 are shown. Read on with offset 2001" in text
    seen = ctx.files.get(ctx.root / "a.txt")
    assert seen is not None
    assert seen.partial


async def test_a_file_that_is_too_many_tokens_is_shown_in_part_and_a_range_that_is_refused(ctx: ToolContext) -> None:
    (ctx.root / "a.txt").write_text(("x" * 999 + "\n") * 300)
    text = await use(Read(), ctx, file_path="a.txt")
    assert "PARTIAL view" in text
    assert len(text) < 101_000
    with pytest.raises(ToolError, match=r"Lines 1 to 200 are more than 25,000 tokens. Ask for at most 99 lines"):
        await use(Read(), ctx, file_path="a.txt", limit=200)
    (ctx.root / "b.txt").write_text("y" * 200_000)
    with pytest.raises(ToolError, match=r"Line 1 alone is larger than 25,000 tokens. Use Grep"):
        await use(Read(), ctx, file_path="b.txt", limit=1)


async def test_long_lines_are_cut_unless_their_range_was_given(ctx: ToolContext) -> None:
    (ctx.root / "a.txt").write_text("x" * 2_500 + "\nshort\n")
    assert await use(Read(), ctx, file_path="a.txt") == (
        f"1\t{'x' * 2_000}… [500 more characters]\n2\tshort\n<system-reminder>1 lines are too long and shown in part; "
        "give `offset` and `limit` to see them.</system-reminder>"
    )
    with pytest.raises(ToolError, match="5: Only a part"):
        await use(Write(), ctx, file_path="a.txt", content="x")
    assert "x" * 2_500 in await use(Read(), ctx, file_path="a.txt", limit=5)
    await use(Write(), ctx, file_path="a.txt", content="x")


async def test_the_same_part_of_an_unchanged_file_is_shown_once_until_it_is_asked_for_again(ctx: ToolContext) -> None:
    file = ctx.root / "a.txt"
    file.write_text("one\ntwo\n")
    whole = await use(Read(), ctx, file_path="a.txt")
    assert "has not changed since you read this part" in await use(Read(), ctx, file_path="a.txt", offset=1)
    assert await use(Read(), ctx, file_path="a.txt") == whole  # who asks again has lost it
    assert "has not changed" in await use(Read(), ctx, file_path="a.txt")
    assert "1\tone" in await use(Read(), ctx, file_path="a.txt", limit=1)
    os.utime(file)
    assert "has not changed" in await use(Read(), ctx, file_path="a.txt", limit=1)
    file.write_text("ONE\ntwo\n")
    assert "1\tONE" in await use(Read(), ctx, file_path="a.txt", limit=1)
    await use(Edit(), ctx, file_path="a.txt", old_string="ONE", new_string="1")
    assert "1\t1" in await use(Read(), ctx, file_path="a.txt", limit=1)


async def test_being_told_that_nothing_changed_keeps_the_right_to_change_the_file(ctx: ToolContext) -> None:
    (ctx.root / "a.txt").write_text("one\n")
    await use(Read(), ctx, file_path="a.txt")
    await use(Read(), ctx, file_path="a.txt")
    await use(Write(), ctx, file_path="a.txt", content="two\n")
    assert (ctx.root / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/version", "/sys/kernel/uevent_seqnum"])
async def test_the_files_of_the_kernel_are_refused(ctx: ToolContext, path: str) -> None:
    (ctx.root / "link").symlink_to(path)
    for name in (path, "link"):
        with pytest.raises(ToolError, match="belongs to the kernel"):
            await use(Read(), ctx, file_path=name)


async def test_an_empty_file_and_an_offset_behind_the_end_are_told_apart(ctx: ToolContext) -> None:
    (ctx.root / "empty").touch()
    (ctx.root / "short").write_text("x\n")
    assert "it is empty" in await use(Read(), ctx, file_path="empty")
    assert "only 1 lines: nothing at line 5" in await use(Read(), ctx, file_path="short", offset=5)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.bin", b"a\0b", "binary"),
        ("a.bmp", b"BM\0\0\0\0", "binary"),
    ],
)
async def test_what_is_no_text_is_refused(ctx: ToolContext, name: str, content: bytes, message: str) -> None:
    (ctx.root / name).write_bytes(content)
    with pytest.raises(ToolError, match=message):
        await use(Read(), ctx, file_path=name)


async def test_directories_and_pipes_are_refused_without_waiting(ctx: ToolContext) -> None:
    os.mkfifo(ctx.root / "pipe")
    with pytest.raises(ToolError, match="is a directory, not a file"):
        await use(Read(), ctx, file_path=".")
    async with asyncio.timeout(5):
        with pytest.raises(ToolError, match="not a regular file"):
            await use(Read(), ctx, file_path="pipe")
        with pytest.raises(ToolError, match="not a regular file"):
            await use(Write(), ctx, file_path="pipe", content="x")


async def test_a_missing_file_suggests_a_similar_one(ctx: ToolContext) -> None:
    (ctx.root / "src").mkdir()
    (ctx.root / "src" / "parser.py").touch()
    for wrong in ("src/parsre.py", "src/parser.js", f"{ctx.root.name}/src/parser.py"):
        with pytest.raises(ToolError, match=r"does not exist.*Did you mean .*/src/parser\.py\?"):
            await use(Read(), ctx, file_path=wrong)
    with pytest.raises(ToolError, match=r"does not exist: .*/zzz\. The working directory is"):
        await use(Read(), ctx, file_path="zzz")


async def test_nothing_is_suggested_outside_of_the_workspace(ctx: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").touch()
    with pytest.raises(ToolError, match="does not exist") as caught:
        await use(Read(), ctx, file_path="../secert.txt")
    assert "Did you mean" not in str(caught.value)


async def test_old_encodings_are_read_and_edited_as_they_are(ctx: ToolContext) -> None:
    file = ctx.root / "a.txt"
    file.write_bytes("Käse\n".encode("cp1252"))
    assert await use(Read(), ctx, file_path="a.txt") == "1\tKäse"
    await use(Edit(), ctx, file_path="a.txt", old_string="Käse", new_string="Brötchen")
    assert file.read_bytes() == "Brötchen\n".encode("cp1252")
    with pytest.raises(ToolError, match="encoded as cp1252, which has no character"):
        await use(Edit(), ctx, file_path="a.txt", old_string="Br", new_string="Ω")


async def test_a_file_too_large_for_memory_is_read_by_range(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retinue.tools.files.read.text.WHOLE_FILE_BYTES", 1_000)
    (ctx.root / "a.log").write_text("".join(f"line {n}\n" for n in range(1, 1_001)))
    assert await use(Read(), ctx, file_path="a.log", offset=500, limit=2) == (
        "500\tline 500\n501\tline 501\n"
        "<system-reminder>Lines 500 to 501 are shown. Read on with offset 502, or use Grep.</system-reminder>"
    )
    assert "fewer lines" in await use(Read(), ctx, file_path="a.log", offset=5_000)


# --- paths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", [Read(), Edit(), Write()], ids=lambda tool: tool.name)
@pytest.mark.parametrize("path", [".git/config", "sub/.GIT/hooks/post-commit", "link/config", "x/../.git/config"])
async def test_the_inside_of_a_repository_is_closed(ctx: ToolContext, tool: Tool[Any, Any], path: str) -> None:
    (ctx.root / ".git").mkdir()
    (ctx.root / ".git" / "config").write_text("[core]\n")
    (ctx.root / "link").symlink_to(ctx.root / ".git")
    args = {"Read": {}, "Edit": {"old_string": "c", "new_string": "x"}, "Write": {"content": "x"}}[tool.name]
    with pytest.raises(ToolError, match=r"inside \.git are not open"):
        await use(tool, ctx, file_path=path, **args)
    decision = await ask(tool, ctx, file_path=path, **args)
    assert decision is not None
    assert decision.behavior == "deny"


@pytest.mark.parametrize("path", ["../other", "/etc/passwd", "out/x"])
async def test_outside_of_the_workspace_is_asked_for(ctx: ToolContext, tmp_path: Path, path: str) -> None:
    (ctx.root / "out").symlink_to(tmp_path)
    for tool, args in ((Read(), {}), (Write(), {"content": ""}), (Edit(), {"old_string": "", "new_string": "x"})):
        decision = await ask(tool, ctx, file_path=path, **args)
        assert decision is not None
        assert decision.behavior == "ask"


async def test_inside_of_the_workspace_and_own_results_the_tool_has_no_objection(ctx: ToolContext) -> None:
    assert await ask(Read(), ctx, file_path="a/b") is None
    assert await ask(Write(), ctx, file_path="a/b", content="") is None
    assert await ask(Read(), ctx, file_path=str(ctx.results_dir / "x.txt")) is None
    written = await ask(Write(), ctx, file_path=str(ctx.results_dir / "x.txt"), content="")
    assert written is not None
    assert written.behavior == "ask"


def test_the_subject_is_absolute_and_without_dots(ctx: ToolContext) -> None:
    tool = Edit()
    args = tool.Input(file_path="a/../b", old_string="", new_string="x")
    assert tool.subject(args, ctx) == PathSubject(ctx.root / "b", write=True)


# --- Edit ------------------------------------------------------------------------------------------------------------


async def seen(ctx: ToolContext, name: str, content: bytes) -> Path:
    file = ctx.root / name
    file.write_bytes(content)
    await use(Read(), ctx, file_path=name)
    return file


async def test_an_edit_replaces_exactly_one_place(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.py", b"x = 1\ny = 1\n")
    answer = await use(Edit(), ctx, file_path="a.py", old_string="y = 1", new_string="y = 2")
    assert answer == f"Changed {file} at line 2."
    assert file.read_bytes() == b"x = 1\ny = 2\n"
    await use(Edit(), ctx, file_path="a.py", old_string="y = 2", new_string="y = 3")
    assert file.read_bytes() == b"x = 1\ny = 3\n"


async def test_several_places_need_replace_all(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.py", b"x x\nx")
    with pytest.raises(ToolError, match="9: old_string occurs 3 times"):
        await use(Edit(), ctx, file_path="a.py", old_string="x", new_string="y")
    answer = await use(Edit(), ctx, file_path="a.py", old_string="x", new_string="y", replace_all=True)
    assert answer.endswith("3 occurrences, the first at line 1.")
    assert file.read_bytes() == b"y y\ny"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"file_path": "a.txt", "old_string": "a", "new_string": "a"}, "1: old_string and new_string are the same"),
        ({"file_path": "a.txt", "old_string": "", "new_string": "x"}, "3: .* exists and has content"),
        ({"file_path": "b.txt", "old_string": "a", "new_string": "x"}, "4: File does not exist"),
        ({"file_path": "a.ipynb", "old_string": "a", "new_string": "x"}, "5: .* is a notebook: use NotebookEdit"),
        ({"file_path": "unread.txt", "old_string": "a", "new_string": "x"}, "6: .* has not been read yet"),
        ({"file_path": "a.txt", "old_string": "zzz", "new_string": "x"}, "8: old_string was not found"),
    ],
)
async def test_an_edit_that_cannot_be_is_refused_with_its_code(
    ctx: ToolContext, args: dict[str, str], message: str
) -> None:
    await seen(ctx, "a.txt", b"abc\n")
    (ctx.root / "unread.txt").write_text("abc")
    with pytest.raises(ToolError, match=message):
        await use(Edit(), ctx, **args)
    assert (ctx.root / "a.txt").read_bytes() == b"abc\n"


async def test_a_file_that_changed_since_it_was_read_is_refused(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.txt", b"abc\n")
    stamp = file.stat().st_mtime_ns
    file.write_bytes(b"abd\n")
    os.utime(file, ns=(stamp, stamp))
    with pytest.raises(ToolError, match=r"7: .* has changed since it was read"):
        await use(Edit(), ctx, file_path="a.txt", old_string="ab", new_string="x")


async def test_a_file_that_was_only_touched_may_be_edited(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.txt", b"abc\n")
    os.utime(file)
    await use(Edit(), ctx, file_path="a.txt", old_string="ab", new_string="x")
    assert file.read_bytes() == b"xc\n"


async def test_a_part_that_was_read_may_be_edited_but_not_the_whole_overwritten(ctx: ToolContext) -> None:
    file = ctx.root / "a.txt"
    file.write_text("one\ntwo\nthree\n")
    await use(Read(), ctx, file_path="a.txt", offset=2, limit=1)
    await use(Edit(), ctx, file_path="a.txt", old_string="two", new_string="2")
    with pytest.raises(ToolError, match="5: Only a part"):
        await use(Write(), ctx, file_path="a.txt", content="x")
    assert file.read_text() == "one\n2\nthree\n"


async def test_crlf_mark_and_mode_stay(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.sh", b"\xef\xbb\xbfone\r\ntwo\r\n")
    file.chmod(0o751)
    await use(Edit(), ctx, file_path="a.sh", old_string="one\ntwo", new_string="1\n1.5\n2")
    assert file.read_bytes() == b"\xef\xbb\xbf1\r\n1.5\r\n2\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


async def test_curly_quotes_are_found_by_straight_ones_and_kept(ctx: ToolContext) -> None:
    opening, closing, apostrophe = "\u201c", "\u201d", "\u2019"
    file = await seen(ctx, "a.md", f"She said {opening}don{apostrophe}t go{closing} -\n".encode())
    await use(Edit(), ctx, file_path="a.md", old_string='"don\'t go" -', new_string='"don\'t run", "I\'m here" -')
    assert file.read_text() == (
        f"She said {opening}don{apostrophe}t run{closing}, {opening}I{apostrophe}m here{closing} -\n"
    )


async def test_an_empty_old_string_creates_and_fills(ctx: ToolContext) -> None:
    assert "Created" in await use(Edit(), ctx, file_path="new/a.txt", old_string="", new_string="x\n")
    (ctx.root / "empty").touch()
    await use(Edit(), ctx, file_path="empty", old_string="", new_string="y\n")
    assert (ctx.root / "new" / "a.txt").read_text() + (ctx.root / "empty").read_text() == "x\ny\n"
    await use(Edit(), ctx, file_path="new/a.txt", old_string="x", new_string="z")
    assert (ctx.root / "new" / "a.txt").read_text() == "z\n"


async def test_an_edit_through_a_link_changes_the_target_and_keeps_the_link(ctx: ToolContext) -> None:
    file = await seen(ctx, "real.txt", b"abc\n")
    (ctx.root / "link.txt").symlink_to("real.txt")
    await use(Edit(), ctx, file_path="link.txt", old_string="abc", new_string="x")
    assert (ctx.root / "link.txt").is_symlink()
    assert file.read_bytes() == b"x\n"


# --- Write -----------------------------------------------------------------------------------------------------------


async def test_a_write_creates_parents_and_respects_the_umask(ctx: ToolContext) -> None:
    before = os.umask(0o027)
    try:
        assert "(2 lines)" in await use(Write(), ctx, file_path="a/b/c.txt", content="1\n2\n")
    finally:
        os.umask(before)
    assert stat.S_IMODE((ctx.root / "a/b/c.txt").stat().st_mode) == 0o640
    assert os.listdir(ctx.root / "a/b") == ["c.txt"]


async def test_an_existing_file_is_overwritten_only_when_it_was_read_and_is_the_same(ctx: ToolContext) -> None:
    file = ctx.root / "a.sh"
    file.write_text("old")
    file.chmod(0o755)
    with pytest.raises(ToolError, match=r"6: .*has not been read yet"):
        await use(Write(), ctx, file_path="a.sh", content="new")
    await use(Read(), ctx, file_path="a.sh")
    await use(Write(), ctx, file_path="a.sh", content="new")
    await use(Write(), ctx, file_path="a.sh", content="newer")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("newer", 0o755)
    file.write_text("by hand")
    with pytest.raises(ToolError, match=r"7: .*has changed since it was read"):
        await use(Write(), ctx, file_path="a.sh", content="new")
    assert file.read_text() == "by hand"


async def test_a_file_that_changes_or_appears_at_the_last_moment_is_not_lost(ctx: ToolContext) -> None:
    file = ctx.root / "a.txt"
    file.write_text("old")
    before = disk.take(file)
    file.write_text("by somebody else")
    with pytest.raises(ToolError, match="was changed by somebody else just now"):
        disk.replace(file, b"ours", before)
    with pytest.raises(ToolError, match="was created by somebody else just now"):
        disk.replace(file, b"ours", None)
    assert file.read_text() == "by somebody else"
    assert os.listdir(ctx.root) == ["a.txt"]


MEDDLER = "import pathlib, sys; pathlib.Path(sys.argv[1]).write_text('theirs')"


@pytest.mark.parametrize("can_exchange", [True, False])
async def test_another_process_that_writes_at_the_last_moment_wins(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    """Between the last look and the change where files can be exchanged; before the last look where not."""
    file = await seen(ctx, "a.txt", b"before")
    waiting = [MEDDLER]

    def meddled(one: Path, other: Path) -> bool:
        if waiting:
            subprocess.run([sys.executable, "-c", waiting.pop(), str(file)], check=True)
        return can_exchange and exchange(one, other)

    monkeypatch.setattr(disk, "exchange", meddled)
    with pytest.raises(ToolError, match="was changed by somebody else just now"):
        await use(Edit(), ctx, file_path="a.txt", old_string="before", new_string="after")
    assert file.read_text() == "theirs"
    assert os.listdir(ctx.root) == ["a.txt"]


async def test_without_an_exchange_of_files_an_edit_still_works(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "exchange", lambda one, other: False)
    file = await seen(ctx, "a.txt", b"before")
    await use(Edit(), ctx, file_path="a.txt", old_string="before", new_string="after")
    assert file.read_text() == "after"


async def test_a_file_that_was_deleted_at_the_last_moment_stays_deleted(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = await seen(ctx, "a.txt", b"before")

    def deleted(one: Path, other: Path) -> bool:
        file.unlink()
        return exchange(one, other)

    monkeypatch.setattr(disk, "exchange", deleted)
    with pytest.raises(ToolError, match="was changed by somebody else just now"):
        await use(Edit(), ctx, file_path="a.txt", old_string="before", new_string="after")
    assert os.listdir(ctx.root) == []


KILLED = """
import os, pathlib, signal, sys
from retinue.tools.files import disk
filled = disk._fill
def fill(*given):
    filled(*given)
    os.kill(os.getpid(), signal.SIGKILL)
disk._fill = fill
path = pathlib.Path(sys.argv[1])
disk.replace(path, b"half", disk.take(path))
"""


@pytest.mark.parametrize("name", ["a.txt", "new.txt"])
async def test_who_is_killed_while_writing_leaves_the_old_file_and_nothing_else(ctx: ToolContext, name: str) -> None:
    (ctx.root / "a.txt").write_text("old")
    done = subprocess.run([sys.executable, "-c", KILLED, str(ctx.root / name)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert (ctx.root / "a.txt").read_text() == "old"
    assert os.listdir(ctx.root) == ["a.txt"]


async def test_where_files_without_a_name_are_unknown_writing_works_as_well(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "_TMPFILE", os.O_DIRECTORY)
    file = await seen(ctx, "a.txt", b"before")
    await use(Edit(), ctx, file_path="a.txt", old_string="before", new_string="after")
    await use(Write(), ctx, file_path="b/c.txt", content="new")
    assert (file.read_text(), (ctx.root / "b/c.txt").read_text()) == ("after", "new")
    assert sorted(p.name for p in ctx.root.rglob("*")) == ["a.txt", "b", "c.txt"]


async def test_other_names_of_the_same_file_keep_what_they_had(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.txt", b"before")
    os.link(file, ctx.root / "other")
    await use(Edit(), ctx, file_path="a.txt", old_string="before", new_string="after")
    assert (file.read_text(), (ctx.root / "other").read_text()) == ("after", "before")


async def test_an_unwritable_place_is_an_error_with_its_reason(ctx: ToolContext) -> None:
    (ctx.root / "file").touch()
    with pytest.raises(ToolError, match=r"Cannot write .*: "):
        await use(Write(), ctx, file_path="file/below", content="x")
    with pytest.raises(ToolError, match="is a directory"):
        await use(Write(), ctx, file_path=".", content="x")


async def test_the_read_state_of_a_written_file_is_recorded(ctx: ToolContext) -> None:
    await use(Write(), ctx, file_path="a.txt", content="x")
    assert list(ctx.files.take_changes()) == [str(ctx.root / "a.txt")]
    assert ctx.files.take_changes() == {}


async def test_cancellation_in_the_middle_of_a_write_waits_for_its_end(ctx: ToolContext) -> None:
    args = Write.Input(file_path="a.txt", content="x" * 1_000_000)
    task = asyncio.create_task(Write().call(args, ctx, lambda _: None))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    before = sorted(p.name for p in ctx.root.iterdir())
    await asyncio.sleep(0.05)
    assert sorted(p.name for p in ctx.root.iterdir()) == before
    assert before in ([], ["a.txt"])


async def test_half_of_a_surrogate_pair_is_refused_and_nothing_is_written(ctx: ToolContext) -> None:
    file = await seen(ctx, "a.txt", b"abc\n")
    for half in ("\ud83d", "\udcff"):
        for tool, args in (
            (Write(), {"file_path": "b.txt", "content": half}),
            (Write(), {"file_path": half, "content": "x"}),
            (Edit(), {"file_path": "a.txt", "old_string": "b", "new_string": half}),
            (Edit(), {"file_path": "c.txt", "old_string": "", "new_string": half}),
        ):
            with pytest.raises(ToolError, match=r"surrogate|has no character"):
                await use(tool, ctx, **args)
    assert [p.name for p in ctx.root.iterdir()] == ["a.txt"]
    assert file.read_bytes() == b"abc\n"
