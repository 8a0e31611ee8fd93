"""Bash: one command, in its own process tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retinue.tools.base import (
    READS,
    CommandSubject,
    OnProgress,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.shell.bash.constants import MAX_RESULT_CHARS
from retinue.tools.shell.bash.content import content_of
from retinue.tools.shell.bash.schema import BashInput, BashOutput
from retinue.tools.text import is_unicode, one_line

if TYPE_CHECKING:
    from retinue.tools.shell.analysis.model import DisplayClass

_NO_WAY_OUT = (
    "Commands may not run outside of the sandbox here (`sandbox.allow_unsandboxed` is off in the spec): leave "
    "dangerouslyDisableSandbox out."
)
_EMPTY, _NO_CHARACTER, _BACKGROUND, _UNSANDBOXED = 1, 2, 3, 4


class Bash(Tool[BashInput, BashOutput]):
    name = "Bash"
    group = "shell"
    search_hint = "run a command"
    max_result_chars = MAX_RESULT_CHARS
    fails_group = True

    def description(self) -> str:
        return "Run one command in the shell"

    def subject(self, args: BashInput, ctx: ToolContext) -> Subject:
        return CommandSubject(args.command, asks_out=args.disable_sandbox)

    def traits(self, args: BashInput) -> Traits:
        """Whether it only reads is told by its text alone; where it may read is for the permission chain to say."""
        from retinue.tools.shell.commands import leaves_all_as_it_is, may_destroy

        if leaves_all_as_it_is(args.command):
            return READS
        return Traits(destructive=may_destroy(args.command))

    def display_class(self, args: BashInput) -> DisplayClass | None:
        """What it is folded with when it is shown: searches, reads or lists."""
        from retinue.tools.shell.commands import display_class_of

        return display_class_of(args.command)

    def classifier_input(self, args: BashInput) -> str:
        return args.command

    def title(self, args: BashInput) -> str:
        return one_line(args.description or args.command)

    async def validate_input(self, args: BashInput, ctx: ToolContext) -> Validation:
        if not args.command.strip():
            return Refused("The command is empty.", _EMPTY)
        if "\0" in args.command or not is_unicode(args.command):
            return Refused("The command contains a null byte, or half of a surrogate pair.", _NO_CHARACTER)
        if args.run_in_background and ctx.background is None:
            return Refused("There is no background here: run it in the foreground.", _BACKGROUND)
        if args.disable_sandbox and ctx.sandbox.state == "on" and not ctx.sandbox.allow_unconfined:
            return Refused(_NO_WAY_OUT, _UNSANDBOXED)
        return None

    async def call(self, args: BashInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[BashOutput]:
        from retinue.tools.shell.bash.run import run_command

        return await run_command(args, ctx, on_progress)

    def to_content(self, data: BashOutput) -> str:
        return content_of(data)
