# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportArgumentType=false, reportIndexIssue=false
"""The few calls of Ray that are not method calls on actors, with types. Handles stay `Any`: Ray knows no better."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, cast

import ray
import ray.util

from retinue.orchestrator.actors.options import ActorOptions
from retinue.orchestrator.runtime.port import Unreachable
from retinue.tools.errors import EnvironmentProblem


def connect(address: str) -> None:
    """Attach this process to a running cluster. What Ray reads of the environment was set before this module came."""
    try:
        ray.init(address=address, namespace="retinue", log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise EnvironmentProblem(
            f"the cluster at {address} cannot be reached: {error}. `retinue cluster status` says more"
        ) from error


def spawn(kind: type, options: ActorOptions, *args: object) -> Any:
    """The actor of that name, made when there is none."""
    return ray.remote(kind).options(**options.as_dict()).remote(*args)


def find(name: str, namespace: str) -> Any:
    """A living actor. Raises Unreachable when there is none of that name."""
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError as error:
        raise Unreachable(f"{name} has no process at the moment") from error


def kill(actor: Any) -> None:
    """End its process now, without hooks. An actor that is gone already is no error."""
    with contextlib.suppress(ValueError):
        ray.kill(actor)


def current() -> Any:
    """The actor that this process is."""
    return ray.get_runtime_context().current_actor


def was_restarted() -> bool:
    """Is this process one that Ray made because the one before it died?"""
    return bool(ray.get_runtime_context().was_current_actor_reconstructed)


def names_in(namespace: str) -> list[str]:
    """Names of all living actors of one run."""
    listed = cast(list[dict[str, str]], ray.util.list_named_actors(all_namespaces=True))
    return [entry["name"] for entry in listed if entry["namespace"] == namespace]
