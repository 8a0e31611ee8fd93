"""Finds how a tool shows itself: the class `Render` in the `render.py` beside its `tool.py`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TypeVar

from retinue.tools.base import Tool, ToolData, ToolInput
from retinue.tools.render.base import Renderer

In = TypeVar("In", bound=ToolInput)
Out = TypeVar("Out", bound=ToolData)


def renderer_of(tool: Tool[In, Out]) -> Renderer[In, Out]:
    """Its own, or that of the next of its bases that has one, or the cautious default."""
    for kind in type(tool).__mro__:
        package, _, module = kind.__module__.rpartition(".")
        if module == "tool" and package and find_spec(f"{package}.render") is not None:
            render: type[Renderer[In, Out]] = import_module(f"{package}.render").Render
            return render(tool)
    return Renderer(tool)
