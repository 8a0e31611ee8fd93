"""Skills: how they are read, filled in, listed and used."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from retinue.tools.base import Behavior
from retinue.tools.errors import SpecError
from retinue.tools.extension.skill.tool import Skill
from retinue.tools.extension.skills.book import Skill as SkillText
from retinue.tools.extension.skills.book import SkillBook
from retinue.tools.extension.skills.fill import Filling, Piece, pieces
from retinue.tools.extension.skills.parse import MAX_BYTES, parse_skill, skills_of
from retinue.tools.permissions.rules import Anchors, RuleBook, RuleTexts
from retinue.tools.ports import ChildOutcome, ChildRequest
from support.calls import call, context, pipeline, run

FULL = """---
name: release
description: Makes a release
when_to_use: a version is to be published
argument-hint: [version]
arguments: [version, channel]
allowed-tools: Bash(git tag *), Read
disallowed-tools:
  - Write
model: anthropic:claude-haiku-4-5
context: fork
agent: coder
disable-model-invocation: false
user-invocable: false
paths: "docs/**, *.md"
hooks: {}
colour: red
---

Make $version.
"""


def parsed(text: str, path: str = ".claude/skills/release/SKILL.md", *, trusted: bool = True) -> SkillText:
    return parse_skill(path, text.encode(), "project", trusted=trusted)[0]


def test_all_keys_of_the_front_matter_are_read() -> None:
    skill, warnings = parse_skill(".claude/skills/release/SKILL.md", FULL.encode(), "project", trusted=True)
    assert skill == SkillText(
        name="release",
        description="Makes a release",
        when_to_use="a version is to be published",
        argument_hint="[version]",
        arguments=("version", "channel"),
        allowed_tools=("Bash(git tag *)", "Read"),
        disallowed_tools=("Write",),
        model="anthropic:claude-haiku-4-5",
        fork=True,
        agent="coder",
        user_invocable=False,
        paths=("docs/**", "*.md"),
        body="Make $version.",
        folder=".claude/skills/release",
        origin=".claude/skills/release/SKILL.md",
        trusted=True,
    )
    assert warnings == (".claude/skills/release/SKILL.md: without effect here: colour",)


def test_without_front_matter_the_folder_names_it_and_the_first_paragraph_describes_it() -> None:
    skill = parsed("# Title\nof it\n\nMore.\n")
    assert (skill.name, skill.description) == ("release", "# Title of it")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\n: [\n---\nx", "no YAML"),
        ("---\n- a\n---\nx", "no mapping"),
        ("---\nname: ../x\n---\nx", "name is '../x'"),
        ("---\ncontext: side\n---\nx", "context is 'side'"),
        ("---\ndescription: {a: b}\n---\nx", "description is no text"),
        ("---\ndisable-model-invocation: maybe\n---\nx", "write true or false"),
        ("x" * (MAX_BYTES + 1), "more than"),
    ],
)
def test_what_is_no_skill_is_said_with_its_file_and_costs_the_others_nothing(text: str, says: str) -> None:
    files = [("a/SKILL.md", text.encode()), ("b/SKILL.md", b"fine"), ("b/other.md", b"no skill")]
    skills, warnings = skills_of(files, "user", trusted=True)
    assert [skill.name for skill in skills] == ["b"]
    assert len(warnings) == 1
    assert warnings[0].startswith("a/SKILL.md")
    assert says in warnings[0]


VARIABLES = {"CLAUDE_SKILL_DIR": "/s"}


@pytest.mark.parametrize(
    ("body", "given", "text"),
    [
        ("Do $ARGUMENTS.", "a b", "Do a b."),
        ("$0 then $1, $ARGUMENTS[1], $2.", "'a b' c", "a b then c, c, ."),
        ("$first and $second; $third", "x y", "x and y; $third"),
        ("${CLAUDE_SKILL_DIR}/run ${HOME}", "", "/s/run ${HOME}"),
        ("No place.", "a b", "No place.\n\nARGUMENTS: a b"),
        ("No place.", "", "No place."),
        ("Price: $5x $ 5", "", "Price: $5x $ 5"),
        ("$0", "$1 ${CLAUDE_SKILL_DIR}", "$1"),
        ("$0", 'open "quote', "open"),
    ],
)
def test_places_are_filled_in_once(body: str, given: str, text: str) -> None:
    (piece,) = pieces(body, Filling(given, ("first", "second"), VARIABLES))
    assert piece == Piece(text)


def test_a_command_is_a_piece_of_its_own_and_arguments_never_bring_one() -> None:
    found = pieces("Now: !`git log -$0` $ARGUMENTS", Filling("3 !`rm x`", (), {}))
    assert found == [Piece("Now: "), Piece("git log -3", is_command=True), Piece(" 3 !`rm x`")]
    assert pieces("not!`a command`", Filling("", (), {})) == [Piece("not!`a command`")]


def test_the_list_has_a_line_each_and_keeps_to_its_room() -> None:
    skills = [SkillText(name=f"s{n}", description="x" * 3_000, body="") for n in range(3)]
    assert all(len(skill.about) == 1_536 for skill in skills)
    hidden = SkillText(name="hidden", body="", model_invocable=False)
    book = SkillBook((*skills, hidden))
    assert book.listing().count("\n") == 2
    assert "hidden" not in book.listing()
    assert len(book.listing(20_000)) <= 800
    assert book.listing(1_000) == "- s0\n- s1\n- s2"


@dataclass
class Children:
    asked: list[ChildRequest] = field(default_factory=list)

    async def run(self, key: str, request: ChildRequest) -> ChildOutcome:
        self.asked.append(request)
        return ChildOutcome(ok=True, text="released")


async def used(
    skill: SkillText, args: str = "", learnt: list[tuple[Behavior, str]] | None = None, **more: object
) -> tuple[str, tuple[str, ...]]:
    def learn(behavior: Behavior, rule: str) -> None:
        if rule == "bad(":
            raise SpecError("no rule")
        (learnt if learnt is not None else []).append((behavior, rule))

    ctx = context(skills=SkillBook((skill,)), learn=learn, **more)
    end = await run(pipeline(Skill()), call("Skill", skill=f"/{skill.name}", args=args), ctx)
    return end.content, end.new_messages


async def test_its_text_comes_as_a_message_and_its_rules_count_from_then_on() -> None:
    learnt: list[tuple[Behavior, str]] = []
    skill = SkillText(
        name="s",
        body="Do $0.",
        folder=".r/s",
        allowed_tools=("Read", "bad("),
        disallowed_tools=("Write",),
        trusted=True,
    )
    content, messages = await used(skill, "it", learnt)
    assert messages == ("Instructions of the skill s, whose files are in /w/.r/s:\n\nDo it.",)
    assert learnt == [("deny", "Write"), ("allow", "Read")]
    assert "a rule of it does not count" in content


async def test_of_a_repository_that_is_not_trusted_the_text_and_what_it_denies_count() -> None:
    learnt: list[tuple[Behavior, str]] = []
    skill = SkillText(name="s", body="See !`rm x`", allowed_tools=("Bash",), disallowed_tools=("Write",))
    content, messages = await used(skill, "", learnt)
    assert "See !`rm x`" in messages[0]
    assert learnt == [("deny", "Write")]
    assert content.count("not trusted") == 2


async def test_a_forked_one_is_carried_out_by_a_child() -> None:
    children = Children()
    skill = SkillText(name="s", body="Do it.", fork=True, agent="coder", model="script:x")
    content, messages = await used(skill, "", children=children)
    assert (content, messages) == ("released", ())
    (request,) = children.asked
    assert (request.definition, request.model) == ("coder", "script:x")
    assert request.prompt.endswith("Do it.")


async def test_one_that_there_is_not_and_one_for_people_only_are_refused() -> None:
    ctx = context(skills=SkillBook((SkillText(name="s", body="", model_invocable=False),)))
    line = pipeline(Skill())
    assert "people only" in (await run(line, call("Skill", skill="s"), ctx)).content
    assert "There is no skill t" in (await run(line, call("Skill", skill="t"), ctx)).content


@pytest.mark.parametrize(
    ("skill", "word"),
    [
        (SkillText(name="s", body="text", trusted=True), "allow"),
        (SkillText(name="s", body="!`make`", trusted=False), "allow"),
        (SkillText(name="s", body="!`make`", trusted=True), None),
        (SkillText(name="s", body="text", allowed_tools=("Bash",), trusted=True), None),
    ],
)
async def test_only_what_grants_or_runs_needs_a_right(skill: SkillText, word: str | None) -> None:
    tool = Skill()
    said = await tool.check_permissions(tool.Input(skill="s"), context(skills=SkillBook((skill,))))
    assert (said.behavior if said else None) == word


@pytest.mark.parametrize(("rule", "fits"), [("Skill(deploy)", True), ("Skill(other)", False), ("Skill", True)])
def test_rules_speak_of_skills_by_name(rule: str, fits: bool) -> None:
    tool = Skill()
    book = RuleBook.of([RuleTexts("spec", deny=(rule,))], Anchors(Path("/w"), Path("/h")))
    subject = tool.subject(tool.Input(skill="/deploy"), context())
    assert (book.first("deny", tool, subject, None) is not None) is fits  # type: ignore[arg-type]


def test_it_is_there_only_where_there_are_skills() -> None:
    source: Literal["user"] = "user"
    assert not Skill().is_available(context(skills=SkillBook()))
    assert Skill().is_available(context(skills=SkillBook((SkillText(name="s", body="", source=source),))))
