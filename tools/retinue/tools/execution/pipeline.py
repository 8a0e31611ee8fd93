"""One call, from the model's words to the result that the model sees: eight stages, each of them failing closed.

1 look-up, 2 schema and business validation, 3 hook beside classifier, 4 permission chain, 5 lease and execution,
6 result and its limits, 7 hooks after the call, 8 emission: here the finished result, in order by the executor.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from retinue.tools.base import (
    AnyTool,
    AskFirst,
    Attachment,
    ContextModifier,
    Decision,
    NameSubject,
    Progress,
    Question,
    Refused,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
)
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.execution import opinions
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
from retinue.tools.execution.running import Reporter, is_cancelled
from retinue.tools.execution.stages import AfterPort, ClassifierPort, OpinionPort
from retinue.tools.execution.validate import parse, tool_use_error, unknown_tool
from retinue.tools.registry.pool import Found, ToolsAtHand
from retinue.tools.results.limits import limit_of, preview_of
from retinue.tools.results.observed import bounded
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

    pool: ToolsAtHand
    permissions: PermissionPort
    leases: LeasePort
    journal: JournalPort
    store: ResultStore
    opinions: tuple[OpinionPort, ...] = ()
    classifier: ClassifierPort | None = None
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


def _unloaded(tool: AnyTool, ctx: ToolContext) -> str:
    """Who calls a deferred tool by its name alone guesses at its input."""
    if ctx.catalog is None or ctx.catalog.is_loaded(tool.name):
        return ""
    return f"\nIts definition was not loaded: call ToolSearch with select:{tool.name} first, then call it again."


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
        self._notes: tuple[str, ...] = ()
        self._replaced = False
        self._question: Question | None = None
        self._ran = False
        self._effect_s = 0.0

    async def end(self) -> CallEnd:
        end = await self._end()
        if not self._notes:
            return end
        told = (*end.result.new_messages, *self._notes)
        return replace(end, result=end.result.model_copy(update={"new_messages": told}))

    async def _end(self) -> CallEnd:
        try:
            tool, args, forced_ask = await self._admit()
            args = await self._permit(tool, args, forced_ask)
            return await self._perform(tool, args)
        except _Stop as stop:
            return CallEnd(await self._close(stop.content, error_class=stop.error_class, denied=stop.denied))
        except asyncio.CancelledError:
            if is_cancelled():
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
        args, why = await self._validated(tool, self._call)
        return tool, args, why

    async def _validated(self, tool: AnyTool, call: ToolCall) -> tuple[ToolInput, str | None]:
        """The typed input, and why somebody must be asked about it."""
        args = parse(tool, call)
        if isinstance(args, str):
            raise _Stop(tool_use_error(f"{args}{_unloaded(tool, self._ctx)}"), "InputValidationError")
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
                return args, message
            case None:
                return args, None

    # --- 3 and 4: opinions and permission ---

    async def _permit(self, tool: AnyTool, args: ToolInput, forced_ask: str | None) -> ToolInput:
        """The input that may run: a hook may have given another one."""
        guessed = opinions.guess(self._line.classifier, tool, args, self._ctx)
        try:
            said = await opinions.before(self._line.opinions, tool, self._observed(tool, args), self._ctx)
            self._notes = said.notes
            verdict = said.decision
            if verdict is not None and verdict.behavior == "deny":
                raise _Stop(f"Permission denied for {tool.name}: {verdict.reason}", "PermissionDenied", denied=True)
            if said.updated_input is not None:
                args, why = await self._updated(tool, said.updated_input)
                forced_ask = why or forced_ask
                if guessed is not None:
                    guessed.cancel()
                guessed = opinions.guess(self._line.classifier, tool, args, self._ctx)
            if verdict is not None and verdict.behavior == "ask":
                forced_ask = verdict.reason or forced_ask or "a hook wants to be asked"
            decided = await self._decide(tool, args, forced_ask, verdict, guessed)
            if decided.updated_input is not None:
                args, why = await self._updated(tool, decided.updated_input)
                await self._decide(tool, args, why, replace(decided, updated_input=None), None)
        finally:
            if guessed is not None:
                guessed.cancel()
        return args

    async def _updated(self, tool: AnyTool, values: Mapping[str, JsonValue]) -> tuple[ToolInput, str | None]:
        updated = self._call.model_copy(update={"input": dict(values), "malformed": None})
        args, why = await self._validated(tool, updated)
        self._replaced = True
        return args, why

    async def _decide(
        self,
        tool: AnyTool,
        args: ToolInput,
        forced_ask: str | None,
        verdict: Decision | None,
        guessed: asyncio.Task[Decision | None] | None,
    ) -> Decision:
        vouched = verdict if verdict is not None and verdict.behavior == "allow" else None
        try:
            decision = await self._line.permissions.decide(
                tool, args, self._ctx, forced_ask=forced_ask, vouched=vouched, classifier=guessed
            )
        except Exception as error:
            why = f"the permission check failed ({error_class_of(error)})"
            decision = Decision("deny", f"Permission denied for {tool.name}: {why}.")
        if decision.behavior != "allow":
            self._question = decision.question
            raise _Stop(decision.reason or f"Permission denied for {tool.name}.", "PermissionDenied", denied=True)
        return decision

    # --- 5: lease and execution ---

    async def _perform(self, tool: AnyTool, args: ToolInput) -> CallEnd:
        modifier: ContextModifier | None = None
        data: ToolData | None = None
        try:
            outcome = await self._execute(tool, args)
            modifier, data = outcome.context_modifier, outcome.data
            result = await self._mapped(tool, outcome)
        except Exception as error:
            result = await self._failed(error)
        seen = self._observed(tool, args)
        if self._ran and self._line.afterwards:
            result = await self._after(tool, seen, result, data)
        watched = {
            "observed": bounded(seen, only_set=True) if self._replaced or seen is not args else None,
            "data": bounded(data) if data is not None else None,
        }
        return CallEnd(result.model_copy(update=watched), modifier)

    def _observed(self, tool: AnyTool, args: ToolInput) -> ToolInput:
        try:
            return tool.backfill_observable_input(args, self._ctx)
        except Exception:
            return args

    async def _after(self, tool: AnyTool, seen: ToolInput, result: CallResult, data: ToolData | None) -> CallResult:
        said = await opinions.after(self._line.afterwards, tool, seen, self._ctx, result, data)
        self._notes += said.notes
        if said.content is None:
            return result
        fitted = await self._fitted(said.content, tool)
        path = str(fitted.path) if fitted.path else None
        return result.model_copy(update={"content": fitted.content, "spilled_to": path})

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
        progress = Reporter(self._line.on_progress, self._call)
        try:
            async with scope:
                return await tool.call(args, ctx, progress)
        except asyncio.CancelledError:
            if is_cancelled():
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
        more = {
            "media": media,
            "new_messages": outcome.new_messages,
            "told": outcome.told,
            "loaded": outcome.loaded,
        }
        return result.model_copy(update=more) if any(more.values()) else result

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
            question=self._question,
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
