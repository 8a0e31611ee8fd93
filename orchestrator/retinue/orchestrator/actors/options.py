"""Name, namespace and life of each kind of actor, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CLUSTER_NAMESPACE = "retinue"
"""Namespace of what all runs of a cluster share; a run's own actors live in a namespace named after the run."""
SCHEDULER = "scheduler"
TEAM = "team"
LEDGER = "ledger"
GATEWAY = "gateway"


@dataclass(frozen=True, slots=True)
class ActorOptions:
    """`max_restarts` -1: Ray restarts it, and it rebuilds itself; 0: only the team makes the next incarnation."""

    name: str
    namespace: str
    max_restarts: int
    lifetime: Literal["detached"] = "detached"
    num_cpus: float = 0
    max_concurrency: int = 1000

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "namespace": self.namespace,
            "max_restarts": self.max_restarts,
            "max_task_retries": 0,
            "lifetime": self.lifetime,
            "num_cpus": self.num_cpus,
            "max_concurrency": self.max_concurrency,
            "get_if_exists": True,
        }


def scheduler_options() -> ActorOptions:
    return ActorOptions(SCHEDULER, CLUSTER_NAMESPACE, max_restarts=-1)


def run_actor_options(name: str, run: str) -> ActorOptions:
    """Team, Ledger, Gateway."""
    return ActorOptions(name, run, max_restarts=-1)


def agent_options(run: str, agent: str, incarnation: int) -> ActorOptions:
    return ActorOptions(agent_actor_name(agent, incarnation), run, max_restarts=0)


def agent_actor_name(agent: str, incarnation: int) -> str:
    return f"{agent}.{incarnation}"
