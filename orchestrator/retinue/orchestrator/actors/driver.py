"""The command line's way to the actors: make those of a run, give orders, end them."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import Any

from ray.exceptions import ActorUnavailableError

from retinue.agents.mail.envelopes import Receipt
from retinue.orchestrator.actors.cluster import find, kill, names_in
from retinue.orchestrator.actors.gateway import spawn_gateway
from retinue.orchestrator.actors.ledger import spawn_ledger
from retinue.orchestrator.actors.options import TEAM
from retinue.orchestrator.actors.scheduler import spawn_scheduler
from retinue.orchestrator.actors.team import spawn_team
from retinue.orchestrator.actors.wire import ask, pack, unpack
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.runtime.wire import HumanMail, Order, OrderDone
from retinue.tools.errors import EnvironmentProblem, StateError

OPEN_S = 300.0
"""How long a team may take until every agent has a process; set-up commands run in it."""
ORDER_S = 90.0
AGAIN_S = 0.2


def spawn_run(files: RunFiles) -> Any:
    """Make the run's actors, or find those that are there. The team begins by itself."""
    run, folder = files.plan.run, str(files.dir.root)
    if not files.dir.is_live():
        files.lend_credentials(os.environ)
    spawn_scheduler()
    spawn_ledger(run, str(files.dir.ledger))
    spawn_gateway(run, folder)
    return spawn_team(run, folder)


async def opened(team: Any) -> None:
    """Wait until every agent has a process. Raises EnvironmentProblem with what kept the team from opening.

    A team that dies meanwhile is restarted, and waited for.
    """
    try:
        async with asyncio.timeout(OPEN_S):
            await _once_restarted(team)
    except (Unreachable, TimeoutError) as error:
        raise EnvironmentProblem(f"the team could not start: {error or f'no answer in {OPEN_S:.0f} s'}") from error


async def _once_restarted(team: Any) -> None:
    while True:
        try:
            await ask(team.begin.remote(), OPEN_S)
        except Unreachable as error:
            if not isinstance(error.__cause__, ActorUnavailableError):
                raise
            await asyncio.sleep(AGAIN_S)
        else:
            return


def find_team(run: str) -> Any:
    try:
        return find(TEAM, run)
    except Unreachable:
        raise StateError(f"run {run} has no team process on this cluster: `retinue resume {run}` makes one") from None


async def give_order(files: RunFiles, what: str, agent: str = "") -> OrderDone:
    order = Order(key=files.dir.read_control_key(), what=what, agent=agent)
    return unpack(OrderDone, await ask(find_team(files.plan.run).order.remote(pack(order)), ORDER_S))


async def send_mail(files: RunFiles, mail_id: str, to: str, text: str) -> Receipt:
    mail = HumanMail(key=files.dir.read_control_key(), id=mail_id, to=to, text=text)
    return unpack(Receipt, await ask(find_team(files.plan.run).send.remote(pack(mail)), ORDER_S))


def kill_run(run: str) -> int:
    """End every actor of a run at once; how many there were."""
    names = names_in(run)
    for name in names:
        with contextlib.suppress(Unreachable):
            kill(find(name, run))
    return len(names)
