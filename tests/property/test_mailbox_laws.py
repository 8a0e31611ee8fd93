"""Laws of the mailbox: whatever arrives, how often and in which order, each message is processed once and in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retinue.agents.mail.envelopes import Envelope, Text
from retinue.agents.mail.mailbox import Mailbox
from retinue.agents.mail.render import text_of
from retinue.agents.records import AgentRecord, MailStored, RequestSent
from retinue.agents.tokens import estimate_tokens

SENDERS = ("bob~1", "cleo~1", "human")


@st.composite
def envelopes(draw: st.DrawFn) -> list[Envelope]:
    """Arrivals, with repeats under the same id."""
    count = draw(st.integers(1, 12))
    made = [
        Envelope(
            id=str(number),
            sender=draw(st.sampled_from(SENDERS)),
            recipient="ada~1",
            body=Text(text="x" * draw(st.integers(0, 600))),
        )
        for number in range(count)
    ]
    again = draw(st.lists(st.sampled_from(made), max_size=8))
    return sorted([*made, *again], key=lambda envelope: int(envelope.id)) if draw(st.booleans()) else [*made, *again]


@st.composite
def lives(draw: st.DrawFn) -> tuple[list[Envelope], list[int]]:
    """Arrivals, and after how many of them each step takes mail."""
    arriving = draw(envelopes())
    return arriving, draw(st.lists(st.integers(0, len(arriving)), max_size=6))


def live(arriving: list[Envelope], steps: list[int], limit: int, box: Mailbox) -> list[AgentRecord]:
    records: list[AgentRecord] = []

    def record(entry: AgentRecord) -> None:
        records.append(entry)
        box.apply(entry)

    def take() -> bool:
        taken = box.take(limit)
        if taken.envelopes:
            record(RequestSent(turn=1, step=1, mail=tuple(e.id for e in taken.envelopes)))
        return bool(taken.envelopes)

    for place, envelope in enumerate(arriving):
        for _ in range(steps.count(place)):
            take()
        if box.accept(envelope).outcome == "stored":
            record(MailStored(envelope=envelope))
    while take():
        pass
    return records


def processed(records: list[AgentRecord]) -> list[str]:
    return [name for record in records if isinstance(record, RequestSent) for name in record.mail]


@given(lives(), st.integers(1, 400))
def test_each_message_is_processed_once(life: tuple[list[Envelope], list[int]], limit: int) -> None:
    arriving, steps = life
    done = processed(live(arriving, steps, limit, Mailbox()))
    assert sorted(done) == sorted({envelope.id for envelope in arriving})


@given(lives(), st.integers(1, 400))
def test_messages_of_one_sender_keep_their_order(life: tuple[list[Envelope], list[int]], limit: int) -> None:
    arriving, steps = life
    done = processed(live(arriving, steps, limit, Mailbox()))
    for sender in SENDERS:
        first_seen = list(dict.fromkeys(e.id for e in arriving if e.sender == sender))
        assert [name for name in done if name in set(first_seen)] == first_seen


@given(lives(), st.integers(1, 400))
def test_a_step_keeps_its_limit_unless_one_message_is_larger(
    life: tuple[list[Envelope], list[int]], limit: int
) -> None:
    by_id = {envelope.id: envelope for envelope in life[0]}
    for record in live(*life, limit, Mailbox()):
        if isinstance(record, RequestSent) and len(record.mail) > 1:
            assert sum(estimate_tokens(by_id[name].body.model_dump_json()) for name in record.mail) <= limit


@given(lives(), st.integers(1, 400), st.integers(0, 40))
def test_a_mailbox_rebuilt_from_any_prefix_goes_on_like_the_first(
    life: tuple[list[Envelope], list[int]], limit: int, cut: int
) -> None:
    whole = live(*life, limit, Mailbox())
    kept, rebuilt = whole[:cut], Mailbox()
    for record in kept:
        rebuilt.apply(record)
    rest = live(life[0], [], limit, rebuilt)
    assert sorted(processed([*kept, *rest])) == sorted({envelope.id for envelope in life[0]})


@given(lives(), st.integers(1, 5), st.integers(20, 400))
def test_a_mailbox_never_holds_more_than_its_capacity(
    life: tuple[list[Envelope], list[int]], count: int, tokens: int
) -> None:
    box = Mailbox(count, tokens)
    for envelope in life[0]:
        if box.accept(envelope).outcome == "stored":
            box.apply(MailStored(envelope=envelope))
        assert box.unread <= count
        held = box.take(10**9)
        size = sum(estimate_tokens(e.body.model_dump_json()) for e in held.envelopes)
        assert size <= tokens or box.unread == 1


@given(st.text(max_size=300), st.sampled_from(["bob~1", '"><x>~1', "team"]))
def test_no_text_at_all_leaves_its_mark(text: str, sender: str) -> None:
    shown = text_of(Envelope(id="m", sender=sender, recipient="ada~1", body=Text(text=text, summary=text)))
    lowered = shown.lower()
    assert lowered.count("</teammate-message") == 1
    assert lowered.count("<teammate-message") == 1
    assert shown.endswith("\n</teammate-message>")
