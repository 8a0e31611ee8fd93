"""What an agent writes into the ledger, in the order in which it happens. The conversation is a fold over these.

    mail_stored … request(turn, step, mail) → block … → message_closed → tool_started → effect → tool_finished …
    → step_closed → [next request | turn_closed]

A turn runs from the input that wakes an agent to a message without calls; a step is one model request and its results.
Both count from 1 over the whole life of an agent; `step` counts over all turns.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from retinue.agents.mail.envelopes import Envelope
from retinue.agents.model.messages import AssistantBlock, TextBlock, Usage, Wire
from retinue.agents.model.port import StopReason
from retinue.tools.execution.calls import CallResult
from retinue.tools.hooks.runs import HookRun
from retinue.tools.ports import SearchHit
from retinue.tools.shell.background.ports import BackgroundTask


class MailStored(Wire):
    """Written by the recipient, or by the team on its behalf while it has no process."""

    kind: Literal["mail_stored"] = "mail_stored"
    envelope: Envelope


class RequestSent(Wire):
    """The mail in it counts as processed from here on. `input` is what the mail and notes became, byte for byte.

    `announced` and `withdrawn` are deferred tools that its input tells the model of.
    """

    kind: Literal["request"] = "request"
    turn: int
    step: int
    mail: tuple[str, ...] = ()
    input: tuple[TextBlock, ...] = ()
    announced: tuple[str, ...] = ()
    withdrawn: tuple[str, ...] = ()


class BlockComplete(Wire):
    kind: Literal["block"] = "block"
    turn: int
    step: int
    index: int
    block: AssistantBlock


class MessageClosed(Wire):
    """`stop_reason` is None when the stream broke after a call had started and the completed blocks were kept."""

    kind: Literal["message_closed"] = "message_closed"
    turn: int
    step: int
    stop_reason: StopReason | None
    usage: Usage
    model: str


class MessageWithdrawn(Wire):
    """The stream broke before any call started: its blocks never were; the same step asks again."""

    kind: Literal["message_withdrawn"] = "message_withdrawn"
    turn: int
    step: int
    reason: str


class ToolStarted(Wire):
    kind: Literal["tool_started"] = "tool_started"
    turn: int
    step: int
    call_id: str
    tool: str
    read_only: bool


class ToolFinished(Wire):
    kind: Literal["tool_finished"] = "tool_finished"
    turn: int
    step: int
    result: CallResult


class InnerStarted(Wire):
    """A call that the code of the call `outer` makes; its id is that of the outer one and a number."""

    kind: Literal["inner_started"] = "inner_started"
    turn: int
    step: int
    outer: str
    call_id: str
    tool: str
    read_only: bool
    input: dict[str, JsonValue] = {}


class InnerFinished(Wire):
    """Told to the code. The model is told what the outer call came to."""

    kind: Literal["inner_finished"] = "inner_finished"
    turn: int
    step: int
    outer: str
    result: CallResult


class BackgroundStarted(Wire):
    """A command was handed over: it goes on without its call and without a lease."""

    kind: Literal["background_started"] = "background_started"
    task: BackgroundTask


class BackgroundEnded(Wire):
    """`task` is how it stands from here on."""

    kind: Literal["background_ended"] = "background_ended"
    task: BackgroundTask


class HistorySnipped(Wire):
    """Exchanges `oldest` to `newest`, counted back from here, are replaced by the note. `key` is that of the call."""

    kind: Literal["history_snipped"] = "history_snipped"
    key: str
    oldest: int
    newest: int
    note: str


KeptName = Literal["todos", "plan", "worktree", "settings"]


class StateKept(Wire):
    """What an agent keeps beside its conversation: the newest of each name counts. `key` is that of the call."""

    kind: Literal["state_kept"] = "state_kept"
    name: KeptName
    key: str
    value: JsonValue


class SideAnswered(Wire):
    """A question beside the conversation, to a small model or to a provider's search: what was answered and used.

    `digest` tells the question; `key` is that of its place in the budget. An empty answer: there was none.
    """

    kind: Literal["side_answered"] = "side_answered"
    key: str
    digest: str
    text: str = ""
    hits: tuple[SearchHit, ...] = ()
    usage: Usage = Usage()
    model: str


class StepClosed(Wire):
    """`shortened` has, by call, what the model is shown of results that were too large all together."""

    kind: Literal["step_closed"] = "step_closed"
    turn: int
    step: int
    checkpoint: str | None = None
    shortened: dict[str, str] = {}


class PromptRefused(Wire):
    """A hook kept a person's words from the agent; they count as processed."""

    kind: Literal["prompt_refused"] = "prompt_refused"
    mail: str
    reason: str


class HooksRan(Wire):
    """Hooks were asked about an event. `messages` are for people; `halts`: why the turn has to end."""

    kind: Literal["hooks_ran"] = "hooks_ran"
    event: str
    runs: tuple[HookRun, ...]
    messages: tuple[str, ...] = ()
    halts: str | None = None


TurnEnd = Literal["done", "limit", "refusal", "max_tokens", "model_error", "expectation", "hook", "stopped", "shutdown"]
"""`hook`: one wanted it so."""


class TurnClosed(Wire):
    """`text` is the agent's last text: a sub-agent's result; of a teammate nobody hears it."""

    kind: Literal["turn_closed"] = "turn_closed"
    turn: int
    reason: TurnEnd
    text: str = ""
    detail: str = ""


class AgentWaits(Wire):
    """The agent holds its state and waits: for the model after an error, for a budget, for a lease."""

    kind: Literal["agent_waits"] = "agent_waits"
    turn: int
    what: str
    seconds: float | None = None


AgentRecord = Annotated[
    MailStored
    | RequestSent
    | BlockComplete
    | MessageClosed
    | MessageWithdrawn
    | ToolStarted
    | ToolFinished
    | InnerStarted
    | InnerFinished
    | BackgroundStarted
    | BackgroundEnded
    | HistorySnipped
    | StateKept
    | StepClosed
    | TurnClosed
    | PromptRefused
    | HooksRan
    | SideAnswered
    | AgentWaits,
    Field(discriminator="kind"),
]
AGENT_RECORD: TypeAdapter[AgentRecord] = TypeAdapter(AgentRecord)
