"""One call of one tool in the current folder, through the whole pipeline, for a person at a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue, TypeAdapter, ValidationError

from retinue.orchestrator.cli import output
from retinue.orchestrator.cli.answering import HumanAtTheTerminal
from retinue.orchestrator.cli.asking import AtTheTerminal
from retinue.orchestrator.cli.tool_ground import ground_of
from retinue.orchestrator.cli.trusting import look, remember, store_of
from retinue.orchestrator.settings.apply import settings_rules
from retinue.orchestrator.settings.load import LaunchSettings
from retinue.tools.base import Progress, ToolContext, Traits
from retinue.tools.errors import SpecError
from retinue.tools.execution.calls import CallResult, Lease, ToolCall
from retinue.tools.execution.inner import calls_of_code, wrapped
from retinue.tools.execution.pipeline import Pipeline
from retinue.tools.execution.streaming import run_all
from retinue.tools.files.state import FileState
from retinue.tools.lasting import Lasting
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.pool import assemble
from retinue.tools.results.store import ResultStore
from retinue.tools.shell.runner import KeeperShell

_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])
_EXAMPLE = '{"file_path": "a.py"}'


@dataclass(frozen=True, slots=True)
class Call:
    """`given` is the input as it was typed. `read`: files to read first. `person`: somebody is there to be asked.

    sandboxed    commands run in the sandbox, where one works
    """

    name: str
    given: str
    rules: RuleTexts
    mode: Mode
    read: tuple[Path, ...]
    person: bool
    sandboxed: bool = True


class _Alone:
    """Nobody else is at work, and nothing is recorded."""

    @contextlib.asynccontextmanager
    async def hold(self, call_id: str, *, exclusive: bool) -> AsyncGenerator[Lease]:
        del call_id, exclusive
        yield Lease()

    async def started(self, call: ToolCall, traits: Traits) -> None:
        del call, traits

    async def ended(self, result: CallResult) -> None:
        del result


def run_call(call: Call) -> CallResult:
    """The result as the model would see it. Raises SpecError for a rule or an input that is none."""
    folder = Path(tempfile.mkdtemp(prefix="retinue-call-"))
    kept = False
    try:
        found = look(Path(), "head", store_of(None))
        result = asyncio.run(_run(call, folder, found.settings(trusted=found.trusted)))
        kept = result.spilled_to is not None or bool(result.media) or any(folder.glob("*.output"))
    finally:
        shutil.rmtree(folder if not kept else folder / "tmp", ignore_errors=True)
        (folder / "gitconfig").unlink(missing_ok=True)
    return result


async def _run(call: Call, folder: Path, given: LaunchSettings) -> CallResult:
    root = Path(os.getcwd())
    book = RuleBook.of([*settings_rules(given.settings), call.rules], Anchors(root, Path.home()))
    store = store_of(None)
    person = AtTheTerminal(lambda rules: remember(rules, root, store)) if call.person else None
    policy = PermissionPolicy((Rights(book, call.mode),), person=person)
    pool = assemble(builtin_tools(), denied=book.denied_tools())
    around = _Alone()
    line = Pipeline(pool, policy, around, around, ResultStore(folder), on_progress=_show)
    inner = assemble(wrapped(builtin_tools()), denied=book.denied_tools())
    lasting = Lasting()
    ground = ground_of(root, folder, given.env, sandboxed=call.sandboxed)
    if call.name == "Bash" and ground.told:
        output.note(ground.told)
    ctx = ToolContext(
        agent="you",
        cwd=root,
        root=root,
        files=FileState(),
        shell=KeeperShell(confinement=ground.confinement),
        sandbox=ground.use,
        env=ground.env,
        results_dir=folder,
        web=given.settings.web,
        may_read=lambda tool, path: policy.may_read(tool, path),
        code=calls_of_code(builtin_tools(), inner, line, policy, around),
        lasting=lasting,
        human=HumanAtTheTerminal() if call.person else None,
    )
    first = [ToolCall(id=f"read{n}", name="Read", input={"file_path": str(path)}) for n, path in enumerate(call.read)]
    last = ToolCall(id="call", name=call.name, input=_input(call.given))
    try:
        results, _ = await run_all(line, ctx, [*first, last])
    finally:
        await lasting.close()
    for read in results[:-1]:
        if read.is_error:
            raise SpecError(f"--read: {read.content}")
    return results[-1]


def _input(text: str) -> dict[str, JsonValue]:
    try:
        return _OBJECT.validate_json(text)
    except ValidationError:
        raise SpecError(f"the input {text!r} is no JSON object; write one, such as {_EXAMPLE}") from None


def _show(call: ToolCall, progress: Progress) -> None:
    del call
    output.note(progress.text.rstrip("\n"))
