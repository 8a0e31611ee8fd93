"""What a search leaves out is exactly what could not be read by itself."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from retinue.tools.base import ToolContext
from retinue.tools.files.glob.tool import Glob, GlobInput
from retinue.tools.files.grep.tool import Grep, GrepInput
from retinue.tools.files.read.tool import Read, ReadInput
from retinue.tools.files.state import FileState
from retinue.tools.permissions.chain import PermissionPolicy, Rights
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.shell.runner import KeeperShell

names = st.sampled_from(["a.py", "b.txt", ".env", "key", "d[1].txt", "e f"])
folders = st.sampled_from(["", "x/", "x/y/", "secrets/", ".hidden/"])
trees = st.sets(st.tuples(folders, names).map("".join), min_size=1, max_size=8)
PATTERNS = ["*.py", "x/**", "secrets/", "/secrets/**", "**/key", ".env", "x/y/*.txt", "//**/b.txt", "d\\[1].txt", "*"]
rules = st.lists(st.sampled_from([f"Read({pattern})" for pattern in PATTERNS]), max_size=3)


@settings(max_examples=40, deadline=None)
@given(trees, rules, rules, st.booleans())
def test_searches_find_what_may_be_read_and_nothing_else(
    tree: set[str], deny: list[str], ask: list[str], linked: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        for name in tree:
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("needle\n")
        if linked:
            (root / "link").symlink_to(root / min(tree))
        book = RuleBook.of([RuleTexts("user", deny=tuple(deny), ask=tuple(ask))], Anchors(root, root / "home"))
        policy = PermissionPolicy((Rights(book),))
        bare = ToolContext(agent="a~1", cwd=root, root=root, files=FileState(), shell=KeeperShell())
        ctx = replace(bare, may_read=policy.may_read)

        async def scene() -> None:
            readable = set[str]()
            for name in tree:
                decision = await policy.decide(
                    Read(), ReadInput.model_validate({"file_path": name}), ctx, forced_ask=None
                )
                if decision.behavior == "allow":
                    readable.add(name)
            search = GlobInput.model_validate({"pattern": "**/*"})
            if (await policy.decide(Glob(), search, ctx, forced_ask=None)).behavior != "allow":
                assert not readable  # a rule for the whole tool, which no search passes either
                return
            listed = await Glob().call(search, ctx, lambda _: None)
            assert set(listed.data.filenames) - {"link"} == readable
            for mode in ("files_with_matches", "content", "count"):
                args = GrepInput.model_validate({"pattern": "needle", "output_mode": mode, "-n": False})
                found = await Grep().call(args, ctx, lambda _: None)
                assert {entry.split(":")[0] for entry in found.data.entries} == readable

        asyncio.run(scene())
