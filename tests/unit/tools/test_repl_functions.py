"""Tools as functions of code: what has to be given comes first, and every parameter of the schema is there."""

from __future__ import annotations

import pytest

from retinue.tools.extension.repl.functions import functions_of
from retinue.tools.extension.repl.tool import REPL
from retinue.tools.registry.builtin import builtin_tools
from retinue.tools.registry.table import WRAPPED_BY_REPL

WRAPPED = {tool.name: tool for tool in builtin_tools() if tool.name in WRAPPED_BY_REPL}


@pytest.mark.parametrize("name", sorted(WRAPPED))
def test_a_function_has_the_parameters_of_the_schema(name: str) -> None:
    (function,) = functions_of([WRAPPED[name]])
    schema = WRAPPED[name].json_schema()
    properties, required = schema["properties"], schema.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    assert set(function.parameters) == set(properties)
    assert list(function.parameters[: function.required]) == required
    assert function.doc == WRAPPED[name].prompt()
    assert function.as_json()["name"] == name


def test_the_prompt_names_all_functions_and_stays_the_same() -> None:
    prompt = REPL().prompt()
    assert prompt == REPL().prompt()
    assert all(function.signature() in prompt for function in functions_of(WRAPPED.values()))
    assert "`Write(file_path, content)`" in prompt
    assert "`Read(file_path, offset=…, limit=…, pages=…)`" in prompt
