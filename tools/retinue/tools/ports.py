"""What tools need from the layers above, as protocols and the values that cross them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from pydantic import BaseModel, ConfigDict, JsonValue


class PortModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# --- the shell -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """One command for `bash -c`, in a session of its own.

    env          the whole environment of the command: nothing else is inherited
    timeout_s    from its start until it is ended
    background_s the limit that a hand-over puts in the place of `timeout_s`; None: no limit
    output_file  receives all output, stdout and stderr in order, up to `max_file_bytes`
    error_file   receives what it prints as errors, if that shall not be among its output
    input        what it reads; no process but its own tree can see it
    keep_fds     lock descriptors that the keeper holds until the whole process tree is gone, or the command is handed
                 over; never seen by the command
    tag          marks the process tree (environment RETINUE_CALL), so that survivors of a killed keeper can be found
    confined     false: outside of the sandbox that the shell may have; somebody with the right to do so said it
    """

    command: str
    cwd: Path
    env: Mapping[str, str]
    timeout_s: float
    output_file: Path
    error_file: Path | None = None
    input: bytes = field(default=b"", repr=False)
    keep_fds: tuple[int, ...] = ()
    tag: str = ""
    confined: bool = True
    background_s: float | None = None
    max_file_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ShellOutcome:
    """`exit_code` is negative for a signal. `output` is the text shown: the head, or head and tail with a note between.

    `cwd` is where the command ended, None when unknown. `killed` counts survivors that had to be killed.
    """

    exit_code: int
    output: str
    output_bytes: int
    truncated: bool
    timed_out: bool
    duration_s: float
    cwd: Path | None = None
    killed: int = 0


class Confinement(Protocol):
    """A sandbox that commands are started in."""

    @property
    def scratch(self) -> Path:
        """A folder outside of the workspace that the command may write."""
        ...

    @property
    def guarded(self) -> bool:
        """Whether the wrapped program stays beside the command, which then leads a session of its own."""
        ...

    def wrap(self, argv: Sequence[str]) -> list[str]:
        """The program and arguments that run `argv` confined; the working directory is kept."""
        ...


class RunningCommand(Protocol):
    """A command that was started. Whoever started it sees to its end: by waiting, or by stopping it."""

    @property
    def output_file(self) -> Path:
        """Where its output goes."""
        ...

    async def wait(self) -> ShellOutcome:
        """How it ended, its whole process tree gone; as often as one likes. Who gives up waiting stops nothing."""
        ...

    async def stop(self) -> None:
        """Call it off. The whole process tree is gone when this returns or raises."""
        ...

    async def hand_over(self, output_file: Path) -> bool:
        """Let it go on without its locks and its time limit, its output moved to that file.

        False: it was ending already, and still holds its locks until it has ended.
        """
        ...


class ShellPort(Protocol):
    async def start(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> RunningCommand:
        """Let it begin. What it prints is told until it ends or is handed over."""
        ...

    async def run(
        self, request: ShellRequest, on_output: Callable[[str], None] | None = None, *, max_chars: int = 30_000
    ) -> ShellOutcome:
        """Run to the end, the time-out or cancellation; the whole process tree is gone when this returns or raises."""
        ...


# --- the task board --------------------------------------------------------------------------------------------------

TaskStatus = Literal["pending", "in_progress", "verifying", "merged", "done", "failed", "deleted"]


class TaskDraft(PortModel):
    subject: str
    description: str = ""
    active_form: str = ""
    metadata: dict[str, JsonValue] = {}


class TaskView(PortModel):
    """One task as everybody sees it. `returns` counts how often the merge queue sent it back; `note` says why, last."""

    id: str
    subject: str
    description: str = ""
    active_form: str = ""
    status: TaskStatus = "pending"
    owner: str | None = None
    blocks: tuple[str, ...] = ()
    blocked_by: tuple[str, ...] = ()
    open_blockers: tuple[str, ...] = ()
    returns: int = 0
    note: str = ""
    branch: str | None = None
    sha: str | None = None
    metadata: dict[str, JsonValue] = {}


class TaskChange(PortModel):
    task_id: str
    status: Literal["pending", "in_progress", "completed", "deleted"] | None = None
    subject: str | None = None
    description: str | None = None
    active_form: str | None = None
    owner: str | None = None
    add_blocks: tuple[str, ...] = ()
    add_blocked_by: tuple[str, ...] = ()
    metadata: dict[str, JsonValue] = {}


class TaskAnswer(PortModel):
    """What became of a create or change: `text` is for the model, `task` is the new state, None when refused."""

    ok: bool
    text: str
    task: TaskView | None = None


class BoardPort(Protocol):
    """`key` is the idempotency key of the call: the same key has one effect and the same answer."""

    async def create(self, key: str, draft: TaskDraft) -> TaskAnswer: ...
    async def update(self, key: str, change: TaskChange) -> TaskAnswer: ...
    async def get(self, task_id: str) -> TaskView | None: ...
    async def list(self) -> tuple[TaskView, ...]: ...


# --- mail ------------------------------------------------------------------------------------------------------------


class MailDraft(PortModel):
    """`to` is a name, a role, or `*` for everybody else."""

    to: str
    text: str
    summary: str = ""


class MailAnswer(PortModel):
    """`text` is for the model: "stored", "refused: mailbox full", "no such agent: …"."""

    ok: bool
    text: str


class MailPort(Protocol):
    async def send(self, key: str, draft: MailDraft) -> MailAnswer: ...


# --- sub-agents ------------------------------------------------------------------------------------------------------


class ChildRequest(PortModel):
    """`planning`: whoever starts it plans, so it may only read, too."""

    definition: str
    description: str
    prompt: str
    model: str | None = None
    planning: bool = False


class ChildOutcome(PortModel):
    """`text` is the child's last text, untrusted; `agent` its id."""

    ok: bool
    text: str
    agent: str = ""
    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0


class ChildPort(Protocol):
    async def run(self, key: str, request: ChildRequest) -> ChildOutcome:
        """Run a child to its end. The same key attaches to the child that is already there."""
        ...


# --- a small model, the web and language servers ---------------------------------------------------------------------


class SideQueryPort(Protocol):
    async def ask(self, prompt: str, *, system: str = "", max_tokens: int = 4_096) -> str:
        """One question to a small model without tools; its cost is the agent's. ToolError when it has no answer."""
        ...


class SearchQuery(PortModel):
    """At most one of the two lists is given. `max_uses` is how many searches may be made for this one question."""

    query: str
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int = 8


class SearchHit(PortModel):
    title: str
    url: str
    snippet: str = ""


class SearchAnswer(PortModel):
    """`text` is what the provider says in its own words, if it says anything. All of it is untrusted."""

    hits: tuple[SearchHit, ...] = ()
    text: str = ""


class SearchProvider(Protocol):
    async def search(self, query: SearchQuery) -> SearchAnswer:
        """ToolError when it cannot be reached, or does not answer as it should."""
        ...


class ServerSearchPort(Protocol):
    async def server_search(self, query: SearchQuery) -> SearchAnswer:
        """One request to the model with its provider's own search tool; its cost is the agent's."""
        ...


LanguageOperation = Literal[
    "goToDefinition",
    "findReferences",
    "hover",
    "documentSymbol",
    "workspaceSymbol",
    "goToImplementation",
    "prepareCallHierarchy",
    "incomingCalls",
    "outgoingCalls",
    "diagnostics",
]


@dataclass(frozen=True, slots=True)
class LanguageQuestion:
    """`line` and `character` count from 1, characters as the file's text has them; not every operation needs them."""

    operation: LanguageOperation
    file: Path
    line: int = 1
    character: int = 1
    query: str = ""


class LanguageEntry(PortModel):
    """One place, symbol, caller or diagnostic. `file` is absolute; `line` and `character` count from 1.

    depth    how far a symbol is nested
    kind     `function`, `class`, …; `error`, `warning`, … for a diagnostic
    """

    file: str
    line: int
    character: int
    name: str = ""
    kind: str = ""
    detail: str = ""
    depth: int = 0


class LanguageAnswer(PortModel):
    """`text` is the answer to `hover`. `note` says what an answer does not take in."""

    server: str
    entries: tuple[LanguageEntry, ...] = ()
    text: str = ""
    note: str = ""


class LanguagePort(Protocol):
    @property
    def extensions(self) -> frozenset[str]:
        """The suffixes of files, with their dot, that some language server is configured for."""
        ...

    async def ask(self, question: LanguageQuestion) -> LanguageAnswer:
        """Starts the server of this file if need be. ToolError when there is none, or it does not answer."""
        ...


# --- the conversation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stretch:
    """Exchanges of an agent's own conversation, counted back from the one that is going on: 1 is the last before it.

    An exchange is one message of the agent with the results of its calls.
    """

    oldest: int
    newest: int


class HistoryPort(Protocol):
    async def snip(self, key: str, stretch: Stretch, note: str) -> int:
        """Put the note in the place of the stretch; about how many tokens that frees. ToolError when it cannot be.

        The same key has one effect and the same answer.
        """
        ...


# --- tools that are found by search ----------------------------------------------------------------------------------


class DeferredTool(PortModel):
    """A tool whose definition the model does not see before it asks for it."""

    name: str
    description: str
    search_hint: str = ""
    input_schema: dict[str, JsonValue] = {}


class CatalogPort(Protocol):
    """The deferred tools of one agent."""

    def deferred(self) -> tuple[DeferredTool, ...]:
        """All of them, also those that were loaded; the same order at every call."""
        ...

    def is_loaded(self, name: str) -> bool:
        """Whether the model sees the definition of this tool, deferred or not. False for a name that nobody has."""
        ...

    def remarks(self) -> tuple[str, ...]:
        """What may be missing, and why: servers that are still connecting, or that failed. One line each."""
        ...
