# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
"""The command line's way to the actors: connect to a cluster, make a run's actors, give orders."""

from __future__ import annotations

import logging
from typing import Any

import ray

from retinue.agents.mail.envelopes import Receipt
from retinue.orchestrator.actors.gateway import spawn_gateway
from retinue.orchestrator.actors.ledger import spawn_ledger
from retinue.orchestrator.actors.options import TEAM
from retinue.orchestrator.actors.scheduler import scheduler_handle
from retinue.orchestrator.actors.team import spawn_team
from retinue.orchestrator.actors.wire import ask, pack, unpack
from retinue.orchestrator.run_files import RunFiles
from retinue.orchestrator.runtime.port import Unreachable
from retinue.orchestrator.runtime.wire import HumanMail, Order, OrderDone
from retinue.tools.errors import EnvironmentProblem, StateError

OPEN_S = 300.0
"""How long a team may take until every agent has a process; set-up commands run in it."""
ORDER_S = 90.0


def connect(address: str) -> None:
    """Attach this process to a running cluster. What Ray reads of the environment was set before this module came."""
    try:
        ray.init(address=address, namespace="retinue", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise EnvironmentProblem(
            f"the cluster at {address} cannot be reached: {error}. `retinue cluster status` says more"
        ) from error


def disconnect() -> None:
    ray.shutdown()


def spawn_run(files: RunFiles) -> Any:
    """Make the run's actors, or find those that are there. The team begins by itself."""
    run, folder = files.plan.run, str(files.dir.root)
    scheduler_handle()
    spawn_ledger(run, str(files.dir.ledger))
    spawn_gateway(run, folder)
    return spawn_team(run, folder)


async def opened(team: Any) -> None:
    """Wait until every agent has a process. Raises EnvironmentProblem with what kept the team from opening."""
    try:
        await ask(team.begin.remote(), OPEN_S)
    except Unreachable as error:
        raise EnvironmentProblem(f"the team could not start: {error}") from error


def find_team(run: str) -> Any:
    try:
        return ray.get_actor(TEAM, namespace=run)
    except ValueError:
        raise StateError(f"run {run} has no team process on this cluster: `retinue resume {run}` makes one") from None


async def give_order(files: RunFiles, what: str, agent: str = "") -> OrderDone:
    order = Order(key=files.dir.read_control_key(), what=what, agent=agent)
    return unpack(OrderDone, await ask(find_team(files.plan.run).order.remote(pack(order)), ORDER_S))


async def send_mail(files: RunFiles, mail_id: str, to: str, text: str) -> Receipt:
    mail = HumanMail(key=files.dir.read_control_key(), id=mail_id, to=to, text=text)
    return unpack(Receipt, await ask(find_team(files.plan.run).send.remote(pack(mail)), ORDER_S))


def kill_run(run: str) -> int:
    """End every actor of a run at once; how many there were."""
    names = [a["name"] for a in ray.util.list_named_actors(all_namespaces=True) if a["namespace"] == run]
    for name in names:
        try:
            ray.kill(ray.get_actor(name, namespace=run))
        except ValueError:
            continue
    return len(names)
