"""What the tools that change files have in common: how they refuse, and what they check before anybody is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import IntEnum

from retinue.tools.base import Refused, ToolContext, Validation
from retinue.tools.errors import ToolError
from retinue.tools.files import paths

FORBIDDEN_PATH = 2
"""The code of a path that no such tool takes, the same for all of them."""


class ChangeRefused(ToolError):
    """Why a file is not changed, with the stable code."""

    def __init__(self, message: str, code: IntEnum) -> None:
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[type[ChangeRefused], tuple[str, IntEnum]]:
        return type(self), (str(self), self.code)


async def early(file_path: str, ctx: ToolContext, check: Callable[[paths.Place], Awaitable[object]]) -> Validation:
    """Says early what cannot work. About files outside of the workspace nothing is told before permission."""
    try:
        place = paths.locate(file_path, ctx)
        if paths.is_inside(place.real, ctx):
            await check(place)
    except ChangeRefused as refused:
        return Refused(str(refused), refused.code)
    except ToolError as error:
        return Refused(str(error), FORBIDDEN_PATH)
    return None
