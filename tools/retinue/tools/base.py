"""The Tool contract: what a tool says about itself, and what it does.

A new tool is one class. What it does not say is answered cautiously: not read-only, not concurrency-safe, asks first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar, cast, final, get_args, get_origin

from pydantic import BaseModel, ConfigDict, JsonValue

from retinue.tools.files.state import FileState
from retinue.tools.mcp.ports import McpPort
from retinue.tools.ports import (
    BoardPort,
    CatalogPort,
    ChildPort,
    HistoryPort,
    LanguagePort,
    MailPort,
    SearchProvider,
    ShellPort,
    SideQueryPort,
)
from retinue.tools.prompts import prompt_of
from retinue.tools.schema import input_schema
from retinue.tools.shell.background.ports import BackgroundPort
from retinue.tools.shell.sandbox.policy import NO_SANDBOX, SandboxUse
from retinue.tools.web.settings import DEFAULT_WEB, WebSettings

if TYPE_CHECKING:
    from retinue.tools.execution.inner import InnerCalls
    from retinue.tools.extension.skills.book import SkillBook
    from retinue.tools.lasting import Lasting
    from retinue.tools.people.ports import HumanPort, TodoPort
    from retinue.tools.render.base import Renderer
    from retinue.tools.system.ports import ConfigPort, PlanPort, WaitPort, WorktreePort
    from retinue.tools.team.crew_ports import PeersPort, TeamAdminPort

Behavior = Literal["allow", "ask", "deny"]
_STRICTNESS: tuple[Behavior, ...] = ("allow", "ask", "deny")


class ToolInput(BaseModel):
    """Base of every input model: lax coercion ("5" is 5), unknown keys refused, descriptions for the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RawInput(ToolInput):
    """Input for a schema that is not ours (MCP): any keys, checked against the tool's own `json_schema()`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    def as_object(self) -> dict[str, JsonValue]:
        return dict(self.model_extra or {})


class ToolData(BaseModel):
    """Base of every output model: what a tool found or did, before it becomes text for the model."""

    # Most agents use few of their tools: what they never answer with is never built.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


In = TypeVar("In", bound=ToolInput)
Out = TypeVar("Out", bound=ToolData)


@dataclass(frozen=True, slots=True)
class Traits:
    """What one call may do. Every default is the cautious answer."""

    read_only: bool = False
    concurrency_safe: bool = False
    destructive: bool = False


READS = Traits(read_only=True, concurrency_safe=True)


class Question(BaseModel):
    """What a person is told with a question, and what is kept of it.

    source       the rule, mode or check that asks
    suggestions  rules that would make it needless, five at most; empty when none could
    warnings     what may be lost
    checks       numbers of the checks of the analysis that objected: all that a log may hold
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str = ""
    suggestions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    checks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """allow < ask < deny; the strictest of several wins. `source` names the rule, mode or check that decided.

    question       what was, or would have been, asked
    firm           a question that only a person answers: no hook and no classifier
    updated_input  of an allow: the input that it is for; it is validated and decided about like the model's own
    """

    behavior: Behavior
    reason: str = ""
    source: str = ""
    question: Question | None = None
    firm: bool = False
    updated_input: Mapping[str, JsonValue] | None = None

    def __or__(self, other: Decision) -> Decision:
        return max(self, other, key=lambda d: (_STRICTNESS.index(d.behavior), d.firm))


@dataclass(frozen=True, slots=True)
class Refused:
    """Business validation says no; `code` is stable and is all that telemetry sees."""

    message: str
    code: int


@dataclass(frozen=True, slots=True)
class AskFirst:
    """Business validation cannot tell; the permission chain asks, whatever the allow rules say."""

    message: str


Validation = Refused | AskFirst | None


@dataclass(frozen=True, slots=True)
class CommandSubject:
    """What a permission rule for a shell tool is compared with: the whole command text.

    `asks_out` means that it wants to run outside of the sandbox.
    """

    text: str
    asks_out: bool = False


@dataclass(frozen=True, slots=True)
class PathSubject:
    """What a path rule is compared with; absolute, not yet resolved through links."""

    path: Path
    write: bool


@dataclass(frozen=True, slots=True)
class NameSubject:
    """A single name, as in `Agent(explore)`; empty where only tool-wide rules apply.

    outward  the call leaves this machine: it is asked about, although it changes nothing here
    """

    name: str = ""
    outward: bool = False


Subject = CommandSubject | PathSubject | NameSubject


@dataclass(frozen=True, slots=True)
class Progress:
    """Something to show while a call runs."""

    text: str


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Everything that one call may touch. Made by the agent, handed to each stage, never global.

    cwd         where relative paths and commands start; inside `root` or an extra directory
    root        the workspace root
    key         idempotency key of this call: the same after a restart
    may_read    whether no rule keeps a file from a tool that finds files by itself
    learn       makes a rule for the rest of the session; SpecError when it is none
    lease_fds   open lock descriptors of this call; the shell's keeper takes them over, no tool's child inherits them
    code        for the tool that runs code: the tools that its code may call
    lasting     what tools keep alive between calls
    """

    agent: str
    cwd: Path
    root: Path
    files: FileState
    shell: ShellPort
    board: BoardPort | None = None
    mail: MailPort | None = None
    children: ChildPort | None = None
    background: BackgroundPort | None = None
    extra_dirs: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    results_dir: Path = Path("/nonexistent")
    key: str = ""
    call_id: str = ""
    lease_fds: tuple[int, ...] = ()
    sandbox: SandboxUse = NO_SANDBOX
    may_read: Callable[[AnyTool, Path], bool] | None = None
    plan: PlanPort | None = None
    side: SideQueryPort | None = None
    search: SearchProvider | None = None
    languages: LanguagePort | None = None
    history: HistoryPort | None = None
    human: HumanPort | None = None
    todos: TodoPort | None = None
    worktrees: WorktreePort | None = None
    config: ConfigPort | None = None
    waiting: WaitPort | None = None
    peers: PeersPort | None = None
    team_admin: TeamAdminPort | None = None
    web: WebSettings = DEFAULT_WEB
    catalog: CatalogPort | None = None
    mcp: McpPort | None = None
    skills: SkillBook | None = None
    learn: Callable[[Behavior, str], None] | None = None
    code: InnerCalls | None = None
    lasting: Lasting | None = None


ContextModifier = Callable[[ToolContext], ToolContext]


@dataclass(frozen=True, slots=True)
class Attachment:
    """What the model shall see that is no text: an image, or a PDF. `tokens` is about what it costs."""

    media_type: str
    data: bytes
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolResult(Generic[Out]):
    """`is_error` means: it ran, and what it found is a failure by its own meaning (a test run that fails).

    `attachments` are shown behind the text, unless it is an error. `told` are background tasks whose end it tells: the
    agent needs no further word about them. `loaded` are deferred tools whose definitions the model shall see.
    """

    data: Out
    is_error: bool = False
    attachments: tuple[Attachment, ...] = ()
    new_messages: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    loaded: tuple[str, ...] = ()
    context_modifier: ContextModifier | None = None


ALONE_S = 900.0
"""A call that holds a lease keeps others waiting: longer than the longest command of the shell, and no more."""


class Tool(ABC, Generic[In, Out]):
    """One thing that an agent can do. `Input` and `Output` are taken from the brackets of the base class.

    aliases           deprecated names: they work, and the result says which name to use
    max_result_chars  what the model sees of a result, at most; None for a tool that limits itself (Read)
    should_defer      the model may find it by ToolSearch first, where its provider can do that
    search_hint       further words by which it is found
    needs             fields of `ToolContext` without which no call of it can do anything: where one is None, an agent
                      does not have it
    idempotent        repeating a call with the same context key has one effect; such calls run again after a crash
    needs_lease       the call touches the workspace, so the executor takes its lease first
    fails_group       a failure aborts the sibling group (the shell)
    filters_reads     given a folder, it leaves out what `ToolContext.may_read` refuses; others are denied such a folder
    deadline_s        how long one call may run; None for one that waits for others, with deadlines of its own
    """

    name: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()
    group: ClassVar[str] = "other"
    max_result_chars: ClassVar[int | None] = 50_000
    should_defer: ClassVar[bool] = False
    search_hint: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    idempotent: ClassVar[bool] = False
    needs_lease: ClassVar[bool] = True
    fails_group: ClassVar[bool] = False
    filters_reads: ClassVar[bool] = False
    deadline_s: ClassVar[float | None] = ALONE_S
    Input: type[In]
    Output: type[Out]

    def __init_subclass__(cls, **given: object) -> None:
        super().__init_subclass__(**given)
        for base in cast("tuple[object, ...]", cls.__dict__.get("__orig_bases__", ())):
            if get_origin(base) is Tool:
                for name, model in zip(("Input", "Output"), get_args(base), strict=True):
                    if isinstance(model, type) and name not in cls.__dict__:
                        setattr(cls, name, model)

    @abstractmethod
    def description(self) -> str:
        """One line: what it does, for people and for the search of tools. Stable over a run."""

    def prompt(self) -> str:
        """What the model reads about this tool: `prompt.md` beside the class, or the description where there is none.

        Stable over a run: it is part of the cached prefix.
        """
        return prompt_of(type(self)) or self.description()

    @abstractmethod
    async def call(self, args: In, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[Out]:
        """Do it. Raises ToolError for what the model should hear; the rest is our fault, and contained."""

    @abstractmethod
    def to_content(self, data: Out) -> str:
        """The text that the model sees."""

    def is_enabled(self) -> bool:
        return True

    def is_available(self, ctx: ToolContext) -> bool:
        """Whether an agent in these surroundings, which have all that it `needs`, could use it at all.

        Asked when a pool is made.
        """
        return all(getattr(ctx, need) is not None for need in self.needs)

    # --- what one call may do ---

    def traits(self, args: In) -> Traits:
        del args
        return Traits()

    @final
    def is_read_only(self, args: In) -> bool:
        return self.traits(args).read_only

    @final
    def is_concurrency_safe(self, args: In) -> bool:
        return self.traits(args).concurrency_safe

    @final
    def is_destructive(self, args: In) -> bool:
        return self.traits(args).destructive

    async def validate_input(self, args: In, ctx: ToolContext) -> Validation:
        del args, ctx
        return None

    async def check_permissions(self, args: In, ctx: ToolContext) -> Decision | None:
        """The tool's own word; None leaves it to rules and mode, which ask for what is not read-only."""
        del args, ctx
        return None

    def subject(self, args: In, ctx: ToolContext) -> Subject:
        del args, ctx
        return NameSubject()

    def classifier_input(self, args: In) -> str:
        """What a classifier is shown of the call. Empty: this tool is never approved by a classifier."""
        del args
        return ""

    # --- how people see it ---

    def user_facing_name(self, args: In | None = None) -> str:
        del args
        return self.name

    def title(self, args: In) -> str:
        """One plain line for people who watch: what this call does."""
        return self.user_facing_name(args)

    def backfill_observable_input(self, args: In, ctx: ToolContext) -> In:
        """A copy with what an observer would have to guess, such as absolute paths. The model never sees it."""
        del ctx
        return args

    def renderer(self) -> Renderer[In, Out]:
        """How its calls look, from `render.py` beside the class. Only who shows calls loads it."""
        from retinue.tools.render.find import renderer_of

        return renderer_of(self)

    def json_schema(self) -> dict[str, JsonValue]:
        return input_schema(self.Input)


AnyTool = Tool[Any, Any]
