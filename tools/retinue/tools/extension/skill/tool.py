"""Skill: instructions that are read when they are needed."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from retinue.tools.base import (
    Decision,
    NameSubject,
    OnProgress,
    Refused,
    Subject,
    Tool,
    ToolContext,
    ToolData,
    ToolInput,
    ToolResult,
    Validation,
)
from retinue.tools.errors import SpecError, ToolError
from retinue.tools.extension.skill.constants import COMMAND_MS, DEFAULT_AGENT, MAX_ARGS_CHARS
from retinue.tools.extension.skills.book import Skill as SkillText
from retinue.tools.extension.skills.fill import Filling, Piece, has_commands, pieces
from retinue.tools.ports import ChildRequest
from retinue.tools.team.ports import connected, untrusted
from retinue.tools.text import for_model, one_line

_UNKNOWN, _NOT_FOR_MODELS = 1, 2


class SkillInput(ToolInput):
    skill: str = Field(min_length=1, description="The skill's name as it is listed")
    args: str | None = Field(None, max_length=MAX_ARGS_CHARS, description="Its arguments, if it takes any")


class SkillOutput(ToolData):
    """`text` is the result of a sub-agent; `notes` say what of the skill did not count."""

    skill: str
    forked: bool = False
    ok: bool = True
    text: str = ""
    notes: tuple[str, ...] = ()


class Skill(Tool[SkillInput, SkillOutput]):
    name = "Skill"
    group = "extension"
    needs = ("skills",)
    search_hint = "use a skill: instructions for a kind of work"
    needs_lease = False
    deadline_s = None

    def description(self) -> str:
        return "Uses a skill: instructions for one kind of work"

    def is_available(self, ctx: ToolContext) -> bool:
        return ctx.skills is not None and bool(ctx.skills.offered)

    def subject(self, args: SkillInput, ctx: ToolContext) -> Subject:
        return NameSubject(_name(args))

    def title(self, args: SkillInput) -> str:
        return f"Skill {one_line(_name(args), 80)}{f' {one_line(args.args, 100)}' if args.args else ''}"

    async def validate_input(self, args: SkillInput, ctx: ToolContext) -> Validation:
        found = _find(args, ctx)
        if found is None:
            there = ", ".join(skill.name for skill in ctx.skills.offered) if ctx.skills else ""
            return Refused(f"There is no skill {one_line(args.skill, 80)}. There are: {there or 'none'}.", _UNKNOWN)
        if not found.model_invocable:
            return Refused(f"The skill {found.name} may be used by people only.", _NOT_FOR_MODELS)
        return None

    async def check_permissions(self, args: SkillInput, ctx: ToolContext) -> Decision | None:
        """Text grants nothing. What allows tools, or runs commands, is for rules and mode to say."""
        found = _find(args, ctx)
        if found is None or (found.trusted and (found.allowed_tools or has_commands(found.body))):
            return None
        return Decision("allow", "it brings instructions alone", "tool")

    async def call(self, args: SkillInput, ctx: ToolContext, on_progress: OnProgress) -> ToolResult[SkillOutput]:
        skill = _find(args, ctx)
        if skill is None:
            raise ToolError(f"There is no skill {one_line(args.skill, 80)}.")
        notes: list[str] = []
        text = await _instructions(skill, args.args or "", ctx, notes)
        if skill.fork:
            return await _forked(skill, text, ctx, notes)
        _grant(skill, ctx, notes)
        output = SkillOutput(skill=skill.name, notes=tuple(notes))
        return ToolResult(output, new_messages=(text,))

    def to_content(self, data: SkillOutput) -> str:
        notes = "".join(f"\n({note})" for note in data.notes)
        if data.forked:
            return f"{data.text or '(the sub-agent gave no result)'}{notes}"
        return f"The instructions of the skill {data.skill} follow.{notes}"


def _name(args: SkillInput) -> str:
    return args.skill.strip().removeprefix("/")


def _find(args: SkillInput, ctx: ToolContext) -> SkillText | None:
    return ctx.skills.find(_name(args)) if ctx.skills is not None else None


async def _instructions(skill: SkillText, given: str, ctx: ToolContext, notes: list[str]) -> str:
    folder = str(ctx.root / Path(skill.folder))
    variables = {
        "CLAUDE_SKILL_DIR": folder,
        "CLAUDE_PROJECT_DIR": str(ctx.root),
        "CLAUDE_SESSION_ID": ctx.agent,
    }
    parts = pieces(skill.body, Filling(given, skill.arguments, variables))
    if not skill.trusted and any(part.is_command for part in parts):
        notes.append("its commands were not run, since the repository is not trusted")
        parts = [Piece(f"!`{part.text}`") if part.is_command else part for part in parts]
    body = "".join([await _run(part.text, ctx) if part.is_command else part.text for part in parts])
    return f"Instructions of the skill {skill.name}, whose files are in {folder}:\n\n{body}"


async def _run(command: str, ctx: ToolContext) -> str:
    """As a call of Bash, with all that a call goes through."""
    if ctx.code is None:
        raise ToolError("The skill has commands in it, and none can be run here.")
    scope = ctx.code.within(ctx)
    try:
        result = await scope.start("Bash", {"command": command, "timeout": COMMAND_MS})
    finally:
        await scope.close()
    if result.is_error:
        raise ToolError(f"The skill's command `{one_line(command, 200)}` failed: {result.content}")
    return for_model(result.content)


async def _forked(skill: SkillText, text: str, ctx: ToolContext, notes: list[str]) -> ToolResult[SkillOutput]:
    request = ChildRequest(
        definition=skill.agent or DEFAULT_AGENT, description=f"skill {skill.name}", prompt=text, model=skill.model
    )
    outcome = await connected(ctx.children, "way to start sub-agents").run(ctx.key, request)
    output = SkillOutput(skill=skill.name, forked=True, ok=outcome.ok, text=untrusted(outcome.text), notes=tuple(notes))
    return ToolResult(output, is_error=not outcome.ok)


def _grant(skill: SkillText, ctx: ToolContext, notes: list[str]) -> None:
    """Denials count always; what is allowed, only of who is trusted, and where the agent has rights of its own."""
    if ctx.learn is None:
        return
    if skill.allowed_tools and not skill.trusted:
        notes.append("the tools that it allows stay as they were, since the repository is not trusted")
    wanted = [("deny", rule) for rule in skill.disallowed_tools]
    wanted += [("allow", rule) for rule in skill.allowed_tools if skill.trusted]
    for behavior, rule in wanted:
        try:
            ctx.learn("deny" if behavior == "deny" else "allow", rule)
        except SpecError as error:
            notes.append(one_line(f"a rule of it does not count: {error}", 300))
