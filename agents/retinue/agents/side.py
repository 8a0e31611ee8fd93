"""Small questions beside an agent's conversation: to a small model, or to a provider that searches the web itself.

Each is one request of its own, without tools and without the conversation. It counts in the budgets of agent and run,
and its answer is recorded, so that a replay has it.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from retinue.agents.boot import AgentBoot
from retinue.agents.journal import Journal
from retinue.agents.model.messages import TextBlock, Usage, UserMessage
from retinue.agents.model.port import (
    BlockDone,
    Broken,
    MessageDone,
    ModelPort,
    ModelRequest,
    SearchFound,
    digest_of,
    prompt_of,
)
from retinue.agents.ports import BudgetPort
from retinue.agents.records import SideAnswered
from retinue.agents.tokens import estimate_tokens
from retinue.agents.turn import Again, RetryPolicy, after_break
from retinue.tools.errors import RetinueError, ToolError
from retinue.tools.ports import SearchAnswer, SearchHit, SearchQuery

SIDE_S = 120.0
"""How long an answer may take, with all attempts at it: a tool waits for it, and its agent for the tool."""
ATTEMPTS = RetryPolicy(attempts=3, total_s=SIDE_S)
SEARCH_TOKENS = 2_000
"""Of an answer to a search: what the provider says beside its hits."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What one request came to. `failed`: why the provider's search found nothing, in its own words."""

    text: str = ""
    usage: Usage = field(default_factory=Usage)
    hits: tuple[SearchHit, ...] = ()
    failed: str = ""


class SideQuestions:
    """Implements `SideQueryPort` and `ServerSearchPort` over the models of the run."""

    def __init__(
        self,
        boot: AgentBoot,
        model: ModelPort,
        budget: BudgetPort,
        journal: Journal,
        *,
        deadline_s: float = SIDE_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._boot = boot
        self._model = model
        self._budget = budget
        self._journal = journal
        self._deadline_s = deadline_s
        self._clock = clock
        self._sleep = sleep
        self._chance = chance
        self._keys: Iterator[int] = itertools.count(1)

    async def ask(self, prompt: str, *, system: str = "", max_tokens: int = 4_096) -> str:
        return (await self._answer(self._request(prompt, system, max_tokens))).text

    async def server_search(self, query: SearchQuery) -> SearchAnswer:
        prompt = f"Search the web for: {query.query}"
        answer = await self._answer(self._request(prompt, "", SEARCH_TOKENS, query))
        if answer.failed and not answer.hits:
            raise ToolError(f"The model provider's search failed: {answer.failed}.")
        return SearchAnswer(hits=answer.hits, text=answer.text)

    def _request(self, prompt: str, system: str, max_tokens: int, search: SearchQuery | None = None) -> ModelRequest:
        return ModelRequest(
            run=self._boot.run,
            agent=self._boot.name,
            model=self._boot.small_model or self._boot.model,
            system=system,
            messages=(UserMessage(content=(TextBlock(text=prompt),)),),
            max_tokens=max_tokens,
            side=True,
            search=search,
        )

    async def _answer(self, request: ModelRequest) -> Answer:
        """ToolError when there is none. What it used is booked and recorded in any case."""
        key = f"{self._boot.incarnation}.{next(self._keys)}"
        tokens = estimate_tokens(request.system) + estimate_tokens(prompt_of(request)) + request.max_tokens
        granted = await self._budget.reserve_side(key, request.model, tokens)
        if not granted.ok:
            raise ToolError(f"No question to the model is possible: {granted.text}.")
        answer = Answer()
        try:
            async with asyncio.timeout(self._deadline_s):
                answer = await self._patiently(request)
        except TimeoutError:
            raise ToolError(f"The model did not answer within {self._deadline_s:.0f} s.") from None
        finally:
            await asyncio.shield(asyncio.ensure_future(self._book(key, request, answer)))
        return answer

    async def _patiently(self, request: ModelRequest) -> Answer:
        began = self._clock()
        for attempt in itertools.count():
            heard = await self._listen(request.model_copy(update={"attempt": attempt}))
            if isinstance(heard, Answer):
                return heard
            verdict = after_break(ATTEMPTS, heard, attempt + 1, self._clock() - began, self._chance())
            if not isinstance(verdict, Again):
                raise ToolError(f"The model gave no answer: {heard.message}.")
            await self._sleep(verdict.after_s)
        raise AssertionError("attempts are counted without end")

    async def _listen(self, request: ModelRequest) -> Answer | Broken:
        texts: list[str] = []
        hits: list[SearchHit] = []
        failed = ""
        async for event in self._model.stream(request):
            match event:
                case BlockDone(block=TextBlock(text=text)):
                    texts.append(text)
                case SearchFound():
                    hits += event.hits
                    failed = event.failed or failed
                case MessageDone(usage=usage):
                    return Answer("".join(texts), usage, tuple(hits), failed)
                case Broken():
                    return event
                case _:
                    continue
        return Broken(reason="truncated", message="the stream ended before its message")

    async def _book(self, key: str, request: ModelRequest, answer: Answer) -> None:
        """The budget hears of it first or, when it cannot be reached, from the ledger at its next start."""
        record = SideAnswered(
            key=key,
            digest=digest_of(request),
            text=answer.text,
            hits=answer.hits,
            usage=answer.usage,
            model=request.model,
        )
        await self._journal.write(record)
        try:
            await self._budget.settle_side(key, request.model, answer.usage)
        except RetinueError:
            return
