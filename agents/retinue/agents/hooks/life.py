"""The hooks of one agent at the moments of its life."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence

from retinue.agents.boot import AgentBoot
from retinue.agents.hooks.none import NoHooks, Refused
from retinue.agents.mail.envelopes import HUMAN, Envelope, Prompt, Text
from retinue.agents.records import HooksRan
from retinue.tools.execution.stages import AfterPort, OpinionPort
from retinue.tools.hooks.engine import Hooks
from retinue.tools.hooks.events import Event
from retinue.tools.hooks.merge import Verdict
from retinue.tools.hooks.opinions import ToolHooks
from retinue.tools.hooks.payloads import (
    Notification,
    Payload,
    SessionEnd,
    SessionStart,
    Situation,
    Stop,
    SubagentStart,
    SubagentStop,
    TaskCompleted,
    TeammateIdle,
    UserPromptSubmit,
)
from retinue.tools.hooks.runs import HookRun
from retinue.tools.hooks.words import told
from retinue.tools.permissions.chain import RequestPort
from retinue.tools.ports import BoardPort
from retinue.tools.text import one_line

MOST_BLOCKS = 8
"""How often in a row an agent that wants to rest is sent on."""


def situation_of(boot: AgentBoot, transcript: str, mode: Callable[[], str]) -> Situation:
    """A sub-agent is part of the session of the agent that it works for."""
    child = boot.role == "child"
    return Situation(
        session_id=f"{boot.run}-{(boot.member or boot.parent or boot.name) if child else boot.name}",
        transcript_path=transcript,
        cwd=boot.workspace.root,
        permission_mode=mode(),
        agent_id=boot.agent if child else None,
        agent_type=boot.definition,
    )


def recorder(
    write: Callable[[HooksRan], Awaitable[None]],
) -> Callable[[Event, tuple[HookRun, ...], Verdict], Awaitable[None]]:
    """Puts into the ledger that hooks ran."""

    async def ran(event: Event, runs: tuple[HookRun, ...], verdict: Verdict) -> None:
        messages = tuple(one_line(text, 500) for text in verdict.messages)
        await write(HooksRan(event=event, runs=runs, messages=messages, halts=verdict.halt))

    return ran


class LifeHooks(NoHooks):
    """`fit` shortens what is too long for the agent, and says where the whole is."""

    def __init__(
        self,
        boot: AgentBoot,
        hooks: Hooks,
        calls: ToolHooks,
        *,
        board: BoardPort | None,
        transcript: str,
        fit: Callable[[str], str] = str,
    ) -> None:
        self._boot = boot
        self._hooks = hooks
        self._calls = calls
        self._board = board
        self._transcript = transcript
        self._fit = fit
        self._words: list[str] = []
        self._read: set[str] = set()
        self._blocks = 0
        self._telling: set[asyncio.Task[None]] = set()

    @property
    def opinions(self) -> tuple[OpinionPort, ...]:
        return (self._calls,)

    @property
    def afterwards(self) -> tuple[AfterPort, ...]:
        return (self._calls,)

    @property
    def requests(self) -> RequestPort | None:
        return self._calls

    async def begin(self, *, resumed: bool) -> None:
        if self._boot.role != "child":
            await self._heard(SessionStart(source="resume" if resumed else "startup", model=self._boot.model))
        elif not resumed:
            await self._heard(SubagentStart())

    async def read(self, envelopes: Sequence[Envelope]) -> tuple[Refused, ...]:
        if self._boot.role == "child" or not self._hooks.has("UserPromptSubmit"):
            return ()
        refused: list[Refused] = []
        for envelope in envelopes:
            words = _of_person(envelope)
            if words is None or envelope.id in self._read:
                continue
            verdict = await self._heard(UserPromptSubmit(prompt=words))
            if verdict.halt is not None or verdict.blocked:
                refused.append(Refused(envelope.id, verdict.halt or verdict.feedback))
            else:
                self._read.add(envelope.id)
        return tuple(refused)

    async def end_of_turn(self, last_words: str, background: Collection[str]) -> str:
        feedback = await self._why_go_on(last_words, background) if self._blocks < MOST_BLOCKS else ""
        self._blocks = self._blocks + 1 if feedback else 0
        return feedback

    def rested(self) -> None:
        if self._boot.role == "lead" and self._hooks.has("Notification"):
            message = f"{self._boot.name} rests and waits for mail"
            task = asyncio.create_task(self._tell(Notification(message=message, notification_type="idle_prompt")))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    def words(self) -> tuple[str, ...]:
        self._words += [told("earlier", self._fit(text)) for text in self._hooks.take_late()]
        return tuple(self._words)

    def told(self, count: int) -> None:
        del self._words[:count]

    async def end(self) -> None:
        if self._boot.role != "child":
            await self._hooks.fire(SessionEnd(reason="other"))

    async def close(self) -> None:
        telling = tuple(self._telling)
        for task in telling:
            task.cancel()
        if telling:
            await asyncio.wait(telling)
        await self._hooks.close()

    async def _tell(self, payload: Payload) -> None:
        await self._hooks.fire(payload)

    async def _why_go_on(self, last_words: str, background: Collection[str]) -> str:
        tasks: list[dict[str, str]] = [{"id": each, "type": "shell", "status": "running"} for each in background]
        said = await self._heard(self._stop(last_words, tasks))
        if said.halt is not None:
            return ""
        if said.blocked:
            return told("SubagentStop" if self._boot.role == "child" else "Stop", self._fit(said.feedback))
        if self._boot.role != "teammate":
            return ""
        return await self._unfinished() or await self._idle()

    def _stop(self, last_words: str, tasks: list[dict[str, str]]) -> Stop:
        fields = {
            "stop_hook_active": self._blocks > 0,
            "last_assistant_message": last_words,
            "background_tasks": tasks,
        }
        if self._boot.role == "child":
            return SubagentStop.model_validate({**fields, "agent_transcript_path": self._transcript})
        return Stop.model_validate(fields)

    async def _unfinished(self) -> str:
        """Tasks that the agent would rest with are asked about like those that it calls completed."""
        if self._board is None or not self._hooks.has("TaskCompleted"):
            return ""
        own = [task for task in await self._board.list() if task.owner == self._boot.name]
        for task in own:
            if task.status != "in_progress":
                continue
            payload = TaskCompleted(
                task_id=task.id,
                task_subject=task.subject,
                task_description=task.description or None,
                teammate_name=self._boot.name,
                team_name=self._boot.team,
            )
            said = await self._heard(payload)
            if said.halt is not None:
                return ""
            if said.blocked:
                return told("TaskCompleted", self._fit(said.feedback))
        return ""

    async def _idle(self) -> str:
        said = await self._heard(TeammateIdle(teammate_name=self._boot.name, team_name=self._boot.team))
        return told("TeammateIdle", self._fit(said.feedback)) if said.blocked and said.halt is None else ""

    async def _heard(self, payload: Payload) -> Verdict:
        """What hooks want to tell the agent goes along with its next request."""
        verdict = await self._hooks.fire(payload)
        self._words += [told(payload.event, self._fit(text)) for text in verdict.contexts]
        return verdict


def _of_person(envelope: Envelope) -> str | None:
    """What a person says: the prompt of the spec, and mail of the human."""
    match envelope.body:
        case Prompt(text=text):
            return text
        case Text(text=text) if envelope.sender == HUMAN:
            return text
        case _:
            return None
