"""Laws of the leases: no unsafe overlap, nobody overtaken, nobody stuck."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from retinue.orchestrator.scheduling.leases import LeaseRequest, Leases, Mode

WORKSPACES = ("u", "v", "w")
MODES = st.sampled_from(("shared", "exclusive"))


class LeaseLaws(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.leases = Leases()
        self.count = 0

    @rule(wants=st.dictionaries(st.sampled_from(WORKSPACES), MODES, min_size=1), holder=st.sampled_from("xyz"))
    def submit(self, wants: dict[str, Mode], holder: str) -> None:
        self.count += 1
        self.leases.submit(LeaseRequest(f"r{self.count}", holder, wants), self.count)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if self.leases.entries:
            self.leases.finish(data.draw(st.sampled_from(sorted(self.leases.entries))), self.count)

    @rule(holder=st.sampled_from("xyz"))
    def lose(self, holder: str) -> None:
        self.leases.lose(holder, self.count)
        assert all(e.request.holder != holder for e in self.leases.entries.values())

    @invariant()
    def an_exclusive_lease_is_alone(self) -> None:
        for workspace in WORKSPACES:
            modes = [
                e.request.wants[workspace]
                for e in self.leases.entries.values()
                if e.granted_at is not None and workspace in e.request.wants
            ]
            assert "exclusive" not in modes or len(modes) == 1

    @invariant()
    def the_first_of_all_is_never_kept_waiting(self) -> None:
        first = next(iter(self.leases.entries.values()), None)
        assert first is None or first.granted_at is not None

    @invariant()
    def nobody_is_overtaken(self) -> None:
        seen: dict[str, list[tuple[Mode, bool]]] = {}
        for entry in self.leases.entries.values():
            for workspace, mode in entry.request.wants.items():
                before = seen.setdefault(workspace, [])
                if entry.granted_at is not None and mode == "exclusive":
                    assert not before
                if entry.granted_at is not None:
                    assert all(m == "shared" for m, _granted in before)
                before.append((mode, entry.granted_at is not None))


TestLeaseLaws = LeaseLaws.TestCase
