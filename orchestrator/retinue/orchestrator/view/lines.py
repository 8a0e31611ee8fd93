"""Records as lines for people: one line each, or none. Pure; all text of agents is made harmless first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retinue.agents.identity import name_of
from retinue.agents.mail.envelopes import (
    BackgroundEnd,
    Body,
    Notice,
    Prompt,
    ShutdownRequest,
    TaskAssigned,
    TaskReturned,
    Text,
)
from retinue.agents.model.messages import TextBlock
from retinue.agents.records import (
    AgentWaits,
    BackgroundEnded,
    BackgroundStarted,
    BlockComplete,
    HooksRan,
    InnerFinished,
    MailStored,
    MessageWithdrawn,
    PromptRefused,
    ToolFinished,
    TurnClosed,
)
from retinue.orchestrator.ledger.parse import AnyRecord
from retinue.orchestrator.ledger.records import (
    AgentEnded,
    AgentLost,
    BudgetSpent,
    IncarnationStarted,
    PhaseChanged,
    Reminded,
    RunOpened,
    TaskChanged,
    WorkMerged,
    WorkReturned,
    WorkSubmitted,
)
from retinue.tools.execution.calls import CallResult
from retinue.tools.shell.background.ports import BackgroundTask
from retinue.tools.shell.background.words import standing, title
from retinue.tools.text import one_line

Tone = Literal["plain", "good", "bad", "note"]


@dataclass(frozen=True, slots=True)
class Line:
    """`who` is the agent or `team`."""

    at: float
    who: str
    text: str
    tone: Tone = "plain"


def line_of(writer: str, at: float, record: AnyRecord) -> Line | None:
    """The line for one record; None for what is bookkeeping only."""
    said = _of_agent(record) or _of_work(record) or _of_team(record)
    if said is None:
        return None
    who, text, tone = said
    return Line(at, one_line(who or name_of(writer), 40), one_line(text, 300), tone)


_Said = tuple[str, str, Tone]


def _of_agent(record: AnyRecord) -> _Said | None:
    match record:
        case BlockComplete(block=TextBlock(text=text)) if text.strip():
            return "", f"says: {text}", "plain"
        case ToolFinished(result=result) | InnerFinished(result=result):
            what = result.title or result.name
            if result.denied:
                return "", f"denied: {what}", "bad"
            failed = f" failed: {_gist(result)}" if result.is_error else ""
            return "", f"{what}{failed}", "bad" if result.is_error else "plain"
        case MessageWithdrawn():
            return "", f"asks the model again: {record.reason}", "note"
        case AgentWaits():
            seconds = "" if record.seconds is None else f" for {record.seconds:.1f} s"
            return "", f"waits{seconds}: {record.what}", "note"
        case TurnClosed() if record.reason != "done":
            return "", f"turn ended: {record.reason}: {record.detail}", "bad"
        case HooksRan() | PromptRefused():
            return _of_hooks(record)
        case BackgroundStarted() | BackgroundEnded():
            return _in_background(record.task)
        case MailStored(envelope=envelope) if not isinstance(envelope.body, BackgroundEnd):
            return name_of(envelope.recipient), f"mail from {name_of(envelope.sender)}: {_mail(envelope.body)}", "note"
        case _:
            return None


def _of_hooks(record: HooksRan | PromptRefused) -> _Said | None:
    """Hooks that went well and had nothing to say to people are bookkeeping."""
    if isinstance(record, PromptRefused):
        return "", f"a hook kept a prompt back: {record.reason}", "bad"
    blocked = [f"{run.name} blocks" for run in record.runs if run.outcome == "blocked"]
    failed = [f"{run.name}: {run.problem}" for run in record.runs if run.problem]
    halts = [f"ends the turn: {record.halts}"] if record.halts is not None else []
    parts = (*blocked, *halts, *failed, *record.messages)
    return ("", "; ".join(parts), "bad" if blocked or halts or failed else "note") if parts else None


def _in_background(task: BackgroundTask) -> _Said:
    if task.is_running:
        return "", f"goes on in the background, without a lease: {title(task)}", "note"
    return "", standing(task), "bad" if task.status in ("failed", "lost") else "note"


def _gist(result: CallResult) -> str:
    """What a command said last is what became of it; everything else is read from its beginning."""
    lines = [line for line in result.content.splitlines() if line.strip()]
    return lines[-1] if result.name == "Bash" and result.ran and lines else result.content


def _mail(body: Body) -> str:
    match body:
        case Prompt(text=text) | Notice(text=text):
            return text
        case Text():
            return body.summary or body.text
        case TaskAssigned():
            return f"task #{body.task_id} is yours: {body.subject}"
        case BackgroundEnd():
            return standing(body.task)
        case TaskReturned():
            return f"task #{body.task_id} came back ({body.reason})"
        case ShutdownRequest():
            return f"please stop: {body.reason}"


def _of_work(record: AnyRecord) -> _Said | None:
    match record:
        case TaskChanged(task=task) if task.status in ("pending", "in_progress", "done", "failed"):
            owner = f" ({task.owner})" if task.owner else ""
            note = f": {task.note}" if task.status == "failed" else ""
            tone: Tone = "bad" if task.status == "failed" else "good" if task.status == "done" else "plain"
            return "team", f"task #{task.id} is {task.status}{owner}: {task.subject}{note}", tone
        case WorkSubmitted():
            return "team", f"task #{record.task_id} submitted by {name_of(record.agent)} at {record.sha[:9]}", "plain"
        case WorkMerged(changed=True):
            return "team", f"task #{record.task_id} merged, tip is {record.tip[:9]}", "good"
        case WorkMerged():
            return "team", f"task #{record.task_id} merged: its work was in the tip already", "good"
        case WorkReturned():
            return "team", f"task #{record.task_id} returned ({record.reason}): {record.output}", "bad"
        case Reminded():
            return "team", f"{name_of(record.agent)} is reminded of task #{record.task_id}", "note"
        case _:
            return None


def _of_team(record: AnyRecord) -> _Said | None:
    match record:
        case RunOpened():
            return "team", f"run {record.run} on {record.repo} at {record.base_sha[:9]}", "plain"
        case IncarnationStarted(incarnation=1):
            return name_of(record.agent), "starts", "plain"
        case IncarnationStarted():
            return name_of(record.agent), f"is back (process {record.incarnation})", "note"
        case AgentLost():
            return name_of(record.agent), f"lost its process: {record.how}", "bad"
        case AgentEnded():
            return name_of(record.agent), f"has ended: {record.why}", "note"
        case BudgetSpent():
            return "team", record.text, "bad"
        case PhaseChanged():
            return "team", f"run {record.phase}" + (f": {record.detail}" if record.detail else ""), _phase(record)
        case _:
            return None


def _phase(record: PhaseChanged) -> Tone:
    if record.phase == "done":
        return "good"
    return "bad" if record.phase == "failed" else "note"
