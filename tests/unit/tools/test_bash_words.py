"""What the model hears of a command that was cut short."""

from __future__ import annotations

from retinue.tools.shell.bash.content import content_of
from retinue.tools.shell.bash.schema import BashOutput


def told(*, cut_short: bool) -> str:
    kept = BashOutput(output="y", exit_code=0, failed=False, output_bytes=9, output_path="/r/x", cut_short=cut_short)
    return content_of(kept)


def test_what_is_kept_is_all_unless_the_command_was_stopped_for_it() -> None:
    assert "All 9 bytes of output are in /r/x" in told(cut_short=False)
    assert "The 9 bytes of output until it was stopped are in /r/x" in told(cut_short=True)
