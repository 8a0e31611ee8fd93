from __future__ import annotations

import re
from pathlib import Path

from retinue.tools.shell.sandbox.policy import SandboxPolicy
from retinue.tools.shell.sandbox.seatbelt import profile

WORK = Path("/Users/u/work")
POLICY = SandboxPolicy(
    writable=(WORK,),
    scratch=Path("/private/var/folders/x/scratch"),
    readable=(Path("/Users/u/.ssh/known_hosts"),),
    protected=(WORK / "sub/.claude",),
    hidden=(Path("/Users/u/.ssh"),),
)


def test_deeper_rules_come_later_since_the_last_one_counts() -> None:
    text = profile(POLICY)
    order = [
        "(deny default)",
        "(allow file-read*)",
        '(deny file-read* file-write* (regex #"^/[uU][sS][eE][rR][sS]/[uU]/\\.[sS][sS][hH](/|$)"))',
        '(allow file-read* file-write* (subpath "/Users/u/work"))',
        '(allow file-read* (subpath "/Users/u/.ssh/known_hosts"))',
        '(allow file-read* (subpath "/Users/u/work/sub/.claude"))',
        '(allow file-read* file-write* (subpath "/private/var/folders/x/scratch"))',
        '(deny file-write-unlink (literal "/Users/u/work/sub"))',
    ]
    places = [text.index(line) for line in order]
    assert places == sorted(places)


def test_a_protected_name_holds_in_every_spelling() -> None:
    patterns = re.findall(r'\(deny file-write\* \(regex #"(.*)"\)\)', profile(POLICY))
    assert any(re.search(pattern, "/Users/u/work/sub/.CLAUDE/x") for pattern in patterns)
    assert not any(re.search(pattern, "/Users/u/work/sub/.claude2") for pattern in patterns)


def test_the_internet_is_allowed_only_with_the_whole_network() -> None:
    assert "network" not in profile(POLICY)
    full = profile(SandboxPolicy(writable=(WORK,), scratch=POLICY.scratch, network="full"))
    assert '(allow network-outbound (remote ip "*:*"))' in full
    assert "unix-socket" not in full


def test_no_path_can_end_its_string() -> None:
    text = profile(
        SandboxPolicy(writable=(Path('/a")(allow default)("'),), scratch=POLICY.scratch, hidden=(Path('/h"x'),))
    )
    assert '(subpath "/a\\")(allow default)(\\"")' in text
    assert '(deny file-read* file-write* (regex #"^/[hH].[xX](/|$)"))' in text
