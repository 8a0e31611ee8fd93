"""Who may run a call in which workspace, in which order. Pure: events in, grants out; safety is the kernel's lock.

A workspace is a readers-writer queue: shared leases side by side, an exclusive one alone, first come first served,
so that nobody starves. One request may name several workspaces and is granted all or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from retinue.tools.errors import InvariantBroken

Mode = Literal["shared", "exclusive"]


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """`holder` is `run/agent/incarnation`: what dies together. `wants` maps workspace keys to modes."""

    id: str
    holder: str
    wants: Mapping[str, Mode]
    what: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    request: LeaseRequest
    since: float
    granted_at: float | None = None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """One line for people: who holds or waits for what, since when, and for whom it waits."""

    id: str
    holder: str
    what: str
    workspaces: tuple[str, ...]
    mode: Mode
    granted: bool
    since: float
    behind: tuple[str, ...] = ()


@dataclass(slots=True)
class Leases:
    """All requests in order of arrival, held ones included; and who works where."""

    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    tenants: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def move_in(self, workspace: str, holder: str) -> set[str]:
        """Register a tenant; returns all tenants of the workspace now."""
        here = self.tenants.setdefault(workspace, set())
        here.add(holder)
        return set(here)

    def submit(self, request: LeaseRequest, now: float) -> list[str]:
        """Ask. Asking twice with one id is asking once. Returns the ids granted by this event."""
        if not request.wants:
            raise InvariantBroken(f"{request.id} wants no workspace")
        if request.id not in self.entries:
            self.entries[request.id] = Entry(request, now)
        return self._grant(now)

    def finish(self, request_id: str, now: float) -> list[str]:
        """Give back, or withdraw what still waits."""
        self.entries.pop(request_id, None)
        return self._grant(now)

    def lose(self, holder: str, now: float) -> list[str]:
        """Everything of a dead holder is free; its kernel locks went with its processes."""
        self.entries = {i: e for i, e in self.entries.items() if e.request.holder != holder}
        for here in self.tenants.values():
            here.discard(holder)
        self.tenants = {w: here for w, here in self.tenants.items() if here}
        return self._grant(now)

    def is_granted(self, request_id: str) -> bool:
        entry = self.entries.get(request_id)
        return entry is not None and entry.granted_at is not None

    def view(self) -> list[LeaseView]:
        return [self._line(entry) for entry in self.entries.values()]

    def _grant(self, now: float) -> list[str]:
        granted: list[str] = []
        ahead: dict[str, list[Mode]] = {}
        for request_id, entry in self.entries.items():
            wants = entry.request.wants
            if entry.granted_at is None and all(_fits(mode, ahead.get(w, [])) for w, mode in wants.items()):
                self.entries[request_id] = Entry(entry.request, entry.since, now)
                granted.append(request_id)
            for workspace, mode in wants.items():
                ahead.setdefault(workspace, []).append(mode)
        return granted

    def _line(self, entry: Entry) -> LeaseView:
        wants = entry.request.wants
        behind = () if entry.granted_at is not None else tuple(self._ahead_of(entry))
        return LeaseView(
            id=entry.request.id,
            holder=entry.request.holder,
            what=entry.request.what,
            workspaces=tuple(wants),
            mode="exclusive" if "exclusive" in wants.values() else "shared",
            granted=entry.granted_at is not None,
            since=entry.since if entry.granted_at is None else entry.granted_at,
            behind=behind,
        )

    def _ahead_of(self, entry: Entry) -> list[str]:
        found: list[str] = []
        for other in self.entries.values():
            if other is entry:
                break
            common = set(other.request.wants) & set(entry.request.wants)
            if any("exclusive" in (other.request.wants[w], entry.request.wants[w]) for w in common):
                found.append(other.request.id)
        return found


def _fits(mode: Mode, ahead: list[Mode]) -> bool:
    """Nothing overtakes: a shared lease needs only shared ones before it, an exclusive one nobody."""
    return not ahead if mode == "exclusive" else "exclusive" not in ahead
