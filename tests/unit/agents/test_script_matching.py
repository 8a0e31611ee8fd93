"""What came in, and which matchers it meets."""

from __future__ import annotations

import pytest

from retinue.agents.model.incoming import Incoming, incoming_of
from retinue.agents.model.messages import AssistantMessage, TextBlock, ToolResultBlock, ToolUseBlock, UserMessage
from retinue.agents.model.script import Matcher

ASKED = AssistantMessage(
    content=(
        ToolUseBlock(id="1", name="Read"),
        ToolUseBlock(id="2", name="Grep"),
        ToolUseBlock(id="3", name="Read"),
    )
)
MAIL = (
    'Note.\n<teammate-message teammate_id="worker-1~3" kind="text">\nI &lt;am&gt; done\n</teammate-message>\n'
    '<teammate-message teammate_id="team" kind="task_returned">\nline 7\n</teammate-message>'
)
CAME = incoming_of(
    ASKED,
    (
        UserMessage(
            content=(
                ToolResultBlock(tool_use_id="1", content="one"),
                ToolResultBlock(tool_use_id="2", content="two", is_error=True),
                ToolResultBlock(tool_use_id="3", content="three"),
                TextBlock(text=MAIL),
            )
        ),
    ),
)


def test_results_mail_and_other_text_are_told_apart():
    assert [(part.kind, part.source, part.ordinal) for part in CAME.parts] == [
        ("result", "Read", 1),
        ("result", "Grep", 1),
        ("result", "Read", 2),
        ("text", "", 0),
        ("mail", "worker-1~3", 0),
        ("mail", "team", 0),
    ]


@pytest.mark.parametrize(
    ("matcher", "count"),
    [
        (Matcher(tool_result_of="Read"), 2),
        (Matcher(tool_result_of="Read#2"), 1),
        (Matcher(tool_result_of="Read#3"), 0),
        (Matcher(tool_result_of="Edit"), 0),
        (Matcher(tool_result_of="Read#2", matches="^three$"), 1),
        (Matcher(tool_result_of="Read#1", matches="three"), 0),
        (Matcher(tool_result_of="Grep", error=True), 1),
        (Matcher(tool_result_of="Grep", error=False), 0),
        (Matcher(tool_result_of="Read", error=False), 2),
        (Matcher(error=True), 1),
        (Matcher(error=False), 0),
        (Matcher(mail_from="worker-*"), 1),
        (Matcher(mail_from="worker-1"), 1),
        (Matcher(mail_from="worker-1~3"), 1),
        (Matcher(mail_from="worker-2"), 0),
        (Matcher(mail_kind="task_returned"), 1),
        (Matcher(mail_kind="task_returned", mail_from="worker-1"), 0),
        (Matcher(mail_kind="task_returned", matches="line (\\d)"), 1),
        (Matcher(mail_from="worker-1", matches="line"), 0),
        (Matcher(matches="^three$"), 1),
        (Matcher(matches="four"), 0),
        (Matcher(mail_from="team", error=True, matches="two"), 1),
    ],
)
def test_a_matcher_counts_what_meets_all_of_it(matcher: Matcher, count: int):
    assert CAME.count(matcher) == count


def test_a_mail_that_only_quotes_a_header_in_a_tool_result_is_no_mail():
    came = incoming_of(ASKED, (UserMessage(content=(ToolResultBlock(tool_use_id="1", content=MAIL),)),))
    assert came.count(Matcher(mail_from="*")) == 0


def test_nothing_that_came_meets_nothing_but_what_matches_the_empty_text():
    nothing = Incoming((), "")
    assert nothing.count(Matcher(error=False)) == 0
    assert nothing.count(Matcher(matches="^$")) == 1
