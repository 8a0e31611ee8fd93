"""How often a lost agent comes back."""

from __future__ import annotations

from retinue.orchestrator.team.supervision import RestartPolicy, may_restart


def test_a_burst_uses_up_the_allowance_and_time_gives_it_back() -> None:
    policy = RestartPolicy(limit=2, window_s=10, first_delay_s=1)
    past: tuple[float, ...] = ()
    answers: list[tuple[bool, float]] = []
    for now in (0.0, 1.0, 2.0, 30.0):
        verdict = may_restart(policy, past, now)
        past = verdict.past
        answers.append((verdict.again, verdict.delay_s))
    assert answers == [(True, 0.0), (True, 1.0), (False, 0.0), (True, 0.0)]


def test_the_delay_doubles_up_to_its_limit() -> None:
    policy = RestartPolicy(limit=99, window_s=1000, first_delay_s=1, most_delay_s=5)
    delays = [may_restart(policy, tuple(range(n)), 10).delay_s for n in range(6)]
    assert delays == [0.0, 1, 2, 4, 5, 5]
