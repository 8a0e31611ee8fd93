"""What no confined command may see: keys, sockets, and everything that is retinue's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from retinue.orchestrator.workspaces.private_places import AT_HOME, BY_VARIABLE, OF_SYSTEM, Machine, private_places

HOME = Path("/home/ada")
STATE = Path("/home/ada/.local/state/retinue")


def places(environ: Mapping[str, str] | None = None) -> tuple[Path, ...]:
    return private_places(Machine(environ or {}, HOME, 1000, (STATE, Path("/tmp/retinue-1000"))))


@pytest.mark.parametrize(
    "place",
    [
        *(".ssh", ".gnupg", ".aws", ".config/gcloud", ".config/gh", ".netrc", ".docker/config.json", ".kube", ".npmrc"),
        *(".pypirc", ".git-credentials", ".mozilla", ".config/google-chrome", ".bash_history", ".zsh_history"),
        *(".local/share/keyrings", ".password-store", ".claude"),
    ],
)
def test_keys_and_credentials_at_home_are_private(place: str) -> None:
    assert HOME / place in places()


def test_the_state_and_the_clusters_of_retinue_are_private() -> None:
    assert {STATE, Path("/tmp/retinue-1000")} <= set(places())


def test_sockets_that_give_power_over_the_user_or_the_machine_are_private() -> None:
    wanted = {"/run/user/1000", "/tmp/tmux-1000", "/run/docker.sock", "/tmp/ray"}
    assert wanted <= {str(place) for place in places()}


def test_tmux_is_found_where_the_launching_shell_says_that_it_is() -> None:
    found = places({"TMUX": "/srv/tmux/ada,4711,0", "TMUX_TMPDIR": "/srv/t"})
    assert {Path("/srv/tmux/ada"), Path("/srv/t/tmux-1000")} <= set(found)


@pytest.mark.parametrize("variable", [name for names in BY_VARIABLE.values() for name in names])
def test_a_place_that_a_variable_names_is_private(variable: str) -> None:
    assert Path("/srv/keys/mine") in places({variable: "/srv/keys/mine"})


def test_a_variable_may_name_several_places() -> None:
    assert {Path("/srv/k/a"), Path("/srv/k/b")} <= set(places({"KUBECONFIG": "/srv/k/a:/srv/k/b"}))


@pytest.mark.parametrize("value", ["", "/", "/home", "relative/keys", "/srv/../home", "::"])
def test_a_variable_cannot_hide_the_whole_machine(value: str) -> None:
    assert places({"KUBECONFIG": value, "XDG_RUNTIME_DIR": value}) == places()


def test_every_place_stands_in_the_table_once_and_below_its_root() -> None:
    at_home = [place for group in AT_HOME.values() for place in group]
    of_system = [place for group in OF_SYSTEM.values() for place in group]
    assert len(set(at_home)) == len(at_home)
    assert len(set(of_system)) == len(of_system)
    assert [place for place in at_home if place.startswith("/") or ".." in place] == []
    assert [place for place in of_system if not place.startswith("/")] == []
