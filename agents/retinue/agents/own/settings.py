"""Implements `ConfigPort`: the few settings of one agent that can be looked at, and some that can be changed."""

from __future__ import annotations

from typing import get_args

from retinue.agents.boot import AgentBoot
from retinue.agents.model.messages import Wire
from retinue.agents.own.keeping import Kept
from retinue.tools.permissions.chain import PermissionPolicy
from retinue.tools.permissions.decide import Mode
from retinue.tools.system.ports import Setting

MODE, TIMEOUT, BASE_REF = "permissions.defaultMode", "askUserQuestionTimeout", "worktree.baseRef"
_MODES: tuple[Mode, ...] = ("default", "acceptEdits", "dontAsk")
"""Those that a call may ask for: `plan` has tools of its own, and bypassPermissions is for specs and flags alone."""
_TIMEOUTS: dict[str, float | None] = {"never": None, "60s": 60.0, "5m": 300.0, "10m": 600.0}


class Settings(Wire):
    """What was set, by name."""

    values: dict[str, str] = {}


class OwnSettings:
    def __init__(self, kept: Kept[Settings], boot: AgentBoot, policy: PermissionPolicy) -> None:
        self._kept = kept
        self._boot = boot
        self._policy = policy
        self._work()

    def settings(self) -> tuple[Setting, ...]:
        mode = self._policy.mode_now()
        return (
            Setting(name="model", value=self._boot.model, about="the model that answers"),
            Setting(
                name=MODE,
                value=mode,
                choices=() if mode == "plan" else _MODES,
                about="what may be done unasked",
            ),
            Setting(
                name=TIMEOUT,
                value=self._value(TIMEOUT, "never"),
                choices=tuple(_TIMEOUTS),
                about="how long a question waits for its answer",
            ),
            Setting(
                name=BASE_REF,
                value=self.base_ref,
                choices=("head", "tip"),
                about="where a new worktree of yours begins",
            ),
        )

    async def set(self, key: str, name: str, value: str) -> None:
        if self._kept.of_call(key) is None:
            last = self._kept.value
            await self._kept.keep(key, Settings(values={**(last.values if last is not None else {}), name: value}))
        self._work()

    @property
    def answer_s(self) -> float | None:
        """How long a question waits; None: for ever."""
        return _TIMEOUTS[self._value(TIMEOUT, "never")]

    @property
    def base_ref(self) -> str:
        return self._value(BASE_REF, "head")

    def _value(self, name: str, default: str) -> str:
        state = self._kept.value
        return default if state is None else state.values.get(name, default)

    def _work(self) -> None:
        """A mode that was set is that of the session. While it plans none can be set."""
        mode = next((each for each in get_args(Mode) if each == self._value(MODE, "")), None)
        if mode is not None and not self._policy.session.planning:
            self._policy.session.mode = mode
