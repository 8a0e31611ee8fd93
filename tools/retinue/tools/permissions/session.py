"""What changes of an agent's rights while it works: the mode, and rules that a person gave."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from retinue.tools.permissions.decide import Mode
from retinue.tools.permissions.rules import Rule, RuleBook

if TYPE_CHECKING:
    from retinue.tools.permissions.chain import Rights


@dataclass(slots=True)
class Session:
    """Of one agent, for as long as its process lives.

    mode       takes the place of the mode of its own rights; None: theirs
    plan_file  while it plans, the one file that it may write
    before     the mode to go back to when the plan is approved
    root       where paths in rules start meanwhile: another worktree of the agent; None: where they always do
    """

    mode: Mode | None = None
    plan_file: Path | None = None
    before: Mode | None = None
    rules: tuple[Rule, ...] = ()
    root: Path | None = None
    _applied: dict[object, tuple[Rights, ...]] = field(default_factory=dict[object, "tuple[Rights, ...]"])

    @property
    def planning(self) -> bool:
        return self.mode == "plan"

    def enter_plan(self, plan_file: Path) -> None:
        """From here on only what reads, and changes of that file. Twice is once."""
        if not self.planning:
            self.before = self.mode
        self.mode, self.plan_file = "plan", Path(os.path.realpath(plan_file))

    def leave_plan(self, mode: Mode | None = None) -> None:
        """Back to the mode before, or to the one that a person chose. Nothing, when it does not plan."""
        if self.planning:
            self.mode, self.plan_file, self.before = mode or self.before, None, None

    def learn(self, rule: Rule) -> None:
        """A rule of a person's for the rest of this session."""
        if rule not in self.rules:
            self.rules = (*self.rules, replace(rule, source="session"))

    def applied(self, rights: tuple[Rights, ...]) -> tuple[Rights, ...]:
        """The rights as they are now. What a person said stands for all sets, the mode for the agent's own.

        The mode of the others still bounds it: who plans, and was started by one who may only read, may only read.
        """
        if self.mode is None and not self.rules and self.root is None:
            return rights
        key = (rights, self.mode, self.rules, self.root)
        found = self._applied.get(key)
        if found is None:
            self._applied.clear()
            found = self._applied[key] = tuple(self._now(each, own=n == 0) for n, each in enumerate(rights))
        return found

    def _now(self, rights: Rights, *, own: bool) -> Rights:
        mode = self.mode if own and self.mode is not None else rights.mode
        anchors = replace(rights.book.anchors, root=self.root) if self.root is not None else rights.book.anchors
        changed = bool(self.rules) or self.root is not None
        book = RuleBook((*rights.book.rules, *self.rules), anchors) if changed else rights.book
        return replace(rights, mode=mode, book=book, plan=self.plan_file)
