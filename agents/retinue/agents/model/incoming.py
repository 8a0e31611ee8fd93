"""What came in since the model's last message: tool results, mail and other text, and how it is matched. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from html import unescape
from typing import Literal

from retinue.agents.model.messages import AssistantMessage, Message, TextBlock, ToolResultBlock, ToolUseBlock
from retinue.agents.model.script import Matcher, compiled

_MAIL = re.compile(r"<(teammate-message|task-notification)\b([^>]*)>\n?(.*?)\n?</\1>", re.DOTALL)
_ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class Part:
    """One tool result, one mail, or text that is neither.

    source   the tool's name, or the mail's sender
    ordinal  the how-manieth call of that tool in the message, from 1
    """

    kind: Literal["result", "mail", "text"]
    text: str
    source: str = ""
    ordinal: int = 0
    mail_kind: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    parts: tuple[Part, ...]
    text: str

    def fits_all(self, matchers: Iterable[Matcher]) -> bool:
        return all(self.count(matcher) for matcher in matchers)

    def count(self, matcher: Matcher) -> int:
        """How many mails or results fit; 1 or 0 for a matcher that looks at the text alone."""
        mails = _mails(matcher, self.parts) if _wants_mail(matcher) else []
        results = _results(matcher, self.parts) if _wants_result(matcher) else []
        if (_wants_mail(matcher) and not mails) or (_wants_result(matcher) and not results):
            return 0
        chosen = [part.text for part in (*mails, *results)]
        if not _wants_mail(matcher) and not _wants_result(matcher):
            chosen = [self.text]
        if matcher.matches is None:
            return len(chosen)
        pattern = compiled(matcher.matches)
        return sum(pattern.search(text) is not None for text in chosen)


def incoming_of(asked: AssistantMessage | None, answers: Sequence[Message]) -> Incoming:
    """`answers` are the messages after `asked`, the model's last message; results are named by its calls."""
    calls = _calls_of(asked)
    parts: list[Part] = []
    texts: list[str] = []
    for block in (block for message in answers for block in message.content):
        if isinstance(block, ToolResultBlock):
            name, ordinal = calls.get(block.tool_use_id, ("", 0))
            parts.append(Part("result", block.content, name, ordinal, is_error=block.is_error))
            texts.append(block.content)
        elif isinstance(block, TextBlock):
            parts.extend(_parts_of(block.text))
            texts.append(block.text)
    return Incoming(tuple(parts), "\n".join(texts))


def _calls_of(asked: AssistantMessage | None) -> dict[str, tuple[str, int]]:
    calls: dict[str, tuple[str, int]] = {}
    count: Counter[str] = Counter()
    for block in asked.content if asked else ():
        if isinstance(block, ToolUseBlock):
            count[block.name] += 1
            calls[block.id] = (block.name, count[block.name])
    return calls


def _parts_of(text: str) -> Iterable[Part]:
    rest = 0
    for found in _MAIL.finditer(text):
        if before := text[rest : found.start()].strip():
            yield Part("text", before)
        attributes = {name: unescape(value) for name, value in _ATTRIBUTE.findall(found[2])}
        yield Part("mail", found[3], attributes.get("teammate_id", ""), mail_kind=attributes.get("kind", ""))
        rest = found.end()
    if after := text[rest:].strip():
        yield Part("text", after)


def _wants_mail(matcher: Matcher) -> bool:
    return matcher.mail_from is not None or matcher.mail_kind is not None


def _wants_result(matcher: Matcher) -> bool:
    return matcher.tool_result_of is not None or matcher.error is not None


def _mails(matcher: Matcher, parts: Sequence[Part]) -> list[Part]:
    """An agent's id is `name~n`; a script knows the name."""
    wanted = matcher.mail_from or "*"
    return [
        part
        for part in parts
        if part.kind == "mail"
        and matcher.mail_kind in (None, part.mail_kind)
        and any(fnmatchcase(name, wanted) for name in (part.source, part.source.partition("~")[0]))
    ]


def _results(matcher: Matcher, parts: Sequence[Part]) -> list[Part]:
    results = [part for part in parts if part.kind == "result"]
    if matcher.tool_result_of is not None:
        name, _, ordinal = matcher.tool_result_of.partition("#")
        results = [part for part in results if part.source == name and ordinal in ("", str(part.ordinal))]
    if matcher.error is False:
        return [] if any(part.is_error for part in results) else results
    return [part for part in results if part.is_error or not matcher.error]
