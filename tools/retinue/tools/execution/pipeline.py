"""One call, from the model's words to the result that the model sees: eight stages, each of them failing closed.

1 look-up, 2 schema and business validation, 3 hook beside classifier, 4 permission chain, 5 lease and execution,
6 result and its limits, 7 hooks after the call, 8 emission: here the finished result, in order by the executor.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from retinue.tools.base import (
    AnyTool,
    AskFirst,
    Attachment,
    ContextModifier,
    Decision,
    NameSubject,
    Progress,
    Refused,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.execution.calls import (
    CallEnd,
    CallResult,
    JournalPort,
    Lease,
    LeasePort,
    Media,
    PermissionPort,
    ToolCall,
)
from retinue.tools.execution.errors_of import error_class_of
from retinue.tools.execution.stages import AfterPort, OpinionPort
from retinue.tools.execution.validate import parse, tool_use_error, unknown_tool
from retinue.tools.registry.pool import Found, ToolPool
from retinue.tools.results.limits import limit_of, preview_of
from retinue.tools.results.store import Fitted, ResultStore
from retinue.tools.text import one_line
from retinue.tools.threads import in_thread

_ERROR_CHARS = 500


class DeadlinePassed(ToolError):
    """The call ran longer than a call may."""


def _no_progress(call: ToolCall, progress: Progress) -> None:
    del call, progress


def _key_of(ctx: ToolContext, call: ToolCall) -> str:
    return f"{ctx.agent}/{call.id}"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Implements `Runner`. `key_of` gives the idempotency key of a call: the same after a restart."""

    pool: ToolPool
    permissions: PermissionPort
    leases: LeasePort
    journal: JournalPort
    store: ResultStore
    opinions: tuple[OpinionPort, ...] = ()
    afterwards: tuple[AfterPort, ...] = ()
    on_progress: Callable[[ToolCall, Progress], None] = _no_progress
    key_of: Callable[[ToolContext, ToolCall], str] = _key_of
    clock: Callable[[], float] = time.monotonic

    def traits_of(self, call: ToolCall) -> Traits:
        """Input that does not parse, and a tool that cannot say, are treated as the worst case."""
        found = self.pool.find(call.name)
        if found is None:
            return Traits()
        args = parse(found.tool, call)
        return Traits() if isinstance(args, str) else _traits(found.tool, args)

    async def run(self, call: ToolCall, ctx: ToolContext, on_effect: Callable[[], None]) -> CallEnd:
        return await _Run(self, call, ctx, on_effect).end()


def _traits(tool: AnyTool, args: ToolInput) -> Traits:
    try:
        return tool.traits(args)
    except Exception:
        return Traits()


def _title(tool: AnyTool, args: ToolInput) -> str:
    try:
        return one_line(tool.title(args)).encode("utf-8", "replace").decode()
    except Exception:
        return tool.name


class _Stop(Exception):
    """A stage ends the call before its effect: the call was wrong, or is denied."""

    def __init__(self, content: str, error_class: str, *, denied: bool = False) -> None:
        super().__init__(error_class)
        self.content = content
        self.error_class = error_class
        self.denied = denied


class _Run:
    """One call on its way through the stages."""

    def __init__(self, line: Pipeline, call: ToolCall, ctx: ToolContext, on_effect: Callable[[], None]) -> None:
        self._line = line
        self._call = call
        self._ctx = replace(ctx, call_id=call.id, key=line.key_of(ctx, call))
        self._on_effect = on_effect
        self._started_at = line.clock()
        self._found: Found | None = None
        self._title = ""
        self._ran = False
        self._effect_s = 0.0

    async def end(self) -> CallEnd:
        try:
            tool, args, forced_ask = await self._admit()
            await self._permit(tool, args, forced_ask)
            return await self._perform(tool, args)
        except _Stop as stop:
            return CallEnd(await self._close(stop.content, error_class=stop.error_class, denied=stop.denied))
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            return CallEnd(await self._failed(ToolError(f"{self._call.name} was cancelled before it ran.")))
        except Exception as error:
            return CallEnd(await self._failed(error))

    # --- 1 and 2: look-up and validation ---

    async def _admit(self) -> tuple[AnyTool, ToolInput, str | None]:
        self._found = self._line.pool.find(self._call.name)
        if self._found is None:
            raise _Stop(tool_use_error(unknown_tool(self._call.name, self._line.pool)), "NoSuchTool")
        tool = self._found.tool
        args = parse(tool, self._call)
        if isinstance(args, str):
            raise _Stop(tool_use_error(args), "InputValidationError")
        self._title = _title(tool, args)
        allowed = self._line.pool.only_names.get(tool.name)
        subject = tool.subject(args, self._ctx) if allowed is not None else None
        if allowed is not None and not (isinstance(subject, NameSubject) and subject.name in allowed):
            names = ", ".join(sorted(allowed))
            raise _Stop(tool_use_error(f"{tool.name} may be used for these only: {names}"), "NotInPool")
        match await tool.validate_input(args, self._ctx):
            case Refused(message, code):
                raise _Stop(tool_use_error(message), f"Refused:{tool.name}:{code}")
            case AskFirst(message):
                return tool, args, message
            case None:
                return tool, args, None

    # --- 3 and 4: opinions and permission ---

    async def _permit(self, tool: AnyTool, args: ToolInput, forced_ask: str | None) -> None:
        if self._line.opinions:
            said = await self._opinion(tool, args)
            if said is not None and said.behavior == "deny":
                raise _Stop(f"Permission denied for {tool.name}: {said.reason}", "PermissionDenied", denied=True)
            if said is not None and said.behavior == "ask":
                forced_ask = said.reason or forced_ask or "a hook wants to be asked"
        try:
            decision = await self._line.permissions.decide(tool, args, self._ctx, forced_ask=forced_ask)
        except Exception as error:
            why = f"the permission check failed ({error_class_of(error)})"
            decision = Decision("deny", f"Permission denied for {tool.name}: {why}.")
        if decision.behavior != "allow":
            raise _Stop(decision.reason or f"Permission denied for {tool.name}.", "PermissionDenied", denied=True)

    async def _opinion(self, tool: AnyTool, args: ToolInput) -> Decision | None:
        """Side by side; the strictest stands. Who fails to answer says no."""
        asked = (each.opinion(tool, args, self._ctx) for each in self._line.opinions)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        strictest: Decision | None = None
        for answer in answers:
            if isinstance(answer, BaseException):
                answer = Decision("deny", f"a check before the call failed ({error_class_of(answer)})")
            if answer is not None:
                strictest = answer if strictest is None else strictest | answer
        return strictest

    # --- 5: lease and execution ---

    async def _perform(self, tool: AnyTool, args: ToolInput) -> CallEnd:
        modifier: ContextModifier | None = None
        try:
            outcome = await self._execute(tool, args)
            modifier = outcome.context_modifier
            result = await self._mapped(tool, outcome)
        except Exception as error:
            result = await self._failed(error)
        if self._ran:
            await self._afterwards(tool, args, result)
        return CallEnd(result, modifier)

    async def _execute(self, tool: AnyTool, args: ToolInput) -> ToolResult[ToolData]:
        traits = _traits(tool, args)
        if not tool.needs_lease:
            return await self._call_tool(tool, args, traits, Lease())
        outcome: ToolResult[ToolData] | None = None
        try:
            async with self._line.leases.hold(self._call.id, exclusive=not traits.concurrency_safe) as lease:
                outcome = await self._call_tool(tool, args, traits, lease)
        except Exception:
            if outcome is None:
                raise
        return outcome  # what the tool did stands, also when its lease was not given back in good order

    async def _call_tool(self, tool: AnyTool, args: ToolInput, traits: Traits, lease: Lease) -> ToolResult[ToolData]:
        ctx = replace(self._ctx, lease_fds=lease.fds)
        self._on_effect()
        await self._line.journal.started(self._call, traits)
        self._ran = True
        begun = self._line.clock()
        scope = asyncio.timeout(tool.deadline_s)
        progress = _Reporter(self._line.on_progress, self._call)
        try:
            async with scope:
                return await tool.call(args, ctx, progress)
        except asyncio.CancelledError:
            if _is_cancelled():
                raise
            raise ToolError(f"{tool.name} was cancelled from inside; its outcome is unknown.") from None
        except TimeoutError:
            if not scope.expired():
                raise
            raise DeadlinePassed(f"{tool.name} did not end within {tool.deadline_s:g} s and was stopped.") from None
        finally:
            self._effect_s = self._line.clock() - begun
            progress.close()

    # --- 6 to 8: result, hooks, emission ---

    async def _mapped(self, tool: AnyTool, outcome: ToolResult[ToolData]) -> CallResult:
        media, lost = await self._kept(outcome.attachments)
        result = await self._close(
            tool.to_content(outcome.data) + lost,
            error_class="ToolFailed" if outcome.is_error else "",
            is_error=outcome.is_error,
        )
        if not media and not outcome.new_messages and not outcome.told:
            return result
        more = {"media": media, "new_messages": outcome.new_messages, "told": outcome.told}
        return result.model_copy(update=more)

    async def _kept(self, attachments: tuple[Attachment, ...]) -> tuple[tuple[Media, ...], str]:
        """References to what was attached, and a word about what could not be kept."""
        if not attachments:
            return (), ""
        try:
            return await in_thread(lambda: tuple(map(self._line.store.keep, attachments))), ""
        except OSError as error:
            return (), f"\n[What belongs to this result could not be kept ({error.strerror}), and is not shown.]"

    async def _failed(self, error: Exception) -> CallResult:
        name = self._found.tool.name if self._found else self._call.name
        error_class = error_class_of(error)
        if isinstance(error, RetinueError):
            return await self._close(str(error), error_class=error_class)
        return await self._close(
            f"{name} failed: {error_class}: {one_line(str(error), _ERROR_CHARS)}", error_class=error_class
        )

    async def _close(
        self, content: str, *, error_class: str, is_error: bool = True, denied: bool = False
    ) -> CallResult:
        tool = self._found.tool if self._found else None
        fitted = await self._fitted(content, tool)
        if self._found and self._found.alias:
            note = f"({self._found.alias} is a deprecated name of this tool: call {self._found.tool.name}.)"
            fitted = replace(fitted, content=f"{fitted.content}\n\n{note}")
        name = tool.name if tool else self._call.name
        return CallResult(
            call_id=self._call.id,
            name=name,
            content=fitted.content,
            is_error=is_error,
            ran=self._ran,
            denied=denied,
            fails_group=is_error and self._ran and tool is not None and tool.fails_group,
            error_class=error_class,
            title=self._title or one_line(name),
            duration_s=self._line.clock() - self._started_at,
            effect_s=self._effect_s,
            spilled_to=str(fitted.path) if fitted.path else None,
            seen=self._ctx.files.take_changes() if self._ran else {},
        )

    async def _fitted(self, content: str, tool: AnyTool | None) -> Fitted:
        """Text that is no valid Unicode is mended: neither a ledger nor a model could take it."""
        text = content if content.isascii() else content.encode("utf-8", "replace").decode()
        limit = limit_of(tool.max_result_chars if tool else None)
        if len(text) <= limit:
            return Fitted(text)
        try:
            return await in_thread(self._line.store.fit, self._call.id, text, limit)
        except Exception as error:
            lost = f"[The output of {len(text):,} characters could not be kept ({error_class_of(error)}). It began:]"
            return Fitted(f"{lost}\n{preview_of(text)}")

    async def _afterwards(self, tool: AnyTool, args: ToolInput, result: CallResult) -> None:
        for each in self._line.afterwards:
            with contextlib.suppress(Exception):  # the effect is done: a hook that fails cannot change what it was
                await each.after(tool, args, self._ctx, result)


class _Reporter:
    """Progress of one call, until its end; who watches cannot break it."""

    def __init__(self, tell: Callable[[ToolCall, Progress], None], call: ToolCall) -> None:
        self._tell = tell
        self._call = call
        self._open = True

    def __call__(self, progress: Progress) -> None:
        if self._open:
            with contextlib.suppress(Exception):
                self._tell(self._call, progress)

    def close(self) -> None:
        self._open = False


def _is_cancelled() -> bool:
    """Whether somebody outside called this task off."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
