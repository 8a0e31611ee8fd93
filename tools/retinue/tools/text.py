"""Untrusted text made harmless: for a terminal or log, and for a model that must not mistake it for its own markup."""

from __future__ import annotations

import codecs
import re

ANSI = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"  # OSC, DCS, SOS, PM, APC up to their end
    r"|\x1b[ -/]*[0-~]"  # two-character and charset escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one character
)
_UNFINISHED_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\x9c]{0,4096}\x1b?|[ -/]*)?\Z")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_BIDI = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_INVISIBLE = re.compile("[\u200b-\u200d\u2060-\u2064\ufeff\U000e0000-\U000e007f]")

SYSTEM_TAGS = (
    "system-reminder",
    "teammate-message",
    "cross-session-message",
    "agent-message",
    "task-notification",
    "tool_use_error",
    "persisted-output",
    "function_calls",
    "function_results",
    "invoke",
    "tool_use",
    "tool_result",
    "tool_reference",
    "system",
    "human",
    "assistant",
)
_TAG = re.compile(rf"<(?=\s*/?\s*(?:antml:)?(?:{'|'.join(SYSTEM_TAGS)})\b)", re.IGNORECASE)
_ROLE = re.compile(r"^([^\S\n]*)(?=(?:Human|Assistant)[^\S\n]*:)", re.MULTILINE)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else "\ufffd"


def printable(text: str) -> str:
    """No escape sequences and no control characters but newline and tab; the rest as it was."""
    unified = ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROL.sub(_picture, unified)


def is_unicode(text: str) -> bool:
    """Half of a surrogate pair, which JSON can carry, is no character and fits into no file, path or argument."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def for_terminal(text: str) -> str:
    """What may be shown to a person: `printable`, and no character that reorders or hides its neighbours."""
    shown = _BIDI.sub(lambda m: f"<U+{ord(m.group()):04X}>", printable(text))
    return _INVISIBLE.sub("", shown)


def one_line(text: str, limit: int = 200) -> str:
    """For titles and lists: `for_terminal` on one line, cut with an ellipsis."""
    line = " ".join(for_terminal(text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def counted(count: int, word: str) -> str:
    """A number with its noun: `1 task`, `2 tasks`."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def for_model(text: str) -> str:
    """Text of another agent: it cannot pass for a system tag or for a turn of the conversation."""
    return _ROLE.sub(r"\1| ", _TAG.sub("&lt;", text))


class TextStream:
    """Bytes that arrive in pieces, as `printable` text; what is cut in the middle waits for its other half."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""

    def feed(self, data: bytes, *, final: bool = False) -> str:
        text = self._held + self._decoder.decode(data, final)
        cut = len(text)
        if not final:
            unfinished = _UNFINISHED_ESCAPE.search(text)
            cut = unfinished.start() if unfinished else len(text) - text.endswith("\r")
        self._held = text[cut:]
        return printable(text[:cut])
