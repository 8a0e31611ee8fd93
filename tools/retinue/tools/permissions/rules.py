"""Permission rules as they are written, and what they fit. Pure: paths come in resolved, nothing is asked of a disk."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from retinue.tools.base import AnyTool, Behavior, NameSubject, PathSubject, ToolInput
from retinue.tools.errors import SpecError
from retinue.tools.permissions.commands import pattern_of
from retinue.tools.permissions.parameters import fits_parameter, main_parameter, parameter_of
from retinue.tools.registry.filters import names_tool
from retinue.tools.web.domains import PREFIX, rule_fits

Source = Literal["user", "project", "local", "flag", "policy", "spec", "cli", "command", "session", "agent"]
"""`command`: what a skill or a command brought. `session`: what a person said while an agent worked."""

_Touches = Literal["read", "write", "other"]

_RULE = re.compile(r"([A-Za-z_*?][A-Za-z0-9_*?.-]*)(?:\((.*)\))?\Z", re.DOTALL)
_ONE_FOLDER = re.compile(r"[^/*?\[]+/\*\*\Z")
_COVERS = {"Edit": frozenset(("Edit", "Write", "NotebookEdit")), "Read": frozenset(("Read", "Grep", "Glob", "LSP"))}
"""Rules for these two are rules for all tools that change, or that read, files."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `content` is None for a whole tool. Printed as it was written. `base` is as in `RuleTexts`."""

    behavior: Behavior
    tool: str
    content: str | None = None
    source: Source = "spec"
    base: Path | None = None

    def __str__(self) -> str:
        return self.tool if self.content is None else f"{self.tool}({self.content})"


@dataclass(frozen=True, slots=True)
class RuleTexts:
    """Rules from one source, as written. `base` is where `/path` starts; None: at the workspace."""

    source: Source = "spec"
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    base: Path | None = None


@dataclass(frozen=True, slots=True)
class Anchors:
    """Where the path of a rule starts: `//p` at the file system's root, `~/p` at home, `p` at the workspace, and `/p`
    there, too, unless the rule has a base of its own.

    A relative path stays anchored to the workspace's root wherever a shell goes: `cd` must not move a deny rule.
    """

    root: Path
    home: Path


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """A path with its links followed (`real`) and as it was named; a rule may fit one and not the other."""

    named: Path
    real: Path
    is_folder: bool = False


PathFits = Callable[[str, bool], bool]
"""Does a pattern fit this absolute path, which may be a folder?"""


def parse_rule(text: str, behavior: Behavior, source: Source = "spec", base: Path | None = None) -> Rule:
    """SpecError for what is no rule, or could never work as it is written."""
    found = _RULE.match(text.strip())
    if found is None:
        raise SpecError(f"{text!r} is no permission rule: write Tool or Tool(content), as in Read or Bash(make test)")
    tool, content = found[1], found[2]
    if content is None or content.strip() == "*":
        content = None
    elif not content.strip():
        raise SpecError(f"{text!r} has nothing between its brackets: write {tool}, or {tool}(content)")
    if content is not None and content.startswith("!") and tool in _COVERS:
        raise SpecError(f"{text!r} is negated: a rule cannot take back another; write the paths that it is for")
    if content is not None and behavior != "allow" and (name := main_parameter(content)):
        raise SpecError(f"{text!r} can never fit: write {tool}(…) with what {name} may hold and without its name")
    if behavior == "allow" and _is_loose(tool):
        raise SpecError(f"{text!r} allows tools by a wildcard: only mcp__<server>__ may be followed by one")
    return Rule(behavior, tool, content, source, base)


def _is_loose(tool: str) -> bool:
    star = min((tool.find(c) for c in "*?" if c in tool), default=-1)
    return star >= 0 and re.fullmatch(r"mcp__.+__", tool[:star]) is None


class RuleBook:
    """All rules of one agent from all sources, compiled once: which speak of a tool, and each of their patterns."""

    def __init__(self, rules: Iterable[Rule], anchors: Anchors) -> None:
        self.rules = tuple(rules)
        self.anchors = anchors
        self._about: dict[tuple[Behavior, str, str], tuple[Rule, ...]] = {}
        self._patterns: dict[Rule, PathFits] = {}
        self._parameters: dict[str, tuple[Rule, ...]] = {}

    @classmethod
    def of(cls, texts: Iterable[RuleTexts], anchors: Anchors) -> RuleBook:
        return cls((rule for each in texts for rule in _parsed(each)), anchors)

    def of_behavior(self, behavior: Behavior) -> tuple[Rule, ...]:
        return tuple(rule for rule in self.rules if rule.behavior == behavior)

    def denied_tools(self) -> tuple[str, ...]:
        """Names, with wildcards, of the tools that the model need not see: no call of theirs could pass."""
        whole = [rule.tool for rule in self.of_behavior("deny") if rule.content is None]
        return tuple(name for tool in whole for name in sorted(_COVERS.get(tool, {tool})))

    def hides_files(self, tool: AnyTool) -> bool:
        """Whether some rule keeps some paths from being read by this tool."""
        strict = (*self._rules_about("deny", tool, "read"), *self._rules_about("ask", tool, "read"))
        return any(rule.content is not None for rule in strict)

    def first(
        self, behavior: Behavior, tool: AnyTool, subject: PathSubject | NameSubject, path: ResolvedPath | None
    ) -> Rule | None:
        """The first rule of that behaviour that fits the call. `path` is the resolved path of a path subject.

        Rules for commands are held against what the analysis finds in them, not here.
        """
        match subject:
            case PathSubject():
                about = self._rules_about(behavior, tool, "write" if subject.write else "read")
                return next((rule for rule in about if self._fits_path(rule, path)), None)
            case NameSubject():
                about = self._rules_about(behavior, tool, "other")
                return next((rule for rule in about if _fits_name(rule, subject)), None)

    def by_parameter(self, tool: AnyTool, args: ToolInput) -> Rule | None:
        """The strictest rule like `Agent(model:opus)` that fits what the call was given. No such rule allows."""
        return next((rule for rule in self._on_parameters(tool) if fits_parameter(rule.content or "", args)), None)

    def _on_parameters(self, tool: AnyTool) -> tuple[Rule, ...]:
        found = self._parameters.get(tool.name)
        if found is None:
            rules = (*self.of_behavior("deny"), *self.of_behavior("ask"))
            found = tuple(r for r in rules if names_tool(r.tool, tool) and parameter_of(r.content or "") is not None)
            self._parameters[tool.name] = found
        return found

    def _rules_about(self, behavior: Behavior, tool: AnyTool, touches: _Touches) -> tuple[Rule, ...]:
        key = (behavior, tool.name, touches)
        found = self._about.get(key)
        if found is None:
            found = tuple(rule for rule in self.of_behavior(behavior) if _is_about(rule, tool, touches))
            self._about[key] = found
        return found

    def _fits_path(self, rule: Rule, path: ResolvedPath | None) -> bool:
        if rule.content is None:
            return True
        strict = rule.behavior != "allow"
        if path is None:
            return strict  # a path that could not be resolved is denied what it may be denied, and allowed nothing
        fits = self._patterns.get(rule)
        if fits is None:
            fits = self._patterns[rule] = path_matcher(rule.content, rule.behavior, self.anchors, rule.base)
        named, real = str(path.named), str(path.real)
        if strict:
            return fits(named, True) or fits(real, True)
        return fits(named, path.is_folder) and fits(real, path.is_folder)


def path_matcher(content: str, behavior: Behavior, anchors: Anchors, base: Path | None = None) -> PathFits:
    """One pattern in gitignore form, from its anchor; `base` is where `/path` starts, if not at the workspace."""
    from pathspec import GitIgnoreSpec  # here, because it is slow to load and few teams write path rules

    bases, pattern = _anchored(content.strip(), anchors, base)
    if behavior != "allow" and _ONE_FOLDER.match(pattern):
        pattern = f"**/{pattern}"
    if pattern.startswith("#"):
        pattern = f"\\{pattern}"
    match = GitIgnoreSpec.from_lines([pattern]).match_file
    prefixes = tuple(base if base.endswith("/") else f"{base}/" for base in map(str, bases))

    def fits(path: str, may_be_folder: bool) -> bool:
        for prefix in prefixes:
            if path.startswith(prefix):
                inner = path[len(prefix) :]
                if match(inner) or (may_be_folder and match(f"{inner}/")):
                    return True
        return False

    return fits


def _anchored(content: str, anchors: Anchors, base: Path | None) -> tuple[tuple[Path, ...], str]:
    """The folders that a pattern starts from, by name and by what links lead to, and the rest of it."""
    if content.startswith("//"):
        return (Path("/"),), content[1:]
    if content == "~" or content.startswith("~/"):
        return _both(anchors.home), content[1:] or "/**"
    if content.startswith("/"):
        return _both(base or anchors.root), content
    return _both(anchors.root), content.removeprefix("./") if content != "./" else "**"


def _both(folder: Path) -> tuple[Path, ...]:
    real = Path(os.path.realpath(folder))
    return (folder,) if real == folder else (folder, real)


def _parsed(texts: RuleTexts) -> Iterable[Rule]:
    lists: tuple[tuple[Behavior, tuple[str, ...]], ...] = (
        ("allow", texts.allow),
        ("ask", texts.ask),
        ("deny", texts.deny),
    )
    for behavior, rules in lists:
        for text in rules:
            yield parse_rule(text, behavior, texts.source, texts.base)


def _is_about(rule: Rule, tool: AnyTool, touches: _Touches) -> bool:
    """Which calls a rule speaks of: what may not be read may not be changed, what may be changed may be read.

    A path rule for one of the other file tools (`Write(…)`) denies and asks for that tool, and allows nothing.
    """
    if touches == "other":
        return names_tool(rule.tool, tool)
    if rule.tool == "Edit":
        return touches == "write" or (rule.behavior == "allow" and rule.content is not None)
    if rule.tool == "Read":
        return touches == "read" or rule.behavior == "deny"
    return names_tool(rule.tool, tool) and (rule.content is None or rule.behavior != "allow")


def _fits_name(rule: Rule, subject: NameSubject) -> bool:
    """A tool without a name of its own to compare: what would be denied or asked for one name is so for all."""
    if rule.content is None:
        return True
    if not subject.name:
        return rule.behavior != "allow"
    content = rule.content.strip()
    if content.startswith(PREFIX) or subject.name.startswith(PREFIX):
        return rule_fits(content, subject.name)
    return content == subject.name or pattern_of(content).fullmatch(subject.name) is not None
