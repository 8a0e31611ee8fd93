"""Search by a pattern of somebody else: by ripgrep, whose time grows with the text and not with the pattern."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.errors import ToolError
from retinue.tools.extension.tool_search.constants import PATTERN_S
from retinue.tools.files.ripgrep import binary
from retinue.tools.text import for_model, one_line


async def matching(pattern: str, lines: Sequence[str]) -> list[int]:
    """Which of the lines have it, by their place. ToolError: it is no pattern, or asks for too much."""
    import asyncio
    from asyncio.subprocess import PIPE

    process = await asyncio.create_subprocess_exec(
        *(binary(), "--no-config", "--line-number", "--no-heading", "--color=never", "--max-columns=1"),
        *("--case-sensitive", "--regexp", pattern, "-"),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        env={},
    )
    text = "".join(f"{' '.join(line.split())}\n" for line in lines)
    try:
        async with asyncio.timeout(PATTERN_S):
            found, complaint = await process.communicate(text.encode("utf-8", "replace"))
    except TimeoutError:
        raise ToolError("The pattern took too long. Write a simpler one, or words.") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode not in (0, 1):
        why = for_model(one_line(complaint.decode("utf-8", "replace").replace("rg:", "", 1), 300))
        raise ToolError(f"This pattern cannot be searched for: {why}")
    return [int(line.partition(b":")[0]) - 1 for line in found.splitlines()]
