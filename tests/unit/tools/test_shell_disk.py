"""What the analysis of a command is told of the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.shell.disk import MOST_FOUND, Disk


def test_links_are_followed_and_what_cannot_be_is_the_root(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("/etc")
    disk = Disk(tmp_path)
    assert disk.real(f"{tmp_path}/out/x") == "/etc/x"
    assert disk.real(f"{tmp_path}/none") == f"{tmp_path}/none"
    assert disk.real("/\0") == "/"


def test_a_glob_finds_what_the_shell_would_find(tmp_path: Path) -> None:
    for name in ("a", ".a", "d/b", "d/e/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    disk, zsh = Disk(tmp_path), Disk(tmp_path, "zsh")
    assert sorted(str(found) for found in disk.expand(f"{tmp_path}/*")) == [f"{tmp_path}/a", f"{tmp_path}/d"]
    assert list(disk.expand(f"{tmp_path}/.[!.]*")) == [f"{tmp_path}/.a"]
    assert f"{tmp_path}/d/e/c" not in list(disk.expand(f"{tmp_path}/**"))
    assert f"{tmp_path}/d/e/c" in list(zsh.expand(f"{tmp_path}/**"))
    assert list(disk.expand("/\0*")) in ([], [None])


def test_a_glob_that_finds_too_much_is_not_known(tmp_path: Path) -> None:
    for n in range(MOST_FOUND + 1):
        (tmp_path / f"d{n}").mkdir()
    assert list(Disk(tmp_path).expand(f"{tmp_path}/d*"))[-1] is None


def test_the_files_below_a_folder_are_named_but_those_of_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "d/b", ".git/c"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    disk = Disk(tmp_path)
    assert set(disk.below(str(tmp_path))) == {f"{tmp_path}/a", f"{tmp_path}/d/b"}
    assert list(disk.below(f"{tmp_path}/a")) == []
    assert list(disk.below("/\0")) == []
    monkeypatch.setattr("retinue.tools.shell.disk.MOST_FILES", 1)
    assert list(disk.below(str(tmp_path)))[1:] == [None]


def test_what_takes_too_long_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    now = [0.0]
    disk = Disk(tmp_path, seconds=1.0, clock=lambda: now[0])
    assert disk.real(str(tmp_path)) == str(tmp_path)
    now[0] = 2.0
    assert disk.real(str(tmp_path)) == "/"
    assert list(disk.expand(f"{tmp_path}/*")) == [None]
    assert list(disk.below(str(tmp_path))) == [None]


def test_git_finds_the_repository_of_the_workspace_or_another(tmp_path: Path) -> None:
    root = tmp_path / "w"
    for name in ("src/deep", "nested/.git", "bare/objects", "bare/refs", "bare/HEAD", "bare/sub", ".git"):
        (root / name).mkdir(parents=True)
    (root / "gitfile").mkdir()
    (root / "gitfile" / ".git").write_text("gitdir: /elsewhere")
    (root / "link").symlink_to("bare")
    disk = Disk(root)
    for name, ours in (
        (".", True),
        ("src/deep", True),
        ("nested", False),
        ("bare", False),
        ("bare/sub", False),
        ("gitfile", False),
        ("link/sub", False),
    ):
        assert disk.ours(str(root / name)) is ours, name


def test_a_further_folder_is_known_by_its_own_repository(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "lib" / ".git").mkdir(parents=True)
    disk = Disk(tmp_path / "w")
    assert disk.ours(str(tmp_path / "lib"))
    for name in ("HEAD", "objects", "refs"):
        (tmp_path / "lib" / "planted" / name).mkdir(parents=True)
    assert not disk.ours(str(tmp_path / "lib" / "planted"))


@pytest.mark.parametrize("own", [True, False])
def test_a_workspace_that_looks_like_a_bare_repository_needs_its_own(tmp_path: Path, own: bool) -> None:
    for name in ("HEAD", "objects", "refs", *((".git",) if own else ())):
        (tmp_path / name).mkdir()
    assert Disk(tmp_path).ours(str(tmp_path)) is own
