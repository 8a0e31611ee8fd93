"""Calls of any tool as blocks: asks the tool's own renderer, and knows no tool by name.

What a renderer cannot show, because the tool is unknown here or its data fits no more, is shown as text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from retinue.tools.base import AnyTool, ToolData, ToolInput
from retinue.tools.execution.calls import CallResult
from retinue.tools.render.blocks import Blocks, Heading, Line, Text
from retinue.tools.text import one_line

Model = TypeVar("Model", bound=BaseModel)
ToolOf = Callable[[str], AnyTool | None]
_FRAME = re.compile(r"\A<tool_use_error>(.*)</tool_use_error>\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SeenCall:
    """A call as a ledger knows it: what the model wrote, and the result once there is one."""

    name: str
    input: Mapping[str, JsonValue]
    result: CallResult | None = None

    @property
    def went_well(self) -> bool:
        return self.result is not None and not self.result.is_error


def shown(call: SeenCall, tool_of: ToolOf, *, below: str = "") -> Blocks:
    """What is being done, and what became of it. Paths in the folder `below` are shown relative to it."""
    tool = tool_of(call.name)
    args = _args(call, tool, below) if tool is not None else None
    if tool is None:
        return (_heading(call), *_plain(call))
    try:
        return _rendered(call, tool, args, below)
    except Exception:
        return (_heading(call), *_plain(call))


def in_groups(calls: Iterable[SeenCall], tool_of: ToolOf, *, below: str = "") -> tuple[Blocks, ...]:
    """Calls in order; several of one tool in a row that all went well may become one line, if the tool says so."""
    result: list[Blocks] = []
    for (name, well), run in groupby(calls, key=lambda call: (call.name, call.went_well)):
        several = tuple(run)
        grouped = _grouped(several, tool_of(name), below) if well and len(several) > 1 else ()
        result += [grouped] if grouped else [shown(call, tool_of, below=below) for call in several]
    return tuple(result)


def _rendered(call: SeenCall, tool: AnyTool, args: ToolInput | None, below: str) -> Blocks:
    renderer, result = tool.renderer(), call.result
    use: Blocks = (_heading(call),) if args is None else renderer.use(args)
    if result is None:
        return use
    if result.denied and args is not None:
        return (*use, *renderer.rejected(args, result.content))
    data = _data(result, tool, below)
    if data is None or args is None:
        return (*use, *(renderer.error(args, _words(result)) if result.is_error else _plain(call)))
    found = renderer.result(args, data)
    return found if found and isinstance(found[0], Heading) else (*use, *found)


def _grouped(calls: tuple[SeenCall, ...], tool: AnyTool | None, below: str) -> Blocks:
    inputs = [_args(call, tool, below) for call in calls] if tool is not None else []
    if tool is None or None in inputs:
        return ()
    try:
        return tool.renderer().grouped(inputs)
    except Exception:
        return ()


def _heading(call: SeenCall) -> Heading:
    return Heading(one_line((call.result.title if call.result else "") or call.name))


def _plain(call: SeenCall) -> Blocks:
    result = call.result
    if result is None:
        return ()
    if result.denied:
        return (Line(f"denied: {one_line(result.content)}", "bad"),)
    return (Text(_words(result), "bad" if result.is_error else "plain"),)


def _words(result: CallResult) -> str:
    """Without the frame that only the model needs."""
    found = _FRAME.match(result.content)
    return found[1] if found else result.content


def _args(call: SeenCall, tool: AnyTool, below: str) -> ToolInput | None:
    observed = call.result.observed if call.result is not None and call.result.observed is not None else call.input
    return _parsed(tool.Input, _relative(observed, below))


def _data(result: CallResult, tool: AnyTool, below: str) -> ToolData | None:
    if result.data is None:
        return None
    return _parsed(tool.Output, _relative(result.data, below))


def _relative(values: Mapping[str, JsonValue], below: str) -> Mapping[str, JsonValue]:
    prefix = f"{below.rstrip('/')}/"
    if not below:
        return values
    return {k: v.removeprefix(prefix) if isinstance(v, str) and v != prefix else v for k, v in values.items()}


def _parsed(model: type[Model], values: Mapping[str, JsonValue]) -> Model | None:
    try:
        return model.model_validate(dict(values))
    except ValidationError:
        return None
