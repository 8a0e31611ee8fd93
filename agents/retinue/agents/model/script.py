"""The scripted model's document: what each agent says and calls, in which order. Only the shape; nothing is played."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from retinue.agents.model.messages import Wire
from retinue.agents.model.port import StopReason

PLACEHOLDER = re.compile(r"\$(\$)?\{([A-Za-z_][A-Za-z0-9_]*)\}")
BUILT_IN_NAMES = frozenset({"agent"})

FailStatus = Literal[400, 401, 403, 404, 413, 429, 500, 503, 529]
FailKind = Literal["drop", "close", "error", "stall", "malformed"]


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    """As everywhere in a script: searched, not anchored, and `^` and `$` mean lines."""
    return re.compile(pattern, re.MULTILINE)


def _regex(pattern: str) -> str:
    try:
        compiled(pattern)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return pattern


def _one_group(pattern: str) -> str:
    groups = compiled(_regex(pattern)).groups
    if groups != 1:
        raise ValueError(f"needs exactly one group, as in `line (\\d+)`; this has {groups}")
    return pattern


Regex = Annotated[str, AfterValidator(_regex)]
CaptureRegex = Annotated[str, AfterValidator(_one_group)]
CaptureName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class Matcher(Wire):
    """What must have come in. All that is given must hold.

    mail_from       the sender's name; wildcards as in `worker-*`
    mail_kind       kind of the envelope, as in `task_returned`
    tool_result_of  a tool's name, or `NAME#2` for the second call of it in the last message
    error           true: a result that is an error; false: results, and none of them an error
    matches         a regular expression, searched in the mail or result that the other keys select, else in all
    """

    mail_from: str | None = None
    mail_kind: str | None = None
    tool_result_of: Annotated[str, Field(pattern=r"^[^#\s]+(#[1-9][0-9]*)?$")] | None = None
    error: bool | None = None
    matches: Regex | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Matcher:
        if not self.model_dump(exclude_none=True):
            raise ValueError("an empty matcher; give one of mail_from, mail_kind, tool_result_of, error, matches")
        return self

    def __str__(self) -> str:
        """As a person says it; equal matchers say the same."""
        given = self.model_dump(exclude_none=True).items()
        return ", ".join(f"/{value}/" if key == "matches" else f"{key} {value}" for key, value in given)


def _as_matchers(value: object) -> object:
    items = cast(list[object], value) if isinstance(value, list) else [value]
    return [{"matches": item} if isinstance(item, str) else item for item in items]


# A string is short for {matches: STRING}; a list means that each of its members must hold.
Condition = Annotated[
    tuple[Matcher, ...],
    BeforeValidator(_as_matchers, json_schema_input_type=str | Matcher | list[str | Matcher]),
]


class Call(Wire):
    """One tool call of a turn; the input is sent as it stands, after `${name}`."""

    tool: str
    input: dict[str, JsonValue] = {}


def _as_calls(value: object) -> object:
    """`{Read: {…}, Grep: [{…}, {…}]}` or `[{Read: {…}}, {Read: {…}}]` as a list of calls."""
    return [call for entry in _mappings(value) for call in _calls_of(entry)]


def _mappings(value: object) -> list[dict[str, object]]:
    items = cast(list[object], value) if isinstance(value, list) else [value]
    for item in items:
        if not isinstance(item, dict):
            raise ValueError("calls are written `TOOL: {input}`, as a mapping or as a list of such mappings")
    return cast(list[dict[str, object]], items)


def _calls_of(entry: dict[str, object]) -> Iterator[dict[str, object]]:
    for tool, inputs in entry.items():
        for one in cast(list[object], inputs) if isinstance(inputs, list) else [inputs]:
            if one is not None and not isinstance(one, dict):
                raise ValueError(f"the input of {tool} must be a mapping of its parameters")
            yield {"tool": tool, "input": {} if one is None else one}


_CallInput = dict[str, JsonValue] | None
Calls = Annotated[
    tuple[Call, ...],
    BeforeValidator(
        _as_calls,
        json_schema_input_type=dict[str, _CallInput | list[_CallInput]] | list[dict[str, _CallInput]],
    ),
]


class Pace(Wire):
    """How fast the answer streams. Nothing given: as fast as it can."""

    tokens_per_second: Annotated[float, Field(gt=0)] | None = None
    first_token_s: Annotated[float, Field(ge=0)] = 0.0


class Fail(Wire):
    """How the first `times` attempts at a turn go wrong; after them the turn works.

    status     the server refuses with this HTTP status; `retry_after` goes with it
    drop       the connection is lost in the middle of block number `block`
    close      the stream ends there, cleanly, without the end of the message
    error      the server reports an overload there, in mid-stream
    stall      nothing more comes from there on, until the client's patience ends
    malformed  the input of call number `call` is not JSON; the call is made again, well, after its error came back
    """

    status: FailStatus | None = None
    kind: FailKind | None = None
    retry_after: Annotated[float, Field(ge=0)] | None = None
    block: Annotated[int, Field(ge=1)] | None = None
    call: Annotated[int, Field(ge=1)] = 1
    times: Annotated[int, Field(ge=1)] = 1

    @model_validator(mode="after")
    def _one_way_to_fail(self) -> Fail:
        if (self.status is None) == (self.kind is None):
            raise ValueError("needs either `status` (an HTTP status) or `kind` (drop, close, error, stall, malformed)")
        if self.retry_after is not None and self.status is None:
            raise ValueError("`retry_after` goes with `status`")
        return self


def _as_fail(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        return {"status": value}
    return {"kind": value} if isinstance(value, str) else value


class UsageOverride(Wire):
    """Replaces single numbers of the estimate."""

    input: Annotated[int, Field(ge=0)] | None = None
    output: Annotated[int, Field(ge=0)] | None = None
    cache_read: Annotated[int, Field(ge=0)] | None = None
    cache_write: Annotated[int, Field(ge=0)] | None = None


class ScriptTurn(Wire):
    """One answer of the model.

    think, say, calls  what it is made of, in this order
    when      passed over as long as it is not met; tried again at the next request
    wait_for  until each of these came (at any time, in any order), neither this turn nor a later one is taken
    expect    must match what came, or the run fails and shows what came instead
    capture   name: regular expression with one group, on what came; `${name}` from this turn on
    repeat    how often it may be taken; true: without end
    """

    think: str | None = None
    say: str | None = None
    calls: Calls = ()
    when: Condition = ()
    wait_for: Condition = ()
    expect: Condition = ()
    capture: dict[CaptureName, CaptureRegex] = {}
    repeat: Annotated[int, Field(ge=1)] | Literal[True] = 1
    pace: Pace | None = None
    fail: Annotated[
        Fail | None, BeforeValidator(_as_fail, json_schema_input_type=FailStatus | FailKind | Fail | None)
    ] = None
    usage: UsageOverride | None = None
    stop_reason: StopReason | None = None

    @model_validator(mode="before")
    @classmethod
    def _repeat_true_is_no_number(cls, data: object) -> object:
        if isinstance(data, Mapping) and cast(Mapping[str, object], data).get("repeat") is False:
            raise ValueError("`repeat: false` says nothing; leave it out, or give a number or true")
        return cast(object, data)

    @model_validator(mode="after")
    def _is_an_answer(self) -> ScriptTurn:
        if not self.say and not self.calls:
            raise ValueError("a turn needs `say` or `calls`")
        if self.fail is not None and self.fail.kind == "malformed" and self.fail.call > len(self.calls):
            raise ValueError(f"`fail` names call {self.fail.call}, and this turn has {len(self.calls)}")
        if self.fail is not None and (self.fail.block or 1) > self.blocks:
            raise ValueError(f"`fail` names block {self.fail.block}, and this turn has {self.blocks}")
        return self

    @property
    def blocks(self) -> int:
        return bool(self.think) + bool(self.say) + len(self.calls)

    @property
    def limit(self) -> int | None:
        """How often it may be taken, None without end."""
        return None if self.repeat is True else self.repeat

    def texts(self) -> Iterator[str]:
        """Every string in which `${name}` is replaced."""
        yield from (text for text in (self.think, self.say) if text is not None)
        for call in self.calls:
            yield from _strings(call.input)


def _strings(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _names_in(turn: ScriptTurn) -> set[str]:
    found = (match for text in turn.texts() for match in PLACEHOLDER.finditer(text))
    return {match[2] for match in found if not match[1]}


def _check_order(turns: tuple[ScriptTurn, ...]) -> tuple[ScriptTurn, ...]:
    """Every turn can be reached, and every `${name}` is captured by then. Raises ValueError, naming the turn."""
    known = set(BUILT_IN_NAMES)
    for number, turn in enumerate(turns):
        known.update(turn.capture)
        if unknown := sorted(_names_in(turn) - known):
            raise ValueError(
                f"turn {number + 1} uses ${{{unknown[0]}}}, which no turn up to it captures; "
                f"write $${{{unknown[0]}}} for the text itself"
            )
        if turn.repeat is True and not turn.when and number + 1 < len(turns):
            raise ValueError(f"turn {number + 1} repeats without end and without `when`: no turn after it can be taken")
    return turns


Turns = Annotated[tuple[ScriptTurn, ...], AfterValidator(_check_order)]


class SideTurn(Wire):
    """An answer to a small question beside a conversation, such as that about a page of the web; as often as it fits.

    matches  a regular expression, searched in the question with all that it is about; none: it fits every question
    """

    matches: Regex | None = None
    say: str = Field(min_length=1)
    usage: UsageOverride | None = None


class Script(Wire):
    """Turns per agent: under its name, under a pattern such as `worker-*`, or under `*` for everybody else.

    side  answers to questions beside conversations; the first that fits is given
    """

    version: Literal[1] = 1
    pace: Pace = Pace()
    agents: Annotated[dict[str, Turns], Field(min_length=1)]
    side: tuple[SideTurn, ...] = ()

    def side_for(self, question: str) -> SideTurn | None:
        fits = (turn for turn in self.side if turn.matches is None or compiled(turn.matches).search(question))
        return next(fits, None)

    def turns_for(self, agent: str) -> tuple[ScriptTurn, ...] | None:
        """The exact name first, then the first pattern that fits, `*` last; None when there is none."""
        if agent in self.agents:
            return self.agents[agent]
        for pattern, turns in self.agents.items():
            if pattern != "*" and fnmatchcase(agent, pattern):
                return turns
        return self.agents.get("*")


def script_schema() -> dict[str, JsonValue]:
    """JSON Schema of the document, for editors."""
    schema = cast(dict[str, JsonValue], Script.model_json_schema(mode="validation"))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "retinue script"}
