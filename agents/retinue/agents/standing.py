"""How an agent stands, for all who look: the newest status, told to the team when it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from retinue.agents.boot import AgentBoot, AgentStatus
from retinue.agents.history import Conversation
from retinue.agents.ports import StatusPort
from retinue.tools.shell.background.words import title

State = Literal["starting", "working", "waiting", "idle", "stopped", "failed"]


class Standing:
    """`out_of_reach`: the unread mail will not be read before something changes, so it keeps nobody waiting."""

    def __init__(
        self,
        boot: AgentBoot,
        conversation: Conversation,
        port: StatusPort,
        alive: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        self._boot = boot
        self._conversation = conversation
        self._port = port
        self._alive = alive
        self._state: State = "starting"
        self._detail = ""
        self._blocked = ""
        self._out_of_reach = False
        self._asleep = False

    def status(self) -> AgentStatus:
        conversation = self._conversation
        return AgentStatus(
            agent=self._boot.agent,
            incarnation=self._boot.incarnation,
            state="waiting" if self._blocked else self._state,
            detail=self._blocked or self._detail,
            turn=conversation.turn,
            step=conversation.step,
            unread=0 if self._out_of_reach else conversation.mailbox.unread,
            alive=self._alive(),
            asleep=self._asleep,
            background={task.id: title(task) for task in conversation.background.running()},
        )

    def report(self, state: State, detail: str = "", *, out_of_reach: bool = False) -> None:
        self._state, self._detail, self._out_of_reach = state, detail, out_of_reach
        self._port.report(self.status())

    def sleeps(self, seconds: float) -> None:
        """Until `wakes`. Whatever else it does beside that shows as work: then it does not sleep."""
        self._asleep = True
        self.report("waiting", f"sleeps up to {seconds:g} s")

    def wakes(self) -> None:
        self._asleep = False
        self.report("working")

    def begins(self) -> None:
        """From here on it does not rest, whoever asks; the report follows with the number of the step."""
        self._state, self._detail, self._out_of_reach = "working", "", False

    def has_new_mail(self) -> None:
        """What could not be read before may be readable now."""
        self._out_of_reach = False

    def blocked(self, by: str) -> None:
        """Covers the state until it is lifted with an empty text."""
        if by != self._blocked:
            self._blocked = by
            self._port.report(self.status())
