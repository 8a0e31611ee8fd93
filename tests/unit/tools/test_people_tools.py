"""TodoWrite, AskUserQuestion and SendUserMessage against their schemas and limits, through the pipeline."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from retinue.tools.execution.calls import CallResult
from retinue.tools.people.ask_user_question.tool import NO_ANSWER, NOBODY, AskUserQuestion
from retinue.tools.people.ports import HumanAnswers, HumanQuestion, PlanVerdict, Todo
from retinue.tools.people.send_user_message.constants import MAX_FILE_BYTES
from retinue.tools.people.send_user_message.tool import SendUserMessage
from retinue.tools.people.todo_write.constants import MAX_TODOS
from retinue.tools.people.todo_write.tool import TodoWrite
from support.calls import call, context, pipeline, run
from support.shown_calls import finder, seen, text_of


@dataclass
class List:
    now: tuple[Todo, ...] = ()
    keys: list[str] = field(default_factory=list)

    async def replace(self, key: str, todos: tuple[Todo, ...]) -> tuple[Todo, ...]:
        self.keys.append(key)
        before, self.now = self.now, todos
        return before


@dataclass
class Human:
    answers: HumanAnswers | None = None
    asked: list[tuple[HumanQuestion, ...]] = field(default_factory=list)

    async def ask(self, questions: tuple[HumanQuestion, ...]) -> HumanAnswers | None:
        self.asked.append(questions)
        return self.answers

    async def approve(self, plan: str) -> PlanVerdict:
        raise AssertionError("no plan in this test")


def todo(content: str, status: str = "pending") -> dict[str, object]:
    return {"content": content, "status": status, "activeForm": f"{content}ing"}


# --- TodoWrite --------------------------------------------------------------------------------------------------------


async def write(todos: list[dict[str, object]], port: List | None) -> CallResult:
    return await run(pipeline(TodoWrite()), call("TodoWrite", todos=todos), context(todos=port))


async def test_the_whole_list_takes_the_place_of_the_old_one() -> None:
    port = List(now=(Todo(content="old", status="pending", active_form="olding"),))
    end = await write([todo("read", "completed"), todo("build", "in_progress"), todo("test")], port)
    assert [(t.content, t.status, t.active_form) for t in port.now] == [
        ("read", "completed", "reading"),
        ("build", "in_progress", "building"),
        ("test", "pending", "testing"),
    ]
    assert end.title == "Todo: 1 of 3 items done, building"
    assert end.data is not None
    assert [each["content"] for each in end.data["old_todos"]] == ["old"]  # type: ignore[index,union-attr]


async def test_a_list_can_be_emptied() -> None:
    end = await write([], port := List(now=(Todo(content="old", status="pending", active_form="olding"),)))
    assert (end.content, port.now) == ("The list is empty now.", ())


@pytest.mark.parametrize(
    "todos",
    [
        [{"content": "", "status": "pending", "activeForm": "x"}],
        [{"content": "x", "status": "pending", "activeForm": ""}],
        [{"content": "x", "status": "done", "activeForm": "x"}],
        [{"content": "x", "status": "pending"}],
        [{"content": "x", "status": "pending", "activeForm": "x", "priority": 1}],
        [todo("x")] * (MAX_TODOS + 1),
    ],
)
async def test_what_is_no_list_changes_nothing(todos: list[dict[str, object]]) -> None:
    end = await write(todos, port := List())
    assert (end.error_class, port.keys) == ("InputValidationError", [])


async def test_a_list_looks_like_one(tmp_path: Path) -> None:
    ctx = context(tmp_path, todos=List())
    calls = [
        await seen(ctx, TodoWrite(), todos=[todo("read", "completed"), todo("build", "in_progress"), todo("test")])
    ]
    assert text_of(calls, finder([TodoWrite()])) == (
        "Todo 1 of 3 items done, building\n  [x] read\n  [>] building\n  [ ] test"
    )


# --- AskUserQuestion --------------------------------------------------------------------------------------------------


def question(text: str = "Which way?", **changes: object) -> dict[str, object]:
    options = [{"label": "left", "description": "shorter"}, {"label": "right"}]
    return {"question": text, "header": "Way", "options": options, **changes}


async def ask(questions: list[dict[str, object]], human: Human | None) -> CallResult:
    return await run(pipeline(AskUserQuestion()), call("AskUserQuestion", questions=questions), context(human=human))


async def test_the_answers_are_told_by_their_questions() -> None:
    human = Human(HumanAnswers(answers={"Which way?": "left", "What else?": "a, b"}))
    end = await ask([question(), question("What else?", multiSelect="true")], human)
    assert end.content == "The user answered:\n- Which way?\n  left\n- What else?\n  a, b"
    ((first, second),) = human.asked
    assert (first.options[0].label, first.options[0].description, first.multi_select) == ("left", "shorter", False)
    assert second.multi_select
    assert end.title == "Asks: Which way? (and 1 more question)"


async def test_what_is_said_instead_of_an_answer_is_told() -> None:
    end = await ask([question()], Human(HumanAnswers(response="Neither, stop.")))
    assert end.content == "Instead of choosing, the user said: Neither, stop."


@pytest.mark.parametrize(("human", "words"), [(None, NOBODY), (Human(None), NO_ANSWER)])
async def test_where_nobody_answers_the_agent_hears_how_to_go_on(human: Human | None, words: str) -> None:
    end = await ask([question()], human)
    assert (end.content, end.is_error, end.error_class) == (words, True, "ToolFailed")


@pytest.mark.parametrize(
    ("questions", "error_class"),
    [
        ([], "InputValidationError"),
        ([question(str(n)) for n in range(5)], "InputValidationError"),
        ([question(header="a header too long")], "InputValidationError"),
        ([question(options=[{"label": "one"}])], "InputValidationError"),
        ([question(options=[{"label": str(n)} for n in range(5)])], "InputValidationError"),
        ([question(), question()], "Refused:AskUserQuestion:1"),
        ([question(options=[{"label": "a"}, {"label": "a"}])], "Refused:AskUserQuestion:2"),
        (
            [question(multiSelect=True, options=[{"label": "a", "preview": "x"}, {"label": "b"}])],
            "Refused:AskUserQuestion:3",
        ),
    ],
)
async def test_what_cannot_be_asked_is_refused(questions: list[dict[str, object]], error_class: str) -> None:
    end = await ask(questions, human := Human(HumanAnswers()))
    assert (end.error_class, human.asked) == (error_class, [])


async def test_questions_and_answers_look_alike(tmp_path: Path) -> None:
    ctx = context(tmp_path, human=Human(HumanAnswers(answers={"Which way?": "left"})))
    shown = text_of([await seen(ctx, AskUserQuestion(), questions=[question()])], finder([AskUserQuestion()]))
    assert shown == "Asked\n  Way: left"


# --- SendUserMessage --------------------------------------------------------------------------------------------------


async def say(root: Path, **values: object) -> CallResult:
    return await run(pipeline(SendUserMessage()), call("SendUserMessage", **values), context(root))


async def test_a_message_is_kept_with_its_files(tmp_path: Path) -> None:
    (tmp_path / "shot.PNG").write_bytes(b"12345")
    end = await say(tmp_path, message="# Done", attachments=["shot.PNG"], status="proactive")
    path = str(tmp_path / "shot.PNG")
    assert end.content == f"Shown to the user, with {path}."
    assert end.data == {
        "message": "# Done",
        "status": "proactive",
        "attachments": [{"path": path, "size": 5, "is_image": True}],
    }
    assert end.observed is not None
    assert end.observed["attachments"] == [path]


async def test_its_old_name_works_and_says_the_new_one(tmp_path: Path) -> None:
    end = await run(pipeline(SendUserMessage()), call("Brief", message="hi"), context(tmp_path))
    assert end.content.startswith("Shown to the user.")
    assert "Brief is a deprecated name" in end.content


async def test_only_files_of_the_workspace_can_be_attached(tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "secret").write_text("s")
    (root / "link").symlink_to(tmp_path / "secret")
    with (root / "huge").open("wb") as file:
        os.truncate(file.fileno(), MAX_FILE_BYTES + 1)
    for path, code in {"../secret": 4, "link": 4, "none": 2, "folder": 2, "huge": 3, ".git/config": 2}.items():
        end = await say(root, message="x", attachments=[path])
        assert (path, end.error_class) == (path, f"Refused:SendUserMessage:{code}")


async def test_an_empty_message_is_refused(tmp_path: Path) -> None:
    assert (await say(tmp_path, message=" \n")).error_class == "Refused:SendUserMessage:1"
    assert (await say(tmp_path, message="x", status="urgent")).error_class == "InputValidationError"


async def test_a_message_is_shown_in_full(tmp_path: Path) -> None:
    shown = [await seen(context(tmp_path), SendUserMessage(), message="Two\n\nlines", status="proactive")]
    assert text_of(shown, finder([SendUserMessage()])) == "To you unasked\n  Two\n\n  lines"
