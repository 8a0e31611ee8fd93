"""A run as tables and as a summary, for `up`, `status`, `tasks` and `ps`; rich renderables, no widths assumed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from retinue.orchestrator.view.run_state import AgentView, RunView
from retinue.tools.ports import TaskView
from retinue.tools.text import counted, one_line

_STATE_STYLE = {
    "queued": "dim",
    "starting": "cyan",
    "working": "green",
    "waiting": "yellow",
    "idle": "blue",
    "ended": "dim",
    "pending": "dim",
    "in_progress": "cyan",
    "verifying": "yellow",
    "merged": "green",
    "done": "green",
    "failed": "red",
}


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        table.add_column(name, overflow="ellipsis", no_wrap=name not in ("doing", "subject"))
    return table


def _state(text: str) -> Text:
    return Text(text, style=_STATE_STYLE.get(text, ""))


def agents_table(view: RunView) -> Table:
    table = _table("agent", "state", "task", "step", "calls", "tokens", "mail", "doing")
    for agent in view.agents.values():
        task = view.task_of(agent.name)
        table.add_row(
            Text(agent.name, style="bold"),
            _state(agent.state),
            "" if task is None else f"#{task.id}",
            str(agent.step),
            str(agent.calls),
            thousands(agent.usage.total),
            str(len(agent.unread)) if agent.unread else "",
            Text(one_line(agent.doing or agent.ended, 60), style="dim"),
        )
    return table


def background_table(view: RunView) -> Table | None:
    """What runs without a call, and so without a lease; None when nothing does."""
    running = [(agent.name, task) for agent in view.agents.values() for task in agent.background.values()]
    if not running:
        return None
    table = _table("background", "agent", "lease", "command")
    for name, task in running:
        table.add_row(task.id, Text(name, style="bold"), Text("none", style="yellow"), Text(one_line(task.command, 80)))
    return table


def tasks_table(tasks: tuple[TaskView, ...]) -> Table:
    table = _table("task", "status", "owner", "waits for", "returned", "subject")
    for task in tasks:
        waits = ", ".join(f"#{b}" for b in task.open_blockers)
        subject = one_line(task.subject, 80) + (f" ({one_line(task.note, 60)})" if task.status == "failed" else "")
        table.add_row(
            f"#{one_line(task.id, 40)}",
            _state(task.status),
            one_line(task.owner or "", 40),
            one_line(waits, 60),
            str(task.returns or ""),
            Text(subject),
        )
    return table


def summary(view: RunView, *, state_path: str, next_steps: tuple[str, ...]) -> RenderableType:
    """Who did what, what it cost, where it is, and what to try next."""
    table = _table("agent", "merged", "back", "requests", "calls", "failed", "denied", "sent", "tokens", "USD")
    for agent in view.agents.values():
        table.add_row(*_account(agent))
    elapsed = view.last_at - (view.first_at or view.last_at)
    usage = view.usage()
    phase = view.team.phase
    commits = sum(1 for m in view.landed if m.changed)
    verdict = Text(
        f"run {phase}", style="bold green" if phase == "done" else "bold red" if phase == "failed" else "bold"
    )
    if view.team.detail:
        verdict.append(f": {one_line(view.team.detail, 300)}", style="")
    totals = (
        f"{counted(commits, 'change')} merged, {counted(sum(a.calls for a in view.agents.values()), 'tool call')}, "
        f"{thousands(usage.total)} tokens, {view.usd():.2f} USD, {elapsed:.1f} s"
    )
    lines: list[RenderableType] = [verdict, table, Text(totals), Text(f"state: {state_path}")]
    lines += [Text(f"next:  {step}") for step in next_steps]
    return Group(*lines)


def _account(agent: AgentView) -> tuple[str, ...]:
    numbers = (agent.merged, agent.returned, agent.requests, agent.calls, agent.failed_calls, agent.denied, agent.sent)
    return (agent.name, *(str(n) for n in numbers), thousands(agent.usage.total), f"{agent.usd:.2f}")


def thousands(number: int) -> str:
    return str(number) if number < 10_000 else f"{number / 1000:.0f}k"
