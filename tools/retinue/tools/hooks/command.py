"""Hooks that are commands: run like an agent's own commands, with the event on their standard input."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from retinue.tools.hooks.answers import Answer, of_command
from retinue.tools.hooks.config import CommandHook
from retinue.tools.hooks.payloads import Payload
from retinue.tools.ports import ShellOutcome, ShellPort, ShellRequest
from retinue.tools.threads import in_thread

MOST_BYTES = 4 * 1024 * 1024


class TimedOut(Exception):
    """The hook did not end within its deadline, and was ended with all that it had started."""


@dataclass(frozen=True, slots=True)
class CommandRunner:
    """`folder` is where output lies while a hook runs; its commands cannot be told to write there."""

    shell: ShellPort
    env: Mapping[str, str]
    folder: Path

    async def answer(self, hook: CommandHook, payload: Payload, deadline_s: float) -> tuple[int, Answer]:
        """Its exit code and what it says. Called off, its whole process tree is gone when this raises."""
        output = self.folder / f"{uuid.uuid4().hex}.out"
        errors = output.with_suffix(".err")
        await in_thread(self.folder.mkdir, 0o700, parents=True, exist_ok=True)
        try:
            outcome = await self.shell.run(self._request(hook, payload, deadline_s, output, errors))
            said = await in_thread(lambda: (_text(output), _text(errors)))
        finally:
            await in_thread(_remove, output, errors)
        return outcome.exit_code, _answer(payload, outcome, *said)

    def _request(
        self, hook: CommandHook, payload: Payload, deadline_s: float, output: Path, errors: Path
    ) -> ShellRequest:
        return ShellRequest(
            command=hook.command if hook.args is None else f"exec {shlex.join((hook.command, *hook.args))}",
            cwd=Path(payload.cwd),
            env=self.env,
            timeout_s=deadline_s,
            output_file=output,
            error_file=errors,
            input=f"{payload.as_json()}\n".encode("utf-8", "replace"),
            tag=f"hook-{output.stem}",
            max_file_bytes=MOST_BYTES,
        )


def _answer(payload: Payload, outcome: ShellOutcome, stdout: str, stderr: str) -> Answer:
    if outcome.timed_out:
        raise TimedOut
    if outcome.output_bytes >= MOST_BYTES:
        return Answer(problem=f"it was stopped: more than {MOST_BYTES:,} bytes of output")
    return of_command(payload.event, outcome.exit_code, stdout, stderr)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def _remove(*paths: Path) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
