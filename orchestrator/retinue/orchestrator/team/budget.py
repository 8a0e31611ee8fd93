"""What the run and each agent may still use. Fails closed: no known price under a dollar limit is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retinue.agents.boot import AgentLimits
from retinue.agents.model.messages import Usage
from retinue.agents.ports import Reservation

Price = Callable[[str, Usage], float | None]


@dataclass(slots=True)
class Account:
    """What was used so far, and what is reserved for the one request in flight (tokens)."""

    limits: AgentLimits
    requests: int = 0
    tokens: int = 0
    usd: float = 0.0
    reserved_tokens: int = 0
    reserved_usd: float = 0.0

    def refusal(self, who: str, tokens: int, usd: float | None, elapsed_s: float) -> str:
        limits = self.limits
        if limits.requests is not None and self.requests + 1 > limits.requests:
            return f"{who} has used its {limits.requests} model requests (limits.turns)"
        if limits.tokens is not None and self.tokens + self.reserved_tokens + tokens > limits.tokens:
            return (
                f"{who} has used {self.tokens} of its {limits.tokens} tokens (limits.tokens); {tokens} more do not fit"
            )
        if limits.wall_s is not None and elapsed_s > limits.wall_s:
            return f"{who} has run for {elapsed_s:.0f} s of its {limits.wall_s:.0f} s (limits.wall)"
        if limits.usd is None:
            return ""
        if usd is None:
            return (
                f"{who} has a limit in dollars, and the model has no known price (limits.usd; "
                "write `usd: none` in the team's limits, and limit tokens instead)"
            )
        if self.usd + self.reserved_usd + usd > limits.usd:
            return f"{who} has used {self.usd:.2f} of its {limits.usd:.2f} USD (limits.usd)"
        return ""


@dataclass(slots=True)
class Budget:
    """Accounts of the run and of every agent, by agent id. One reservation per agent, settled by its next.

    sides  what is reserved for questions beside the conversations, by agent and key
    """

    run: Account
    price: Price
    agents: dict[str, Account] = field(default_factory=dict[str, Account])
    held: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    settled: dict[str, int] = field(default_factory=dict[str, int])
    granted: dict[str, tuple[int, Reservation]] = field(default_factory=dict[str, tuple[int, Reservation]])
    sides: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict[tuple[str, str], tuple[int, float]])
    sides_settled: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def open(self, agent: str, limits: AgentLimits) -> None:
        self.agents.setdefault(agent, Account(limits))

    def settle(self, agent: str, step: int, model: str, used: Usage) -> None:
        """Book what the request of `step` really used, once: told by the agent, or read from the ledger."""
        if self.settled.get(agent, 0) >= step:
            return
        self.settled[agent] = step
        self._release(agent)
        cost = self.price(model, used) or 0.0
        for account in (self.run, self.agents[agent]):
            account.tokens += used.total
            account.usd += cost

    def reserve(
        self, agent: str, step: int, model: str, tokens: int, elapsed_s: float, agent_elapsed_s: float
    ) -> Reservation:
        """Room for the request of `step`, about `tokens`, or the reason why not. A grant for a step stays."""
        known = self.granted.get(agent)
        if known is not None and known[0] == step:
            return known[1]
        self._release(agent)
        answer, cost = self._take(agent, model, tokens, elapsed_s, agent_elapsed_s)
        if answer.ok:
            self.held[agent] = (tokens, cost)
            self.granted[agent] = (step, answer)
        return answer

    def reserve_side(
        self, agent: str, key: str, model: str, tokens: int, elapsed_s: float, agent_elapsed_s: float
    ) -> Reservation:
        """The same for a question beside the conversation; several may be under way. A grant for a key stays."""
        side = (agent, key)
        if side in self.sides or side in self.sides_settled:
            return Reservation(ok=True)
        answer, cost = self._take(agent, model, tokens, elapsed_s, agent_elapsed_s)
        if answer.ok:
            self.sides[side] = (tokens, cost)
        return answer

    def settle_side(self, agent: str, key: str, model: str, used: Usage) -> None:
        """Book what it really used, once: told by the agent, or read from the ledger."""
        side = (agent, key)
        if side in self.sides_settled:
            return
        self.sides_settled.add(side)
        self._give_back(agent, self.sides.pop(side, (0, 0.0)))
        cost = self.price(model, used) or 0.0
        for account in (self.run, self.agents[agent]):
            account.tokens += used.total
            account.usd += cost

    def _take(
        self, agent: str, model: str, tokens: int, elapsed_s: float, agent_elapsed_s: float
    ) -> tuple[Reservation, float]:
        """Whether there is room, and what it would cost; then it is taken."""
        own = self.agents[agent]
        cost = self.price(model, Usage(input=tokens))
        text = self.run.refusal("the run", tokens, cost, elapsed_s) or own.refusal(agent, tokens, cost, agent_elapsed_s)
        if text:
            return Reservation(ok=False, text=text), 0.0
        for account in (self.run, own):
            account.requests += 1
            account.reserved_tokens += tokens
            account.reserved_usd += cost or 0.0
        return Reservation(ok=True), cost or 0.0

    def _release(self, agent: str) -> None:
        """Whoever asks for its next step, or begins anew, has no request under way."""
        self._give_back(agent, self.held.pop(agent, (0, 0.0)))
        for side in [side for side in self.sides if side[0] == agent]:
            self._give_back(agent, self.sides.pop(side))

    def _give_back(self, agent: str, held: tuple[int, float]) -> None:
        for account in (self.run, self.agents[agent]):
            account.reserved_tokens -= held[0]
            account.reserved_usd -= held[1]
