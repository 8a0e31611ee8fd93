"""What an agent's commands get of our environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from retinue.tools.errors import EnvironmentProblem, SpecError
from retinue.tools.shell.environment import GitIdentity, tool_environment

HOSTILE = {
    "PATH": "/usr/bin::.:bin:/opt/bin:",
    "LANG": "de_DE.UTF-8",
    "LC_TIME": "C",
    "TZ": "Europe/Berlin",
    "HOME": "/root",
    "TMPDIR": "/tmp",
    "TERM": "xterm",
    "USER": "root",
    "RAY_AUTH_TOKEN": "secret",
    "RAY_ADDRESS": "secret",
    "RETINUE_CONTROL_KEY": "secret",
    "TMUX": "secret",
    "TMUX_PANE": "secret",
    "ANTHROPIC_API_KEY": "secret",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "SSH_AUTH_SOCK": "secret",
    "LD_PRELOAD": "secret",
    "BASH_ENV": "secret",
    "ENV": "secret",
    "PYTHONPATH": "secret",
    "PYTHONSTARTUP": "secret",
    "GIT_DIR": "secret",
    "GIT_SSH_COMMAND": "secret",
    "GIT_CONFIG_COUNT": "secret",
    "GIT_CONFIG_GLOBAL": "secret",
    "GIT_EXEC_PATH": "secret",
    "PROMPT_COMMAND": "secret",
    "BASH_FUNC_git%%": "() { secret; }",
    "LCX": "secret",
}


def environment(
    base: dict[str, str] = HOSTILE, spec_env: dict[str, str] | None = None, ceilings: tuple[Path, ...] = ()
) -> dict[str, str]:
    return tool_environment(
        base,
        home=Path("/state/home"),
        tmp=Path("/state/tmp"),
        identity=GitIdentity("fixer", "fixer@retinue.invalid"),
        spec_env=spec_env or {},
        git_config=Path("/state/gitconfig"),
        git_ceilings=ceilings,
    )


def test_of_a_hostile_environment_only_search_path_and_language_come_through() -> None:
    assert environment() == {
        "PATH": "/usr/bin:/opt/bin",
        "LANG": "de_DE.UTF-8",
        "LC_TIME": "C",
        "TZ": "Europe/Berlin",
        "HOME": "/state/home",
        "TMPDIR": "/state/tmp",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/state/gitconfig",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_AUTHOR_NAME": "fixer",
        "GIT_AUTHOR_EMAIL": "fixer@retinue.invalid",
        "GIT_COMMITTER_NAME": "fixer",
        "GIT_COMMITTER_EMAIL": "fixer@retinue.invalid",
    }


def test_an_empty_environment_still_finds_programs() -> None:
    made = environment({})
    assert "/usr/bin" in made["PATH"].split(":")
    assert made["LANG"] == "C.UTF-8"


def test_the_spec_adds_and_overrides_but_not_what_keeps_git_safe() -> None:
    made = environment(spec_env={"DJANGO_SETTINGS": "x", "TERM": "xterm", "GIT_TERMINAL_PROMPT": "1"})
    assert (made["DJANGO_SETTINGS"], made["TERM"], made["GIT_TERMINAL_PROMPT"]) == ("x", "xterm", "0")


@pytest.mark.parametrize(
    "name", ["RAY_ADDRESS", "RETINUE_CALL", "TMUX", "GIT_DIR", "GIT_CONFIG_COUNT", "GIT_CEILING_DIRECTORIES"]
)
def test_the_spec_cannot_set_what_steers_us(name: str) -> None:
    with pytest.raises(SpecError, match=f"{name} cannot be set"):
        environment(spec_env={name: "x"})


def test_git_searches_no_further_up_than_it_is_told() -> None:
    made = environment({"GIT_CEILING_DIRECTORIES": "/"}, ceilings=(Path("/run/wt"), Path("/run")))
    assert made["GIT_CEILING_DIRECTORIES"] == "/run/wt:/run"
    assert "GIT_CEILING_DIRECTORIES" not in environment({"GIT_CEILING_DIRECTORIES": "/"})


def test_a_folder_that_git_cannot_be_kept_below_is_refused() -> None:
    with pytest.raises(EnvironmentProblem, match="--state-dir"):
        environment(ceilings=(Path("/odd:name/wt"),))
