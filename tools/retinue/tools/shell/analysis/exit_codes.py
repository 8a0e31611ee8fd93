"""Whether an exit code is a failure, by what the command means by it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from retinue.tools.shell.analysis.model import Part, Word
from retinue.tools.shell.analysis.wrappers import RUNNERS

ONE_IS_NO_FAILURE: dict[str, str] = {
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg", "git grep"), "nothing matched"),
    **dict.fromkeys(("diff", "cmp", "git diff"), "there are differences"),
    **dict.fromkeys(("test", "[", "[["), "the condition is false"),
    "find": "some directories could not be read",
}
_CANNOT_FAIL = frozenset(("echo", "printf", "true", ":", "cd", "pwd"))


def meaning(parts: Sequence[Part], exit_code: int) -> str | None:
    """What a code other than 0 means when it is no failure; None when it is one."""
    if exit_code != 1 or not parts:
        return None
    said: str | None = None
    for part in _that_may_have_decided(parts):
        name = _name(part)
        if name in _CANNOT_FAIL:
            continue
        here = ONE_IS_NO_FAILURE.get(name)
        if here is None or part.raw.negated:
            return None
        said = said or here
    return said


def is_error(parts: Sequence[Part], exit_code: int) -> bool:
    """Whether a command that ended with this code failed."""
    return exit_code != 0 and meaning(parts, exit_code) is None


def _that_may_have_decided(parts: Sequence[Part]) -> list[Part]:
    """The last stage of the last pipeline, and of each pipeline that an `&&` leads from to it."""
    deciders: list[Part] = []
    connector = ""
    for part in reversed(parts):
        if connector in ("", "&&"):
            deciders.append(part)
        elif connector not in ("|", "|&"):
            break
        connector = part.raw.connector
    return deciders


def _name(part: Part) -> str:
    words: Sequence[Word] = part.inner
    while len(words) > 1 and words[0].value in RUNNERS - {"find"} and not words[1].value.startswith("-"):
        words = words[1:]
    if not words:
        return ""
    name = words[0].value
    if name == "git":
        verb = next((word.value for word in words[1:] if not word.value.startswith("-")), "")
        return f"git {verb}"
    return name
