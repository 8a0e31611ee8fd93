"""Gives an agent the hooks of its settings. Loads what runs them only when there are any."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.agents.hooks.none import NoHooks
from retinue.agents.journal import Journal
from retinue.tools.permissions.chain import PermissionPolicy
from retinue.tools.ports import BoardPort, ShellPort, SideQueryPort
from retinue.tools.results.store import ResultStore
from retinue.tools.settings.model import Settings

LEDGER = "ledger.rlog"
LONGEST_WORD = 10_000
"""Of what one hook says, the agent is shown so many characters; the rest it may read."""


@dataclass(frozen=True, slots=True)
class HookPorts:
    """What hooks are run with, and what they are about. `env` is that of the agent's commands."""

    shell: ShellPort
    env: Mapping[str, str]
    side: SideQueryPort
    journal: Journal
    store: ResultStore
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Hooked:
    """An agent's moments, rights and board, with hooks at them."""

    life: NoHooks
    policy: PermissionPolicy
    board: BoardPort | None


def hooked(
    boot: AgentBoot,
    settings: Settings,
    policy: PermissionPolicy,
    board: BoardPort | None,
    ports: HookPorts,
) -> Hooked:
    """SpecError names the file and the place of what is no hook."""
    own_events = {} if settings.only_policy_hooks else boot.hooks
    if not settings.hooks and not own_events:
        return Hooked(NoHooks(), policy, board)
    from retinue.agents.hooks.board import HookedBoard
    from retinue.agents.hooks.life import LifeHooks, recorder, situation_of
    from retinue.tools.hooks.command import CommandRunner
    from retinue.tools.hooks.config import for_definition, parse_hooks
    from retinue.tools.hooks.engine import Hooks, Means
    from retinue.tools.hooks.opinions import ToolHooks

    own = parse_hooks(own_events, f"the definition {boot.definition}", "definition")
    own = for_definition(own) if boot.role == "child" else own
    found = [*(each for s in settings.hooks for each in parse_hooks(s.events, s.file, s.source).hooks), *own.hooks]
    env = {**ports.env, "CLAUDE_PROJECT_DIR": boot.repo}
    runner = CommandRunner(ports.shell, env, Path(boot.run_dir) / "tmp" / f"{boot.agent}-hooks")
    transcript = str(Path(boot.run_dir) / LEDGER)
    engine = Hooks(
        found,
        Means(runner, env, ports.side, ports.clock),
        lambda: situation_of(boot, transcript, policy.mode_now),
        recorder(ports.journal.write),
    )

    def fit(text: str) -> str:
        if len(text) <= LONGEST_WORD:
            return text
        return ports.store.fit(f"hook-{hashlib.sha256(text.encode()).hexdigest()[:32]}", text, LONGEST_WORD).content

    calls = ToolHooks(engine, fit, rights=policy)
    own_board = HookedBoard(boot, board, engine) if board is not None else None
    life = LifeHooks(boot, engine, calls, board=board, transcript=transcript, fit=fit)
    return Hooked(life, replace(policy, requests=calls), own_board)
