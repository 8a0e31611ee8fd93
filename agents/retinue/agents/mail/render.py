"""What the model sees of its mail. Pure.

Prompts and words of the human are plain text; everything else is marked with its sender, and cannot close or imitate
the mark, whatever it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import assert_never

from retinue.agents.identity import name_of
from retinue.agents.mail.envelopes import (
    HUMAN,
    TEAM,
    BackgroundEnd,
    Body,
    Envelope,
    Notice,
    Prompt,
    ShutdownRequest,
    TaskAssigned,
    TaskReturned,
    Text,
)
from retinue.agents.mail.mailbox import Taken
from retinue.agents.model.messages import TextBlock
from retinue.agents.tokens import estimate_tokens
from retinue.tools.shell.background.words import standing
from retinue.tools.text import for_model, for_terminal, one_line

_BYTES_PER_TOKEN = 4
_TAIL = 5
"""A shortened message keeps its beginning, and of its end a fifth as much."""

_RETURNED = {
    "conflict": (
        "Your work conflicts with what has landed since. In your worktree run `git merge team/tip`, resolve the "
        "conflicts so that both sides keep their intent, `git add` the files, run the tests, and set the task "
        "completed again."
    ),
    "done_when": (
        "The task's own check failed on your work as it would land. Find out why (`git merge team/tip` shows you the "
        "state it was checked in), mend it, and set the task completed again."
    ),
    "verify": (
        "The team's check failed on your work as it would land. Run `git merge team/tip` to get that state, mend it, "
        "and set the task completed again."
    ),
    "nothing_submitted": (
        "Nothing was submitted: your branch has no commit and your worktree no change. Do the work, then set the task "
        "completed again."
    ),
}


@dataclass(frozen=True, slots=True)
class Spill:
    """A message that was shortened, whole; to be written before the model reads of it."""

    path: Path
    text: str


@dataclass(frozen=True, slots=True)
class Rendered:
    blocks: tuple[TextBlock, ...]
    spills: tuple[Spill, ...]


RenderOne = Callable[[Envelope, frozenset[str]], str]


def render(
    taken: Taken, max_tokens: int, spill_dir: Path, trusted: frozenset[str], render_one: RenderOne | None = None
) -> Rendered:
    """One block per message, and one for what is still unread. A message that cannot be shown harms no other.

    trusted   who may give a plain prompt besides the human and the team: the parent of a sub-agent
    """
    one = render_one or text_of
    blocks: list[TextBlock] = []
    spills: list[Spill] = []
    for envelope in taken.envelopes:
        text = _contained(one, envelope, trusted)
        if estimate_tokens(text) > max_tokens:
            spill = Spill(spill_dir / f"mail-{_file_name(envelope.id)}.txt", text)
            spills.append(spill)
            text = _shortened(text, max_tokens, spill.path)
        blocks.append(TextBlock(text=text))
    if taken.left:
        blocks.append(TextBlock(text=_unread(taken)))
    return Rendered(tuple(blocks), tuple(spills))


def text_of(envelope: Envelope, trusted: frozenset[str] = frozenset()) -> str:
    body = envelope.body
    plain = envelope.sender in (HUMAN, TEAM) or envelope.sender in trusted
    if isinstance(body, Prompt) and plain:
        return body.text.strip() or "(The prompt is empty.)"
    if isinstance(body, Text) and envelope.sender == HUMAN:
        return body.text.strip() or "(The human sent an empty message.)"
    if isinstance(body, BackgroundEnd) and envelope.sender == envelope.recipient:
        return _notification(body)
    return _marked(envelope, _words(body))


def _words(body: Body) -> str:
    match body:
        case Prompt() | Text() | Notice():
            return body.text
        case BackgroundEnd():
            return _ended(body)
        case TaskAssigned():
            by = f" by {one_line(body.by)}" if body.by != TEAM else ""
            head = f"Task #{body.task_id} is yours{by}: {one_line(body.subject)}"
            return f"{head}\n{body.description}".rstrip()
        case TaskReturned():
            head = f"Task #{body.task_id} came back ({_times(body.returns)}): {one_line(body.subject)}"
            return f"{head}\n{_RETURNED[body.reason]}\n{body.output}".rstrip()
        case ShutdownRequest():
            why = f" Reason: {body.reason}" if body.reason else ""
            return f"You are asked to end.{why} Bring what you are at to a safe state and stop; you end with this turn."
        case _:
            assert_never(body)


def _ended(body: BackgroundEnd) -> str:
    where = f"Its output is in {body.task.output_file}"
    return "\n".join((standing(body.task), where, *(("It said last:", body.tail) if body.tail else ())))


def _notification(body: BackgroundEnd) -> str:
    attributes = f'kind="{body.kind}" task_id="{escape(one_line(body.task.id))}" status="{body.task.status}"'
    return f"<task-notification {attributes}>\n{for_model(for_terminal(_ended(body)))}\n</task-notification>"


def _marked(envelope: Envelope, words: str) -> str:
    attributes = {"teammate_id": name_of(envelope.sender), "kind": envelope.body.kind}
    if isinstance(envelope.body, Text) and envelope.body.summary:
        attributes["summary"] = envelope.body.summary
    written = " ".join(f'{name}="{escape(one_line(value))}"' for name, value in attributes.items())
    return f"<teammate-message {written}>\n{for_model(for_terminal(words)).strip()}\n</teammate-message>"


def _times(returns: int) -> str:
    return "once" if returns == 1 else f"{returns} times"


def _contained(one: RenderOne, envelope: Envelope, trusted: frozenset[str]) -> str:
    try:
        return one(envelope, trusted)
    except Exception as error:
        sender = one_line(name_of(envelope.sender), 60)
        return (
            f"[A message from {sender} could not be shown ({type(error).__name__}). It is kept in the run's ledger "
            f"under {one_line(envelope.id, 80)}; ask the sender to say it in other words.]"
        )


def _shortened(text: str, max_tokens: int, path: Path) -> str:
    data = text.encode("utf-8", "surrogatepass")
    room = max_tokens * _BYTES_PER_TOKEN
    tail = room // (_TAIL + 1)
    head = data[: room - tail].decode("utf-8", "ignore")
    end = data[len(data) - tail :].decode("utf-8", "ignore")
    left_out = len(data) - room
    return f"{head}\n[… {left_out} bytes of this message are left out here; the whole of it is in {path} …]\n{end}"


def _unread(taken: Taken) -> str:
    them = "1 more message" if taken.left == 1 else f"{taken.left} more messages"
    return f"[{them} unread, about {taken.left_tokens} tokens; the next ones come with your next step.]"


def _file_name(mail: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", mail)[:100]
