"""`cluster status` and `cluster stop`: the local Ray cluster that stays between commands."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import JsonOption

if TYPE_CHECKING:
    from pydantic import JsonValue

    from retinue.orchestrator.cluster.own import ClusterStatus

_MB = 1_000_000


def status(as_json: JsonOption = False) -> None:
    """Show the clusters that retinue keeps on this machine.

    Example:

    retinue cluster status
    """
    from retinue.orchestrator.cluster import own

    found = own.status(os.environ)
    if as_json:
        output.write_json({"clusters": [_json(cluster) for cluster in found]})
    elif found:
        columns = ("cluster", "started", "processes", "memory", "live runs", "used by")
        output.show(output.table(columns, map(_cells, found)))
        output.note("", "end them with: retinue cluster stop")
    else:
        output.note("no cluster is running; `retinue up` starts one when it needs it")


def _cells(cluster: ClusterStatus) -> tuple[str, ...]:
    used_by = "one run" if cluster.ephemeral else "this retinue" if cluster.current else "another version"
    runs = ", ".join(cluster.live_runs) or "none"
    memory = f"{cluster.memory / _MB:.0f} MB"
    started = output.ago(cluster.created, time.time())
    return (cluster.key, started, str(cluster.processes), memory, runs, used_by)


def _json(cluster: ClusterStatus) -> dict[str, JsonValue]:
    return {
        "cluster": cluster.key,
        "address": cluster.address,
        "started": output.iso(cluster.created),
        "ephemeral": cluster.ephemeral,
        "current": cluster.current,
        "processes": cluster.processes,
        "memory_bytes": cluster.memory,
        "live_runs": list(cluster.live_runs),
    }


def stop(
    force: Annotated[bool, typer.Option("--force", help="Even with live runs on it; they can be resumed.")] = False,
) -> None:
    """End the clusters that retinue keeps. Refused while a run is live on one.

    Example:

    retinue cluster stop
    """
    from retinue.orchestrator.cluster import own

    ended = own.stop(force=force)
    output.say(*(f"ended cluster {key}" for key in ended))
    if not ended:
        output.note("no cluster was running")


def register(app: typer.Typer) -> None:
    group = typer.Typer(name="cluster", callback=_cluster, no_args_is_help=True)
    group.command()(status)
    group.command()(stop)
    app.add_typer(group)


def _cluster() -> None:
    """The local Ray cluster that stays between commands.

    Example:

    retinue cluster status
    """
