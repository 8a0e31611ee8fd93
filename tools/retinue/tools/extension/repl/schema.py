"""What REPL takes, and what it found, before that becomes text for the model."""

from __future__ import annotations

from pydantic import Field

from retinue.tools.base import ToolData, ToolInput


class REPLInput(ToolInput):
    code: str = Field(description="Python code; variables stay for later calls, and `await` works at the top")
    description: str = Field("", description="What the code does, in five to ten words")
    timeout: int | None = Field(
        None, ge=1, description="Milliseconds that it may take, 30000 when not given, at most 600000; tools' time aside"
    )
    reset: bool = Field(False, description="Start anew before, without the variables of earlier calls")


class REPLOutput(ToolData):
    """
    value    the last expression as text, None where there is none
    error    the traceback, of which only the agent's own lines are shown
    stopped  why the code was stopped from outside
    gone     why all variables are gone now
    lost     why those of earlier calls were gone before this one
    calls    how many calls of tools it made
    """

    output: str
    value: str | None = None
    error: str | None = None
    stopped: str = ""
    gone: str = ""
    lost: str = ""
    calls: int = 0
    duration_s: float = 0.0
