"""The page about the tools of an agent's own: it names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from retinue.agents.own.settings import BASE_REF, MODE, TIMEOUT
from retinue.tools.people.send_user_message.constants import MAX_ATTACHMENTS
from retinue.tools.registry.builtin import builtin_tool
from retinue.tools.registry.table import BASE_TOOLS
from retinue.tools.system.planning import FULL_EVERY, SHORT_EVERY

PAGE = (Path(__file__).parents[3] / "docs" / "tools-own.md").read_text("utf-8")


def test_it_names_every_tool_of_its_groups_and_no_other() -> None:
    teams = {"ListPeers", "TeamCreate", "TeamDelete"}
    own = {entry.name for entry in BASE_TOOLS if entry.group in ("people", "system") and entry.gate != "Snip"} | teams
    named = set(re.findall(r"`([A-Z]\w+)`", PAGE))
    assert own <= named
    assert all(builtin_tool(name) is not None for name in named - {"NAME", "DEFINITION", "Brief"} if not name.isupper())


def test_it_says_the_settings_and_numbers_that_hold() -> None:
    assert re.findall(r"^\| `([\w.]+)` \| (?:`|\|)", PAGE, re.MULTILINE)[-4:] == ["model", MODE, TIMEOUT, BASE_REF]
    assert (SHORT_EVERY, FULL_EVERY, MAX_ATTACHMENTS) == (5, 25, 20)
