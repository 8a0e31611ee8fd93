"""Implements `WorktreeGit`: an agent's further worktrees, made and removed by its own shell, rescued into the Depot."""

from __future__ import annotations

from dataclasses import dataclass

from retinue.agents.boot import AgentBoot
from retinue.orchestrator.merging.submission import Place, place_of
from retinue.orchestrator.runtime.agent_side import AgentShell
from retinue.orchestrator.runtime.beside_scripts import (
    SAVED,
    Beside,
    loss_script,
    make_script,
    parse,
    parse_loss,
    remove_script,
    save_script,
)
from retinue.orchestrator.workspaces import names
from retinue.orchestrator.workspaces.depot import Depot
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.system.ports import WorktreeLoss, WorktreePlace
from retinue.tools.system.worktrees import is_name

_PARTS: tuple[str, ...] = ("files", "branch")


@dataclass(frozen=True, slots=True)
class AgentWorktrees:
    boot: AgentBoot
    as_agent: AgentShell
    depot: Depot

    def kept(self) -> tuple[WorktreePlace, ...]:
        folder = self.depot.paths.beside(self.boot.agent)
        try:
            found = sorted(
                each.name for each in folder.iterdir() if not each.is_symlink() and (each / ".git").is_file()
            )
        except OSError:
            return ()
        return tuple(_place(self._beside(name)) for name in found if is_name(name.replace("+", "/")))

    async def make(self, name: str, base: str) -> WorktreePlace:
        beside = self._beside(name)
        start = await self.depot.tip() if base == "tip" else "HEAD"
        parse(await self._run(make_script(self._home(), beside, start)), f"The worktree {name} was not made")
        return _place(beside)

    async def loss(self, place: WorktreePlace) -> WorktreeLoss:
        said = await self._run(loss_script(self._beside(place.name)))
        return parse_loss(said, f"What the worktree {place.name} holds cannot be told")

    async def rescue(self, place: WorktreePlace) -> tuple[str, ...]:
        """Raises ToolError where it cannot be promised: then nothing may be removed."""
        agent, beside = self.boot.agent, self._beside(place.name)
        said = parse(await self._run(save_script(beside)), f"What the worktree {place.name} holds cannot be saved")
        if len(said) != len(_PARTS) or not all(map(names.is_sha, said)):
            raise ToolError(f"What the worktree {place.name} holds cannot be saved: git named no commits.")
        saved = {part: sha for part, sha in zip(_PARTS, said, strict=True)}
        wanted = {f"{names.rescue_prefix(agent)}/beside/{beside.name}/{part}": part for part in saved}
        try:
            await self.depot.fetch_from_agent(
                agent,
                [f"+{SAVED}/{beside.name}/{part}:{ref}" for ref, part in wanted.items()],
                purpose=f"rescuing the worktree {beside.name} of {agent}",
            )
            arrived = {ref: await self.depot.commit_of(ref) for ref in wanted}
        except RetinueError as error:
            raise ToolError(f"What the worktree {place.name} holds cannot be saved: {error}") from None
        if any(arrived[ref] != saved[part] for ref, part in wanted.items()):
            raise ToolError(f"What the worktree {place.name} holds cannot be saved: it did not arrive whole.")
        return tuple(wanted)

    async def remove(self, place: WorktreePlace) -> None:
        script = remove_script(self._home(), self._beside(place.name))
        parse(await self._run(script), f"The worktree {place.name} was not removed")

    def _home(self) -> Place:
        return place_of(self.depot.workspace(self.boot.agent))

    def _beside(self, name: str) -> Beside:
        agent = self.boot.agent
        return Beside.of(self.depot.paths.beside(agent), self.boot.run, agent, name)

    async def _run(self, script: str) -> str:
        return await self.as_agent.run(script, "worktree")


def _place(beside: Beside) -> WorktreePlace:
    return WorktreePlace(name=beside.name, path=str(beside.path), branch=beside.branch)
