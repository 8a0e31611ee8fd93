"""Order and fairness of leases."""

from __future__ import annotations

import pytest

from retinue.orchestrator.scheduling.leases import LeaseRequest, Leases, Mode
from retinue.tools.errors import InvariantBroken


def ask(name: str, mode: Mode, *workspaces: str, holder: str = "") -> LeaseRequest:
    return LeaseRequest(id=name, holder=holder or name, wants=dict.fromkeys(workspaces or ("w",), mode))


def test_readers_share_and_a_writer_waits_for_them() -> None:
    leases = Leases()
    assert leases.submit(ask("a", "shared"), 0) == ["a"]
    assert leases.submit(ask("b", "shared"), 0) == ["b"]
    assert leases.submit(ask("c", "exclusive"), 0) == []
    assert leases.submit(ask("d", "shared"), 0) == []
    assert leases.finish("a", 1) == []
    assert leases.finish("b", 1) == ["c"]
    assert leases.finish("c", 2) == ["d"]


def test_other_workspaces_are_never_waited_for() -> None:
    leases = Leases()
    assert leases.submit(ask("a", "exclusive", "w"), 0) == ["a"]
    assert leases.submit(ask("b", "exclusive", "v"), 0) == ["b"]


def test_several_workspaces_are_granted_all_or_nothing_without_deadlock() -> None:
    leases = Leases()
    leases.submit(ask("a", "exclusive", "w"), 0)
    assert leases.submit(ask("b", "exclusive", "w", "v"), 0) == []
    assert leases.submit(ask("c", "exclusive", "v"), 0) == []
    assert leases.finish("a", 0) == ["b"]
    assert leases.finish("b", 0) == ["c"]


def test_a_dead_holder_frees_what_it_held_and_what_it_waited_for() -> None:
    leases = Leases()
    leases.move_in("w", "x")
    leases.submit(ask("a", "exclusive", holder="x"), 0)
    leases.submit(ask("b", "exclusive", holder="x"), 0)
    leases.submit(ask("c", "exclusive", holder="y"), 0)
    assert leases.lose("x", 1) == ["c"]
    assert leases.tenants == {}


def test_asking_twice_is_asking_once_and_keeps_the_place() -> None:
    leases = Leases()
    leases.submit(ask("a", "exclusive"), 0)
    leases.submit(ask("b", "exclusive"), 0)
    leases.submit(ask("c", "exclusive"), 0)
    assert leases.submit(ask("b", "exclusive"), 5) == []
    assert leases.finish("a", 6) == ["b"]


def test_the_view_says_who_waits_for_whom_since_when() -> None:
    leases = Leases()
    leases.submit(ask("a", "shared"), 1)
    leases.submit(ask("b", "exclusive"), 2)
    leases.submit(ask("c", "shared"), 3)
    assert [(v.id, v.granted, v.since, v.behind) for v in leases.view()] == [
        ("a", True, 1, ()),
        ("b", False, 2, ("a",)),
        ("c", False, 3, ("b",)),
    ]


def test_a_request_for_nothing_is_a_bug() -> None:
    with pytest.raises(InvariantBroken, match="a wants no workspace"):
        Leases().submit(LeaseRequest("a", "a", {}), 0)
