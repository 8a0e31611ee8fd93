"""The LSP tool with two real language servers, one for Python and one for TypeScript."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from retinue.tools.base import Refused, ToolContext
from retinue.tools.errors import ToolError
from retinue.tools.lsp.manager import LanguageServers
from retinue.tools.lsp.settings import LanguageServer
from retinue.tools.lsp.tool import LSP, LSPInput
from support.calls import context

REPOSITORY = Path(__file__).parents[2]
PYTHON = Path(sys.executable).parent / "basedpyright-langserver"
TYPESCRIPT = REPOSITORY / ".ci" / "tools" / "node_modules" / ".bin" / "typescript-language-server"

SERVERS = {
    "python": LanguageServer.model_validate(
        {"command": str(PYTHON), "args": ["--stdio"], "extensionToLanguage": {".py": "python"}}
    ),
    "typescript": LanguageServer.model_validate(
        {
            "command": str(TYPESCRIPT),
            "args": ["--stdio"],
            "extensionToLanguage": {".ts": "typescript", ".tsx": "typescriptreact"},
            "initializationOptions": {"tsserver": {"useSyntaxServer": "never"}},
        }
    ),
}

FILES = {
    "shapes.py": """class Shape:
    def area(self) -> float:
        raise NotImplementedError


class Square(Shape):
    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        return self.side**2


def total(shapes: list[Shape]) -> float:
    '''The sum of all areas.'''
    return sum(shape.area() for shape in shapes)
""",
    "main.py": """from shapes import Square, total

print("😀", total([Square(2)]))
""",
    "shapes.ts": """export interface Shape {
  area(): number;
}

export class Square implements Shape {
  constructor(private side: number) {}
  area(): number {
    return this.side ** 2;
  }
}

/** The sum of all areas. */
export function total(shapes: Shape[]): number {
  return shapes.reduce((sum, shape) => sum + shape.area(), 0);
}
""",
    "main.ts": """import { Square, total } from './shapes';

console.log('😀', total([new Square(2)]));
""",
    "tsconfig.json": '{"compilerOptions": {"strict": true, "target": "es2020"}, "include": ["*.ts"]}',
}


@pytest.fixture
async def ctx(tmp_path: Path) -> AsyncGenerator[ToolContext]:
    for program in (PYTHON, TYPESCRIPT):
        assert program.exists(), f"{program} is missing: `make test` installs it"
    node = shutil.which("node")
    assert node, "the language servers need node on the search path"
    root = tmp_path / "work"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    env = {"PATH": os.pathsep.join((str(Path(node).parent), os.defpath)), "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    async with LanguageServers(SERVERS, root=root, env=env) as servers:
        yield context(root, languages=servers)


async def ask(ctx: ToolContext, operation: str, file: str, at: str = "", query: str = "", *, nth: int = 1) -> list[str]:
    """`at` is the text whose nth place is meant; lines of the answer."""
    place = dict(zip(("line", "character"), position(ctx.root / file, at, nth), strict=True)) if at else {}
    args = LSPInput.model_validate({"operation": operation, "filePath": file, "query": query or None, **place})
    verdict = await LSP().validate_input(args, ctx)
    if isinstance(verdict, Refused):
        raise ToolError(verdict.message)
    return LSP().to_content((await LSP().call(args, ctx, lambda _: None)).data).splitlines()


def position(file: Path, text: str, nth: int) -> tuple[int, int]:
    for number, line in enumerate(file.read_text().splitlines(), 1):
        start = -1
        while (start := line.find(text, start + 1)) >= 0:
            nth -= 1
            if nth == 0:
                return number, start + 1
    raise AssertionError(f"{text} is not in {file}")


async def test_python_is_understood(ctx: ToolContext) -> None:
    assert await ask(ctx, "goToDefinition", "main.py", "total(") == ["shapes.py:14:5"]
    found = await ask(ctx, "findReferences", "shapes.py", "total")
    assert sorted(found) == ["main.py:1:28", "main.py:3:12", "shapes.py:14:5"]
    hover = "\n".join(await ask(ctx, "hover", "main.py", "total("))
    assert "def total(shapes: list[Shape]) -> float" in hover
    assert "The sum of all areas." in hover
    symbols = await ask(ctx, "documentSymbol", "shapes.py")
    assert symbols[:2] == ["shapes.py:1:7 class Shape", "  shapes.py:2:9 method area"]
    assert await ask(ctx, "workspaceSymbol", "main.py", query="Squar") == ["shapes.py:6:7 class Square"]
    assert [line.split(" (")[0] for line in await ask(ctx, "prepareCallHierarchy", "shapes.py", "total")] == [
        "shapes.py:14:5 function total"
    ]
    assert any(line.startswith("main.py:3:12 module") for line in await ask(ctx, "incomingCalls", "shapes.py", "total"))
    assert any("area" in line for line in await ask(ctx, "outgoingCalls", "shapes.py", "total"))
    assert "shapes.py:10:9" in await ask(ctx, "goToImplementation", "shapes.py", "area")


async def test_python_errors_are_those_of_the_newest_text_of_all_files(ctx: ToolContext) -> None:
    assert not [line for line in await ask(ctx, "diagnostics", "main.py") if " error " in line]
    shapes = ctx.root / "shapes.py"
    shapes.write_text(FILES["shapes.py"].replace("side: float) -> None", "side: str) -> None"))
    errors = [line for line in await ask(ctx, "diagnostics", "main.py") if " error " in line]
    assert any(line.startswith("main.py:3:26 error Argument of type") for line in errors)
    (ctx.root / "new.py").write_text("from shapes import total\n\ntotal([])\n")
    found = await ask(ctx, "findReferences", "shapes.py", "total")
    assert {"new.py:1:20", "new.py:3:1"} <= set(found)
    (ctx.root / "new.py").unlink()
    assert not any("new.py" in line for line in await ask(ctx, "findReferences", "shapes.py", "total"))


async def test_typescript_is_understood(ctx: ToolContext) -> None:
    assert await ask(ctx, "goToDefinition", "main.ts", "total(") == ["shapes.ts:13:17"]
    found = await ask(ctx, "findReferences", "shapes.ts", "total")
    assert sorted(found) == ["main.ts:1:18", "main.ts:3:18", "shapes.ts:13:17"]
    hover = "\n".join(await ask(ctx, "hover", "main.ts", "total("))
    assert "total(shapes: Shape[]): number" in hover
    assert "The sum of all areas." in hover
    assert await ask(ctx, "goToImplementation", "shapes.ts", "area") == ["shapes.ts:7:3"]
    symbols = await ask(ctx, "documentSymbol", "shapes.ts")
    assert "shapes.ts:5:14 class Square" in symbols
    assert "  shapes.ts:7:3 method area" in symbols
    assert any("class Square" in line for line in await ask(ctx, "workspaceSymbol", "main.ts", query="Squar"))
    assert any("total" in line for line in await ask(ctx, "prepareCallHierarchy", "shapes.ts", "total"))
    assert any(line.startswith("main.ts:3:18") for line in await ask(ctx, "incomingCalls", "shapes.ts", "total"))
    assert any("area" in line for line in await ask(ctx, "outgoingCalls", "shapes.ts", "total"))


async def test_typescript_errors_are_those_of_the_newest_text_of_all_files(ctx: ToolContext) -> None:
    assert not [line for line in await ask(ctx, "diagnostics", "main.ts") if " error " in line]
    shapes = ctx.root / "shapes.ts"
    shapes.write_text(FILES["shapes.ts"].replace("private side: number", "private side: bigint"))
    errors = [line for line in await ask(ctx, "diagnostics", "main.ts") if " error " in line]
    assert [line.partition(". (")[0] for line in errors] == [
        "main.ts:3:36 error Argument of type 'number' is not assignable to parameter of type 'bigint'"
    ]
    (ctx.root / "new.ts").write_text("import { total } from './shapes';\ntotal([]);\n")
    found = await ask(ctx, "findReferences", "shapes.ts", "total")
    assert {"new.ts:1:10", "new.ts:2:1"} <= set(found)
    (ctx.root / "new.ts").unlink()
    assert not any("new.ts" in line for line in await ask(ctx, "findReferences", "shapes.ts", "total"))
