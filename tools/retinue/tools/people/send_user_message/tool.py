"""SendUserMessage: words for the person who watches, with files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Literal

from pydantic import Field

from retinue.tools.base import (
    Decision,
    OnProgress,
    Refused,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Traits,
    Validation,
)
from retinue.tools.errors import ToolError
from retinue.tools.files import paths
from retinue.tools.people.send_user_message.constants import (
    EMPTY,
    IMAGES,
    MAX_ATTACHMENTS,
    MAX_FILE_BYTES,
    MAX_MESSAGE,
    NO_FILE,
    OUTSIDE,
    TOO_LARGE,
)
from retinue.tools.text import counted, one_line
from retinue.tools.threads import in_thread

Status = Literal["normal", "proactive"]


class SendUserMessageInput(ToolInput):
    message: str = Field(max_length=MAX_MESSAGE, description="What to say, in Markdown")
    attachments: tuple[str, ...] = Field(
        (), max_length=MAX_ATTACHMENTS, description="Paths of files that belong to it, inside the workspace"
    )
    status: Status = Field("normal", description="`proactive` when nobody asked for it: something to know now")


class AttachedFile(ToolData):
    path: str
    size: int
    is_image: bool


class SendUserMessageOutput(ToolData):
    message: str
    status: Status
    attachments: tuple[AttachedFile, ...] = ()


class _Unfit(ToolError):
    def __init__(self, message: str, code: int = NO_FILE) -> None:
        super().__init__(message)
        self.code = code


class SendUserMessage(Tool[SendUserMessageInput, SendUserMessageOutput]):
    name = "SendUserMessage"
    aliases = ("Brief",)
    group = "people"
    search_hint = "tell report notify attach file"
    idempotent = True
    needs_lease = False

    def description(self) -> str:
        return "Say something to the user, with files if need be"

    def traits(self, args: SendUserMessageInput) -> Traits:
        return Traits(read_only=True)

    def title(self, args: SendUserMessageInput) -> str:
        files = f" [{counted(len(args.attachments), 'file')}]" if args.attachments else ""
        return f"To you: {one_line(args.message)}{files}"

    def backfill_observable_input(self, args: SendUserMessageInput, ctx: ToolContext) -> SendUserMessageInput:
        if not args.attachments:
            return args
        return args.model_copy(update={"attachments": tuple(paths.observable(each, ctx) for each in args.attachments)})

    async def validate_input(self, args: SendUserMessageInput, ctx: ToolContext) -> Validation:
        if not args.message.strip():
            return Refused("The message is empty.", EMPTY)
        try:
            await in_thread(_attached, args, ctx)
        except _Unfit as unfit:
            return Refused(str(unfit), unfit.code)
        except ToolError as error:
            return Refused(str(error), NO_FILE)
        return None

    async def check_permissions(self, args: SendUserMessageInput, ctx: ToolContext) -> Decision | None:
        return Decision("allow", "it only speaks to the user", "tool")

    async def call(
        self, args: SendUserMessageInput, ctx: ToolContext, on_progress: OnProgress
    ) -> ToolResult[SendUserMessageOutput]:
        files = await in_thread(_attached, args, ctx)
        return ToolResult(SendUserMessageOutput(message=args.message, status=args.status, attachments=files))

    def to_content(self, data: SendUserMessageOutput) -> str:
        if not data.attachments:
            return "Shown to the user."
        return f"Shown to the user, with {', '.join(file.path for file in data.attachments)}."


def _attached(args: SendUserMessageInput, ctx: ToolContext) -> tuple[AttachedFile, ...]:
    return tuple(_file(text, ctx) for text in args.attachments)


def _file(text: str, ctx: ToolContext) -> AttachedFile:
    """Only what the agent itself may show: files of its workspace, and results that were put aside for it."""
    place = paths.locate(text, ctx)
    if not paths.is_inside(place.real, ctx) and not paths.is_result(place.real, ctx):
        raise _Unfit(f"{place.named} lies outside of the workspace {ctx.root}: it cannot be attached.", OUTSIDE)
    size = _size(place.real, place.named)
    if size > MAX_FILE_BYTES:
        raise _Unfit(f"{place.named} is {size:,} bytes; at most {MAX_FILE_BYTES:,} can be attached.", TOO_LARGE)
    return AttachedFile(path=str(place.named), size=size, is_image=place.real.suffix.lower() in IMAGES)


def _size(real: Path, named: Path) -> int:
    try:
        found = os.stat(real)
    except OSError as error:
        raise _Unfit(f"{named} cannot be attached: {error.strerror}.") from None
    if not stat.S_ISREG(found.st_mode):
        raise _Unfit(f"{named} is no file: only files can be attached.")
    return found.st_size
