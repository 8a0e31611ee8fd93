"""`ps`, `status` and `tasks`: how runs stand, read from their directories alone."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.context import (
    JsonOption,
    RunArgument,
    Standing,
    StateOption,
    next_command,
    runs_of,
    standing_of,
    view_of,
)
from retinue.tools.errors import RetinueError
from retinue.tools.text import one_line

if TYPE_CHECKING:
    from pydantic import JsonValue

    from retinue.orchestrator.state.paths import RunDir
    from retinue.orchestrator.view.run_state import AgentView, RunView


@dataclass(frozen=True, slots=True)
class Row:
    """One run in the list. `started` is None for a run that never began."""

    run: str
    state: Standing
    team: str
    done: int
    tasks: int
    agents: int
    started: float | None
    folder: Path


def row_of(run: RunDir) -> Row:
    """Reads only what the team itself wrote: a list must not fold every agent's conversation."""
    from retinue.orchestrator.ledger.parse import parse_team_record
    from retinue.orchestrator.ledger.reader import Tail
    from retinue.orchestrator.ledger.records import TEAM_WRITER
    from retinue.orchestrator.team.state import TeamState

    live = run.is_live()
    team, started = TeamState(), None
    with Tail(run.ledger, writers=(TEAM_WRITER,)) as tail:
        for record in tail.poll():
            started = record.at if started is None else started
            typed = parse_team_record(record.kind, record.body)
            if typed is not None:
                team.apply(typed)
    tasks = team.board.all()
    return Row(
        run=run.run_id,
        state=standing_of(team.phase, live=live),
        team=team.opened.team if team.opened else "",
        done=sum(task.status in ("merged", "done") for task in tasks),
        tasks=len(tasks),
        agents=len(team.members),
        started=started,
        folder=run.root,
    )


def ps(state_dir: StateOption = None, as_json: JsonOption = False) -> None:
    """List your runs, newest first.

    States: live, stopped (can be resumed), done, failed, lost (no process left; can be resumed).

    Example:

    retinue ps
    """
    state = runs_of(state_dir)
    rows: list[Row] = []
    for run in state.all():
        try:
            rows.append(row_of(run))
        except RetinueError as error:
            output.note(f"retinue: {run.run_id}: {error}")
    if as_json:
        output.write_json({"runs": [_row_json(row) for row in rows]})
    elif rows:
        output.show(output.table(("run", "state", "team", "tasks", "agents", "started", "dir"), map(_cells, rows)))
    else:
        output.note(f"no runs in {state.runs}; `retinue up SPEC` starts one")


def _cells(row: Row) -> tuple[str, ...]:
    started = output.ago(row.started, time.time())
    tasks = f"{row.done}/{row.tasks}"
    return (row.run, row.state, one_line(row.team, 40), tasks, str(row.agents), started, str(row.folder))


def _row_json(row: Row) -> dict[str, JsonValue]:
    return {
        "run": row.run,
        "state": row.state,
        "team": row.team,
        "tasks_done": row.done,
        "tasks": row.tasks,
        "agents": row.agents,
        "started": output.iso(row.started),
        "dir": str(row.folder),
    }


def status(run: RunArgument, state_dir: StateOption = None, as_json: JsonOption = False) -> None:
    """Show where a run stands: its agents, its tasks, what it used.

    Example:

    retinue status demo
    """
    found = runs_of(state_dir).find(run)
    live = found.is_live()
    view = view_of(found)
    state = standing_of(view.team.phase, live=live)
    if as_json:
        output.write_json(_status_json(found, view, state))
        return
    from rich.text import Text

    from retinue.orchestrator.view.tables import agents_table, background_table, tasks_table

    output.show(*(Text(line) for line in _head(found, view, state)))
    if view.agents:
        output.show(Text(), agents_table(view))
    background = background_table(view)
    if background is not None:
        output.show(Text(), background)
    if view.tasks():
        output.show(Text(), tasks_table(view.tasks()))
    output.note("", _hint(found.run_id, state, state_dir))


def _head(run: RunDir, view: RunView, state: Standing) -> list[str]:
    done = sum(task.status in ("merged", "done") for task in view.tasks())
    detail = f": {one_line(view.team.detail, 300)}" if view.team.detail else ""
    lines = [f"run {run.run_id} is {state}{detail}"]
    if view.opened is not None:
        lines.append(f"  {'from':<6} {view.opened.repo} at {view.opened.base_sha[:10] or 'no commit'}")
        lines.append(f"  {'tasks':<6} {done} of {len(view.tasks())} done")
        lines.append(f"  {'used':<6} {view.usage().total} tokens, {view.usd():.2f} USD")
    return [*lines, f"  {'dir':<6} {run.root}"]


def _hint(run: str, state: Standing, state_dir: Path | None) -> str:
    match state:
        case "live":
            return f"watch it with: {next_command(f'logs {run} -f', state_dir)}"
        case "stopped" | "lost":
            return f"go on with it: {next_command(f'resume {run}', state_dir)}"
        case "done" | "failed":
            return f"look at its work: {next_command(f'diff {run}', state_dir)}"


def _status_json(run: RunDir, view: RunView, state: Standing) -> dict[str, JsonValue]:
    opened = view.opened
    return {
        "run": run.run_id,
        "state": state,
        "detail": view.team.detail,
        "team": opened.team if opened else "",
        "repo": opened.repo if opened else "",
        "base_sha": opened.base_sha if opened else "",
        "result_ref": opened.result_ref if opened else "",
        "started": output.iso(view.first_at),
        "last_record": output.iso(view.last_at or None),
        "tokens": view.usage().total,
        "usd": round(view.usd(), 6),
        "agents": [_agent_json(view, agent) for agent in view.agents.values()],
        "tasks": [task.model_dump(mode="json") for task in view.tasks()],
        "dir": str(run.root),
    }


def _agent_json(view: RunView, agent: AgentView) -> dict[str, JsonValue]:
    task = view.task_of(agent.name)
    return {
        "agent": agent.agent,
        "name": agent.name,
        "role": agent.role,
        "definition": agent.definition,
        "model": agent.model,
        "state": agent.state,
        "doing": agent.doing,
        "ended": agent.ended,
        "task": task.id if task else None,
        "turn": agent.turn,
        "step": agent.step,
        "requests": agent.requests,
        "calls": agent.calls,
        "failed_calls": agent.failed_calls,
        "denied": agent.denied,
        "tokens": agent.usage.total,
        "usd": round(agent.usd, 6),
        "unread": len(agent.unread),
        "background": [{"id": b.id, "command": b.command, "lease": None} for b in agent.background.values()],
        "incarnation": agent.incarnation,
        "losses": agent.losses,
        "merged": agent.merged,
        "returned": agent.returned,
        "workspace": agent.root,
        "branch": agent.branch,
    }


def tasks(run: RunArgument, state_dir: StateOption = None, as_json: JsonOption = False) -> None:
    """Show the task board of a run.

    Example:

    retinue tasks demo
    """
    found = runs_of(state_dir).find(run)
    board = view_of(found).tasks()
    if as_json:
        output.write_json({"run": found.run_id, "tasks": [task.model_dump(mode="json") for task in board]})
    elif board:
        from retinue.orchestrator.view.tables import tasks_table

        output.show(tasks_table(board))
    else:
        output.note(f"run {found.run_id} has no tasks yet")


def register(app: typer.Typer) -> None:
    app.command()(ps)
    app.command()(status)
    app.command()(tasks)
