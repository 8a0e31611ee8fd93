"""REPL: Python code in a process that stays, whose functions are tools."""

from __future__ import annotations

import time
from dataclasses import asdict
from functools import cache
from typing import TYPE_CHECKING

from retinue.tools.base import (
    AskFirst,
    Decision,
    OnProgress,
    Progress,
    Refused,
    Tool,
    ToolContext,
    ToolResult,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.extension.repl.constants import (
    DEFAULT_TIMEOUT_MS,
    EMPTY,
    MAX_CODE,
    MAX_RESULT_CHARS,
    MAX_TIMEOUT_MS,
    NO_CHARACTER,
    TOO_LONG,
)
from retinue.tools.extension.repl.schema import REPLInput, REPLOutput
from retinue.tools.text import is_unicode, one_line

if TYPE_CHECKING:
    from retinue.tools.execution.inner import InnerCalls
    from retinue.tools.extension.repl.session import Session
    from retinue.tools.lasting import Lasting

_PROGRESS_CHARS = 2_000


class REPL(Tool[REPLInput, REPLOutput]):
    """What code may do by itself is held by the sandbox, and decided here; each call that it makes is decided anew."""

    name = "REPL"
    group = "extension"
    needs = ("lasting",)
    search_hint = "run python code with tools as functions"
    max_result_chars = MAX_RESULT_CHARS
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Run Python code in a process that keeps its variables"

    def title(self, args: REPLInput) -> str:
        return one_line(args.description or args.code or "start anew")

    def prompt(self) -> str:
        """With the functions that there may be: where tools are reached through it alone, nobody else names them."""
        return f"{super().prompt()}\n\n{_signatures()}"

    async def validate_input(self, args: REPLInput, ctx: ToolContext) -> Validation:
        if not args.code.strip() and not args.reset:
            return Refused("The code is empty.", EMPTY)
        if "\0" in args.code or not is_unicode(args.code):
            return Refused("The code contains a null byte, or half of a surrogate pair.", NO_CHARACTER)
        if len(args.code) > MAX_CODE:
            return Refused(f"The code has {len(args.code):,} characters; {MAX_CODE:,} are possible.", TOO_LONG)
        return _doubt(ctx)

    async def check_permissions(self, args: REPLInput, ctx: ToolContext) -> Decision | None:
        """As for Bash: unasked only in a sandbox whose owner said so, and never while nothing may be changed."""
        use = ctx.sandbox
        if use.state == "on" and use.auto_allow and ctx.code is not None and not ctx.code.rights().planning:
            return Decision("allow", "the sandbox confines it", "sandbox")
        return None

    async def call(self, args: REPLInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[REPLOutput]:
        from retinue.tools.extension.repl.functions import functions_of

        inner, session = _equipment(ctx)
        begun = time.monotonic()
        if args.reset:
            await session.close()
        if not args.code.strip():
            return ToolResult(REPLOutput(output="", lost="the process was ended"))
        scope = inner.within(ctx)
        timeout_s = min(args.timeout or DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS) / 1000
        ran = await session.run(
            args.code,
            ctx,
            scope,
            functions_of(inner.pool.tools),
            timeout_s,
            lambda text: on_progress(Progress(text[-_PROGRESS_CHARS:])),
        )
        data = REPLOutput(**asdict(ran), calls=scope.count, duration_s=time.monotonic() - begun)
        return ToolResult(
            data,
            is_error=bool(ran.error is not None or ran.stopped or ran.gone),
            new_messages=tuple(scope.notes),
            told=tuple(scope.told),
            context_modifier=scope.modifier(),
        )

    def to_content(self, data: REPLOutput) -> str:
        from retinue.tools.extension.repl.words import content_of

        return content_of(data)


@cache
def _signatures() -> str:
    from retinue.tools.extension.repl.functions import functions_of
    from retinue.tools.registry.builtin import builtin_tool
    from retinue.tools.registry.table import WRAPPED_BY_REPL

    tools = [tool for name in sorted(WRAPPED_BY_REPL) if (tool := builtin_tool(name)) is not None]
    lines = [f"- `{function.signature()}`" for function in functions_of(tools)]
    return "\n".join(("These there are, as far as you may use them; `print(Read.__doc__)` tells more:", *lines))


def _equipment(ctx: ToolContext) -> tuple[InnerCalls, Session]:
    from retinue.tools.extension.repl.session import Session

    inner: InnerCalls | None = ctx.code
    lasting: Lasting | None = ctx.lasting
    if inner is None or lasting is None:
        raise ToolError("There is no REPL here: no process could be kept for it.")
    return inner, lasting.get(REPL.name, Session)


def _doubt(ctx: ToolContext) -> AskFirst | None:
    """What no mode answers. The sandbox is what holds code; what a rule forbids a tool, code may do all the same."""
    if ctx.sandbox.state == "broken":
        why = f" ({ctx.sandbox.why})" if ctx.sandbox.why else ""
        return AskFirst(f"the sandbox cannot start{why}, so code is asked about")
    rights = ctx.code.rights() if ctx.code is not None else None
    if rights is not None and rights.restraint and not rights.vouched:
        return AskFirst(f"{rights.restraint}, and no rule allows {REPL.name}")
    return None
