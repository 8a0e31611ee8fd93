"""Where an agent stands in its script, and what it answers next. Pure: a fold over the conversation, nothing else.

The rules. Turns are tried in order, from the first; each is taken at most once (or `repeat` times). A turn whose
`when` is not met is passed over for this request and stays where it is. A turn whose `wait_for` is not met ends the
search: the agent says what it waits for and ends its turn. An answer of which only the first blocks arrived is
completed before anything else is tried.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from pydantic import JsonValue

from retinue.agents.model.incoming import Incoming
from retinue.agents.model.messages import AssistantBlock, AssistantMessage, TextBlock, ThinkingBlock, ToolUseBlock
from retinue.agents.model.port import StopReason
from retinue.agents.model.script import PLACEHOLDER, Fail, Pace, ScriptTurn, UsageOverride, compiled

T = TypeVar("T")
_SHOWN = 600
_NO_ID_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Owed:
    """Blocks of a turn that was taken which the conversation lacks. `broken` counts the spoilt calls still to come."""

    turn: int
    blocks: tuple[AssistantBlock, ...]
    broken: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """All that the conversation so far says about the script.

    answers    messages of the model
    taken      how often each turn was taken
    seen, met  how often each `wait_for` matcher came, and how often a turn that was taken had waited for it
    """

    answers: int = 0
    taken: Mapping[int, int] = field(default_factory=dict[int, int])
    captured: Mapping[str, str] = field(default_factory=dict[str, str])
    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    met: Mapping[str, int] = field(default_factory=dict[str, int])
    owed: Owed | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """The next answer. `turn` is None when the script had none to give; `unexpected` is set when the run must fail."""

    standing: Standing
    blocks: tuple[AssistantBlock, ...]
    stop_reason: StopReason
    message_id: str
    turn: int | None = None
    then: Owed | None = None
    fail: Fail | None = None
    pace: Pace | None = None
    usage: UsageOverride | None = None
    unexpected: str = ""


class Course:
    """The script of one agent. `where` is how people call the script."""

    def __init__(self, agent: str, turns: tuple[ScriptTurn, ...], where: str) -> None:
        self._agent = agent
        self._turns = turns
        self._where = where
        self._waited = {str(matcher): matcher for turn in turns for matcher in turn.wait_for}
        self._slug = _slug(agent)
        self.start = Standing(captured={"agent": agent})

    def plan(self, standing: Standing, incoming: Incoming) -> Plan:
        """The answer to what came in."""
        standing = self._having_seen(standing, incoming)
        if standing.owed is not None:
            return self._complete(standing, standing.owed)
        for index, turn in enumerate(self._turns):
            if turn.limit is not None and standing.taken.get(index, 0) >= turn.limit:
                continue
            if not incoming.fits_all(turn.when):
                continue
            if missing := _missing(standing, turn):
                return self._note(standing, f"script: waiting for {missing}")
            return self._take(standing, index, turn, incoming)
        return self._note(standing, f"script: no turn left for {self._agent} in {self._where}")

    def after(self, plan: Plan, message: AssistantMessage) -> Standing:
        """The standing once `message`, which may have only the first of the planned blocks, is in the conversation."""
        standing = replace(plan.standing, answers=plan.standing.answers + 1, owed=None)
        if plan.turn is None:
            return standing
        if plan.standing.owed is None:
            turn = self._turns[plan.turn]
            met = _plus(standing.met, tuple(map(str, turn.wait_for)))
            standing = replace(standing, taken=_plus(standing.taken, (plan.turn,)), met=met)
        missing = _undelivered(plan.blocks, message)
        return replace(standing, owed=Owed(plan.turn, missing) if missing else plan.then)

    def _having_seen(self, standing: Standing, incoming: Incoming) -> Standing:
        new = {name: count for name, matcher in self._waited.items() if (count := incoming.count(matcher))}
        if not new:
            return standing
        return replace(standing, seen={**standing.seen, **{m: standing.seen.get(m, 0) + n for m, n in new.items()}})

    def _take(self, standing: Standing, index: int, turn: ScriptTurn, incoming: Incoming) -> Plan:
        captured, problem = _capture(standing.captured, turn, incoming)
        standing = replace(standing, captured=captured)
        problem = problem or _unmet(turn, incoming)
        try:
            blocks = _blocks(turn, captured)
        except KeyError as missing:
            blocks, problem = (), problem or f"uses ${{{missing.args[0]}}}, which nothing has captured so far"
        broken = turn.fail.times if turn.fail is not None and turn.fail.kind == "malformed" else 0
        plan = self._plan(standing, index, blocks, broken)
        if not problem:
            return plan
        came = _shortened(incoming.text)
        what = f"turn {index + 1} of {self._agent} in {self._where} {problem}; this came instead:\n{came}"
        return replace(plan, unexpected=what)

    def _complete(self, standing: Standing, owed: Owed) -> Plan:
        return self._plan(standing, owed.turn, owed.blocks, owed.broken)

    def _plan(self, standing: Standing, index: int, blocks: tuple[AssistantBlock, ...], broken: int) -> Plan:
        """`blocks` with ids of this answer; one of the calls is spoilt while `broken` is left."""
        turn = self._turns[index]
        named = tuple(self._named(block, standing, index, k) for k, block in enumerate(blocks))
        then: Owed | None = None
        if broken:
            first = standing.owed is None
            named, spoilt = _spoil(named, turn.fail.call if turn.fail is not None and first else 1)
            then = Owed(index, spoilt, broken - 1)
        calls = any(isinstance(block, ToolUseBlock) for block in named)
        return Plan(
            standing=standing,
            blocks=named,
            stop_reason=turn.stop_reason or ("tool_use" if calls else "end_turn"),
            message_id=self._message_id(standing),
            turn=index,
            then=then,
            fail=turn.fail if standing.owed is None else None,
            pace=turn.pace,
            usage=turn.usage,
        )

    def _note(self, standing: Standing, text: str) -> Plan:
        return Plan(standing, (TextBlock(text=text),), "end_turn", self._message_id(standing))

    def _message_id(self, standing: Standing) -> str:
        return f"msg_{self._slug}_{standing.answers + 1}"

    def _named(self, block: AssistantBlock, standing: Standing, index: int, k: int) -> AssistantBlock:
        """The number of the answer makes an id unique in the conversation; turn and place are for who reads it."""
        if not isinstance(block, ToolUseBlock):
            return block
        return block.model_copy(update={"id": f"toolu_{self._slug}_{standing.answers + 1}_{index + 1}_{k + 1}"})


def _slug(agent: str) -> str:
    """An agent's name as part of an id. A name that an id cannot hold gets a hash, so that two stay apart."""
    if not _NO_ID_CHARACTER.search(agent):
        return agent
    return f"{_NO_ID_CHARACTER.sub('-', agent)}-{hashlib.sha256(agent.encode()).hexdigest()[:8]}"


def _plus(counts: Mapping[T, int], items: tuple[T, ...]) -> Mapping[T, int]:
    return Counter(counts) + Counter(items) if items else counts


def _missing(standing: Standing, turn: ScriptTurn) -> str:
    for matcher, times in Counter(map(str, turn.wait_for)).items():
        if standing.seen.get(matcher, 0) < standing.met.get(matcher, 0) + times:
            return matcher
    return ""


def _capture(known: Mapping[str, str], turn: ScriptTurn, incoming: Incoming) -> tuple[Mapping[str, str], str]:
    """What is known after this turn's captures, and what is wrong with them."""
    found: dict[str, str] = {}
    problem = ""
    for name, pattern in turn.capture.items():
        match = compiled(pattern).search(incoming.text)
        if match is None or match[1] is None:
            problem = problem or f"captures {name} with /{pattern}/, which was not found"
        else:
            found[name] = match[1]
    return ({**known, **found} if found else known), problem


def _unmet(turn: ScriptTurn, incoming: Incoming) -> str:
    for matcher in turn.expect:
        if not incoming.count(matcher):
            return f"expects {matcher}"
    return ""


def _shortened(text: str) -> str:
    if len(text) <= _SHOWN:
        return text or "(nothing)"
    half = _SHOWN // 2
    return f"{text[:half]}\n… {len(text) - 2 * half} characters …\n{text[-half:]}"


def _blocks(turn: ScriptTurn, captured: Mapping[str, str]) -> tuple[AssistantBlock, ...]:
    """The turn's blocks, without ids. Raises KeyError for a name that was not captured."""
    blocks: list[AssistantBlock] = []
    if turn.think:
        thinking = _filled_text(turn.think, captured)
        blocks.append(ThinkingBlock(thinking=thinking, signature=hashlib.sha256(thinking.encode()).hexdigest()))
    if turn.say:
        blocks.append(TextBlock(text=_filled_text(turn.say, captured)))
    for call in turn.calls:
        filled = {key: _filled(value, captured) for key, value in call.input.items()}
        blocks.append(ToolUseBlock(id="", name=call.tool, input=filled))
    return tuple(blocks)


def _filled_text(text: str, captured: Mapping[str, str]) -> str:
    def replacement(match: re.Match[str]) -> str:
        return f"${{{match[2]}}}" if match[1] else captured[match[2]]

    return PLACEHOLDER.sub(replacement, text) if "${" in text else text


def _filled(value: JsonValue, captured: Mapping[str, str]) -> JsonValue:
    if isinstance(value, str):
        return _filled_text(value, captured)
    if isinstance(value, dict):
        return {key: _filled(item, captured) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, captured) for item in value]
    return value


def _spoil(blocks: tuple[AssistantBlock, ...], number: int) -> tuple[tuple[AssistantBlock, ...], tuple[ToolUseBlock]]:
    """Call `number` with input that is no JSON, in its place; and that call as it should have been."""
    places = [k for k, block in enumerate(blocks) if isinstance(block, ToolUseBlock)]
    place = places[number - 1]
    call = blocks[place]
    assert isinstance(call, ToolUseBlock)
    cut = json.dumps(call.input, ensure_ascii=False)[:-1]
    bad = ToolUseBlock(id=call.id, name=call.name, malformed=cut)
    return (*blocks[:place], bad, *blocks[place + 1 :]), (call,)


def _undelivered(planned: tuple[AssistantBlock, ...], message: AssistantMessage) -> tuple[AssistantBlock, ...]:
    """What of the plan is not in the message. A message that is no beginning of the plan counts as the whole of it."""
    want = [block for block in planned if not isinstance(block, ThinkingBlock)]
    have = [block for block in message.content if isinstance(block, TextBlock | ToolUseBlock)]
    if len(have) >= len(want) or not all(_same(a, b) for a, b in zip(want, have, strict=False)):
        return ()
    return tuple(want[len(have) :])


def _same(planned: AssistantBlock, block: AssistantBlock) -> bool:
    if isinstance(planned, ToolUseBlock) and isinstance(block, ToolUseBlock):
        return planned.id == block.id
    return planned == block
