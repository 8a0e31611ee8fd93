"""Every command explains itself, with an example, in the help and in docs/cli.md; and the help is quick."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup

from retinue.orchestrator.cli.main import main, make_command
from retinue.orchestrator.cli.sections import SECTIONS

DOC = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
ROOT = make_command()


def paths_of(command: object, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every group and every command."""
    yield path
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from paths_of(child, (*path, name))


def is_group(path: tuple[str, ...]) -> bool:
    command: object = ROOT
    for name in path:
        assert isinstance(command, TyperGroup)
        command = command.commands[name]
    return isinstance(command, TyperGroup)


PATHS = list(paths_of(ROOT))
COMMANDS = [path for path in PATHS if not is_group(path)]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: " ".join(path) or "retinue")
def test_the_help_has_an_example_that_can_be_typed(path: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path, "--help"]) == 0
    caught = capsys.readouterr()
    assert caught.err == ""
    lines = [line.strip() for line in caught.out.splitlines()]
    assert "Example:" in lines
    example = next(line for line in lines[lines.index("Example:") :] if line.startswith("retinue "))
    assert tuple(shlex.split(example)[1 : len(path) + 1]) == path
    at = lines.index("Example:")
    assert lines[at + 1 : at + 4] == ["", example, ""], "an example stays on its line"
    assert max(len(line) for line in caught.out.splitlines() if example not in line) <= 80


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_the_document_shows_every_command_with_an_example(path: tuple[str, ...]) -> None:
    examples = re.findall(r"^\| `(retinue [^`]+)` \|", DOC, re.MULTILINE)
    assert any(tuple(shlex.split(example)[1 : len(path) + 1]) == path for example in examples)


def test_every_command_of_the_document_exists() -> None:
    for example in re.findall(r"`retinue ([a-z][^`]*)`", DOC):
        words = shlex.split(example)
        assert any(tuple(words[: len(path)]) == path for path in COMMANDS), example


def test_the_document_has_every_exit_code() -> None:
    assert re.findall(r"^\| (\d+) \|", DOC, re.MULTILINE) == ["0", "1", "2", "3", "130", "141"]


def test_every_command_has_its_section_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    placed = [name for _, names in SECTIONS for name in names]
    assert set(ROOT.commands) <= set(placed)
    assert len(placed) == len(set(placed))
    main(["--help"])
    out = capsys.readouterr().out
    for name in ROOT.commands:
        assert re.search(rf"^  {name} +\S", out, re.MULTILINE)


def test_a_newcomer_is_told_three_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    caught = capsys.readouterr()
    assert caught.err == ""
    assert len(re.findall(r"^  retinue ", caught.out, re.MULTILINE)) == 3
    assert "retinue --help" in caught.out
    assert len(caught.out.splitlines()) <= 12


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"retinue \d+\.\d+\.\d+\S*\n", capsys.readouterr().out)


def test_a_mistyped_command_is_wrong_usage_with_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["statsu"]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert "Did you mean 'status'?" in caught.err


@pytest.mark.parametrize("args", [["status"], ["status", "a", "b", "c"], ["ps", "--nope"], ["cluster"], ["diff"]])
def test_wrong_usage_exits_2_and_prints_nothing_on_stdout(args: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 2
    assert capsys.readouterr().out == ""
