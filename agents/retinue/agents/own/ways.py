"""What one agent has of its own beside its conversation, put together from its records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from retinue.agents.boot import AgentBoot
from retinue.agents.journal import Journal, Sleep
from retinue.agents.own.keeping import Kept
from retinue.agents.own.plan_mode import Planning, PlanState
from retinue.agents.own.settings import OwnSettings, Settings
from retinue.agents.own.todos import Todos, TodoState
from retinue.agents.own.waiting import Asked, Waiting
from retinue.agents.own.worktrees import HomeBoard, WorktreeGit, Worktrees, WorktreeState
from retinue.agents.standing import Standing
from retinue.tools.base import ToolContext
from retinue.tools.people.ports import HumanPort
from retinue.tools.permissions.chain import PermissionPolicy

PLAN_FILE = "plan.md"


@dataclass(frozen=True, slots=True)
class Ways:
    """`worktrees` is None for an agent without a repository of its own, `human` where nobody can be asked."""

    todos: Todos
    planning: Planning
    settings: OwnSettings
    waiting: Waiting
    human: HumanPort | None
    worktrees: Worktrees | None
    reminded: bool = True

    def reminders(self, request: int) -> tuple[str, ...]:
        """What is said beside the request of that number."""
        said = (self.planning.reminder(request) if self.reminded else "", self.todos.reminder(request))
        return tuple(f"<system-reminder>\n{text}\n</system-reminder>" for text in said if text)

    def into(self, context: ToolContext) -> ToolContext:
        """The context of tools that use them."""
        given = replace(
            context,
            todos=self.todos,
            plan=self.planning,
            config=self.settings,
            waiting=self.waiting,
            human=self.human,
            worktrees=self.worktrees,
        )
        if self.worktrees is None:
            return given
        board = HomeBoard(context.board, self.worktrees) if context.board is not None else None
        return replace(given, board=board, cwd=self.worktrees.root, root=self.worktrees.root)


def ways_of(
    boot: AgentBoot,
    journal: Journal,
    standing: Standing,
    policy: PermissionPolicy,
    own_files: Path,
    sleep: Sleep,
    human: HumanPort | None,
    git: WorktreeGit | None,
) -> Ways:
    """`own_files` is the folder of the run in which the agent may always read."""
    settings = OwnSettings(Kept(journal, "settings", Settings), boot, policy)
    asked = Asked(human, standing, lambda: settings.answer_s) if human is not None else None
    planning = Planning(Kept(journal, "plan", PlanState), policy, own_files / PLAN_FILE, asked)
    home = Path(boot.workspace.root)
    kept = Kept(journal, "worktree", WorktreeState)
    worktrees = (
        Worktrees(kept, git, home, lambda: settings.base_ref, _anchor(policy, home)) if git is not None else None
    )
    waiting = Waiting(journal.conversation.mailbox, standing, sleep)
    todos = Todos(Kept(journal, "todos", TodoState))
    return Ways(todos, planning, settings, waiting, asked, worktrees, reminded=boot.role != "child")


def _anchor(policy: PermissionPolicy, home: Path) -> Callable[[Path], None]:
    """Rules for paths hold where the agent is: what they keep it from at home they keep it from there, too."""

    def moved(root: Path) -> None:
        policy.session.root = root if root != home else None

    return moved
