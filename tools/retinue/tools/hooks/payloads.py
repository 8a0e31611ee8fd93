"""What hooks are told, by event: the JSON on their standard input, and what a Python hook is given. Pure."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, JsonValue

from retinue.tools.hooks.events import Event


@dataclass(frozen=True, slots=True)
class Situation:
    """Who is at work, where, and how; the same for all events.

    session_id       one agent's whole life; a sub-agent has that of the agent that it works for
    transcript_path  the run's ledger
    agent_id         of a sub-agent
    agent_type       the agent's definition
    """

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"
    agent_id: str | None = None
    agent_type: str | None = None


class Payload(BaseModel):
    """What every event has; see `Situation`."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    event: ClassVar[Event]

    session_id: str = ""
    transcript_path: str = ""
    cwd: str = ""
    permission_mode: str = "default"
    agent_id: str | None = None
    agent_type: str | None = None

    def placed(self, situation: Situation) -> Self:
        """With what it leaves open."""
        fields = {name: value for name, value in asdict(situation).items() if name not in self.model_fields_set}
        return self.model_copy(update=fields)

    @property
    def subjects(self) -> tuple[str, ...]:
        """What a matcher is compared with; nothing: the event has none."""
        return ()

    def as_json(self) -> str:
        """As hooks get it; what is not known is left out."""
        fields = self.model_dump(mode="json", exclude_none=True)
        return json.dumps({"hook_event_name": self.event, **fields}, ensure_ascii=False)


class _OfTool(Payload):
    """`tool_input`: as observers see it, with absolute paths."""

    tool_name: str
    tool_input: dict[str, JsonValue]

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.tool_name,)


class PreToolUse(_OfTool):
    """A call is valid, and has not been decided about."""

    event: ClassVar[Event] = "PreToolUse"
    tool_use_id: str


class PermissionRequest(_OfTool):
    """Somebody would be asked about a call. `permission_suggestions`: rules that would make that needless."""

    event: ClassVar[Event] = "PermissionRequest"
    permission_suggestions: list[dict[str, JsonValue]] | None = None


class PostToolUse(_OfTool):
    """A call went well."""

    event: ClassVar[Event] = "PostToolUse"
    tool_response: JsonValue
    tool_use_id: str
    duration_ms: int | None = None


class PostToolUseFailure(_OfTool):
    """A call ran and failed; not one that was wrong, denied, or called off."""

    event: ClassVar[Event] = "PostToolUseFailure"
    error: str
    tool_use_id: str
    duration_ms: int | None = None


class UserPromptSubmit(Payload):
    """A person's words have come, and the agent has not read them."""

    event: ClassVar[Event] = "UserPromptSubmit"
    prompt: str


class SessionStart(Payload):
    """An agent begins, or goes on after its process ended."""

    event: ClassVar[Event] = "SessionStart"
    source: Literal["startup", "resume", "clear", "compact", "fork"]
    model: str | None = None

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.source,)


class SessionEnd(Payload):
    """An agent's process ends in good order."""

    event: ClassVar[Event] = "SessionEnd"
    reason: Literal["clear", "resume", "logout", "prompt_input_exit", "other"]

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.reason,)


class Stop(Payload):
    """An agent is about to end its turn. `stop_hook_active`: it went on because such a hook wanted it."""

    event: ClassVar[Event] = "Stop"
    stop_hook_active: bool
    last_assistant_message: str
    background_tasks: list[dict[str, JsonValue]] = []
    session_crons: list[dict[str, JsonValue]] = []


class SubagentStart(Payload):
    event: ClassVar[Event] = "SubagentStart"

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.agent_type or "",)


class SubagentStop(Stop):
    """A sub-agent is about to hand its result over."""

    event: ClassVar[Event] = "SubagentStop"
    agent_transcript_path: str

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.agent_type or "",)


class PreCompact(Payload):
    """The conversation is about to be replaced by a summary of it."""

    event: ClassVar[Event] = "PreCompact"
    trigger: Literal["manual", "auto"]
    custom_instructions: str = ""

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.trigger,)


class Notification(Payload):
    """Something that a person may want to know at once."""

    event: ClassVar[Event] = "Notification"
    message: str
    notification_type: Literal["permission_prompt", "idle_prompt", "agent_needs_input", "agent_completed"]
    title: str | None = None

    @property
    def subjects(self) -> tuple[str, ...]:
        return (self.notification_type,)


class TeammateIdle(Payload):
    """A teammate is about to rest."""

    event: ClassVar[Event] = "TeammateIdle"
    teammate_name: str
    team_name: str


class _OfTask(Payload):
    task_id: str
    task_subject: str
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(_OfTask):
    """A task is new on the board."""

    event: ClassVar[Event] = "TaskCreated"


class TaskCompleted(_OfTask):
    """An agent is about to call a task completed, or to rest with a task of its own in progress."""

    event: ClassVar[Event] = "TaskCompleted"


class WorktreeCreate(Payload):
    event: ClassVar[Event] = "WorktreeCreate"
    name: str


class WorktreeRemove(Payload):
    event: ClassVar[Event] = "WorktreeRemove"
    worktree_path: str


PAYLOADS: tuple[type[Payload], ...] = (
    PreToolUse,
    PermissionRequest,
    PostToolUse,
    PostToolUseFailure,
    UserPromptSubmit,
    SessionStart,
    SessionEnd,
    Stop,
    SubagentStart,
    SubagentStop,
    PreCompact,
    Notification,
    TeammateIdle,
    TaskCreated,
    TaskCompleted,
    WorktreeCreate,
    WorktreeRemove,
)
