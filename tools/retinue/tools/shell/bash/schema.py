"""What Bash takes, and what it found, before that becomes text for the model."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from retinue.tools.base import ToolData, ToolInput
from retinue.tools.shell.background.ports import BackgroundTask


class BashInput(ToolInput):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    command: str = Field(description="The command to run")
    timeout: int | None = Field(None, ge=1, description="Milliseconds that it may take, at most 600000")
    description: str = Field("", description="What the command does, in five to ten words")
    run_in_background: bool = Field(False, description="Answer at once, and go on")
    disable_sandbox: bool = Field(
        False, alias="dangerouslyDisableSandbox", description="Run it outside of the sandbox, if a person allows it"
    )


class BashOutput(ToolData):
    """`output_path` is where the whole output is kept, when not all of it is shown.

    cut_short    the command was stopped because it printed too much

    background   the command goes on: `output` is what it has printed so far, and there is no exit code yet
    """

    output: str
    exit_code: int | None
    failed: bool
    meaning: str = ""
    timed_out_after_ms: int | None = None
    output_bytes: int = 0
    output_path: str | None = None
    cut_short: bool = False
    background: BackgroundTask | None = None
    stopped_in_background: int = 0
    cwd_note: str = ""
    duration_s: float = 0.0
