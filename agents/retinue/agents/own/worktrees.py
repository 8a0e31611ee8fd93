"""Implements `WorktreePort`: which worktree an agent is in, from its records; what git does is asked of below."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from retinue.agents.model.messages import Wire
from retinue.agents.own.keeping import Kept
from retinue.tools.errors import ToolError
from retinue.tools.ports import BoardPort, TaskAnswer, TaskChange, TaskDraft, TaskView
from retinue.tools.system.ports import WorktreeLeft, WorktreeLoss, WorktreePlace
from retinue.tools.system.worktrees import loss_text


class WorktreeGit(Protocol):
    """Worktrees beside an agent's own, as git has them. ToolError: git said no."""

    def kept(self) -> tuple[WorktreePlace, ...]: ...

    async def make(self, name: str, base: str) -> WorktreePlace:
        """On a branch of its own at `head` or `tip`; the one of that name when there is one."""
        ...

    async def loss(self, place: WorktreePlace) -> WorktreeLoss: ...

    async def rescue(self, place: WorktreePlace) -> tuple[str, ...]:
        """Make all that it has reachable from the run's Depot; the refs that hold it."""
        ...

    async def remove(self, place: WorktreePlace) -> None:
        """Worktree and branch; twice is once."""
        ...


class WorktreeState(Wire):
    """`place` is where the agent is, None at home; `left` is how it came back, and from where."""

    place: WorktreePlace | None = None
    left: WorktreeLeft | None = None


class Worktrees:
    """`moved` is told of the root after each change. A place that is gone counts as left."""

    def __init__(
        self,
        kept: Kept[WorktreeState],
        git: WorktreeGit,
        home: Path,
        base: Callable[[], str],
        moved: Callable[[Path], None],
    ) -> None:
        self._kept = kept
        self._git = git
        self._home = home
        self._base = base
        self._moved = moved
        moved(self.root)

    @property
    def current(self) -> WorktreePlace | None:
        state = self._kept.value
        place = state.place if state is not None else None
        return place if place is not None and Path(place.path).is_dir() else None

    @property
    def home(self) -> Path:
        return self._home

    @property
    def root(self) -> Path:
        """Where the agent works now."""
        place = self.current
        return self._home if place is None else Path(place.path)

    def kept(self) -> tuple[WorktreePlace, ...]:
        return self._git.kept()

    async def enter(self, key: str, name: str | None, *, anew: bool) -> WorktreePlace:
        same = self._kept.of_call(key)
        if same is not None and same.place is not None:
            return same.place
        if anew and self.current is not None:
            raise ToolError(
                f"You are in the worktree {self.current.name}: leave it with ExitWorktree first, or go to another that "
                "you kept by its `path`."
            )
        place = await self._git.make(name or _made_up(key), self._base())
        await self._kept.keep(key, WorktreeState(place=place))
        self._moved(self.root)
        return place

    async def loss(self) -> WorktreeLoss:
        place = self.current
        return WorktreeLoss() if place is None else await self._git.loss(place)

    async def leave(self, key: str, *, remove: bool, discard: bool) -> WorktreeLeft | None:
        """What is rescued, and where the agent is, is recorded before anything is removed."""
        same = self._kept.of_call(key)
        left = same.left if same is not None else None
        if left is None:
            place = self.current
            if place is None:
                return None
            left = await self._parting(place, remove=remove, discard=discard)
            await self._kept.keep(key, WorktreeState(left=left))
            self._moved(self.root)
        return await self._gone(left) if left.removed else left

    async def _parting(self, place: WorktreePlace, *, remove: bool, discard: bool) -> WorktreeLeft:
        loss = await self._git.loss(place) if remove else WorktreeLoss()
        lost = loss_text(loss)
        if lost and not discard:
            raise ToolError(f"The worktree {place.name} has {lost} by now: it is not removed, and you are still in it.")
        rescued = await self._git.rescue(place) if lost else ()
        return WorktreeLeft(place=place, removed=remove, home=str(self._home), loss=loss, rescued=rescued)

    async def _gone(self, left: WorktreeLeft) -> WorktreeLeft:
        try:
            await self._git.remove(left.place)
        except ToolError:
            return left.model_copy(update={"removed": False})
        return left


@dataclass(frozen=True, slots=True)
class HomeBoard:
    """Implements `BoardPort` over another: work is handed in from the agent's own worktree, and nowhere else."""

    board: BoardPort
    worktrees: Worktrees

    async def create(self, key: str, draft: TaskDraft) -> TaskAnswer:
        return await self.board.create(key, draft)

    async def update(self, key: str, change: TaskChange) -> TaskAnswer:
        place = self.worktrees.current
        if place is not None and change.status == "completed":
            text = (
                f"You are in the worktree {place.name}, and work is handed in from your first one. Commit here, leave "
                f"with ExitWorktree (keep), `git merge {place.branch}` there, and complete the task again."
            )
            return TaskAnswer(ok=False, text=text)
        return await self.board.update(key, change)

    async def get(self, task_id: str) -> TaskView | None:
        return await self.board.get(task_id)

    async def list(self) -> tuple[TaskView, ...]:
        return await self.board.list()


_FIRST = ("amber", "brisk", "calm", "dusky", "eager", "frosty", "gentle", "hazel", "ivory", "jolly", "keen", "lunar")
_SECOND = ("birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "meadow", "otter", "ridge", "willow")


def _made_up(key: str) -> str:
    """Two words and a number: the same for the same call."""
    digest = hashlib.sha256(key.encode()).digest()
    return f"{_FIRST[digest[0] % len(_FIRST)]}-{_SECOND[digest[1] % len(_SECOND)]}-{digest[2]:02x}{digest[3]:02x}"
