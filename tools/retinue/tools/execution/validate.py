"""Stage 2, first phase: does the input fit the tool's schema? What does not is said so that a model can mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import ValidationError

from retinue.tools.base import AnyTool, RawInput, ToolInput
from retinue.tools.execution.calls import ToolCall
from retinue.tools.registry.pool import ToolsAtHand
from retinue.tools.text import for_model, one_line

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_SHOWN_PROBLEMS = 10
_SHOWN_INPUT = 200
_SHOWN_NAMES = 40


def parse(tool: AnyTool, call: ToolCall) -> ToolInput | str:
    """The typed input, or what is wrong with it."""
    if call.malformed is not None:
        found = for_model(one_line(call.malformed, _SHOWN_INPUT))
        return (
            f"InputValidationError: the input of {tool.name} is no valid JSON object. "
            f"Send the whole call again with complete JSON. What came: {found or '(nothing)'}"
        )
    if issubclass(tool.Input, RawInput):
        return _raw(tool, call)
    try:
        parsed: ToolInput = tool.Input.model_validate(call.input)
    except ValidationError as error:
        return _explained(tool, error)
    return parsed


def _raw(tool: AnyTool, call: ToolCall) -> ToolInput | str:
    from retinue.tools.execution.raw import parse_raw  # here, because few agents have such tools

    found = parse_raw(tool, call.input)
    return _listed(tool, found) if isinstance(found, list) else found


def unknown_tool(name: str, pool: ToolsAtHand) -> str:
    """Names what there is, and the nearest to what was asked for."""
    import difflib  # here, because a model seldom asks for what there is not

    asked = for_model(one_line(name, 60))
    near = difflib.get_close_matches(name, pool.names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    more = f" and {len(pool.names) - _SHOWN_NAMES} more" if len(pool.names) > _SHOWN_NAMES else ""
    return f"No such tool: {asked}.{hint} There are: {', '.join(pool.names[:_SHOWN_NAMES]) or 'none'}{more}."


def _explained(tool: AnyTool, error: ValidationError) -> str:
    problems = error.errors(include_url=False, include_context=False)
    lines = [_line(problem) for problem in problems[:_SHOWN_PROBLEMS]]
    if len(problems) > _SHOWN_PROBLEMS:
        lines.append(f"and {len(problems) - _SHOWN_PROBLEMS} more")
    return _listed(tool, [f"- {line}" for line in lines])


def _listed(tool: AnyTool, lines: list[str]) -> str:
    count = "this problem" if len(lines) == 1 else "these problems"
    return "\n".join([f"InputValidationError: {tool.name} has {count} with its input:", *lines])


def _line(problem: ErrorDetails) -> str:
    name = ".".join(for_model(one_line(str(part), 60)) for part in problem["loc"]) or "input"
    match problem["type"]:
        case "missing":
            return f"The required parameter `{name}` is missing"
        case "extra_forbidden":
            return f"An unexpected parameter `{name}` was provided"
        case _:
            found = for_model(one_line(repr(problem["input"]), 80))
            return f"The parameter `{name}` is wrong: {problem['msg']}; found {found}"


def tool_use_error(text: str) -> str:
    """The form in which a model is told that the call itself was wrong."""
    return f"<tool_use_error>{text}</tool_use_error>"
