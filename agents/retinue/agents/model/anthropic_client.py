"""The Messages API, or any server that speaks it, behind the model port. The only module that loads `anthropic`.

It loads it at the first request: the import takes more than a second, and many processes never ask.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from retinue.agents.model.anthropic_request import body_of
from retinue.agents.model.anthropic_stream import StreamFold
from retinue.agents.model.breaks import reason_of_status, reason_of_type
from retinue.agents.model.media import chosen, load
from retinue.agents.model.port import Broken, ModelRequest, StreamEvent

if TYPE_CHECKING:
    from anthropic import APIStatusError, AsyncAnthropic
    from anthropic.types.message_create_params import MessageCreateParamsStreaming

OFFICIAL = "https://api.anthropic.com"
_LONGEST_MESSAGE = 600
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
# A server of one's own may want no key, and the library refuses to ask without one (or takes one from the environment).
_NO_KEY = "none"


class AnthropicModel:
    """One credential, one server, any number of agents and requests at once; bound to the event loop of its first use.

    Nothing is retried here. Neither key nor token gets into the text of an error.
    """

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        auth_token: str | None = None,
        connect_timeout_s: float = 10.0,
        read_timeout_s: float = 90.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._name = name
        self._base_url = (base_url or OFFICIAL).rstrip("/").removesuffix("/v1")
        self._api_key = api_key or (None if auth_token else _NO_KEY)
        self._auth_token = None if api_key else auth_token
        self._secrets = [secret for secret in (api_key, auth_token) if secret]
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._now = now
        self._client: AsyncAnthropic | None = None
        self._opening = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """As `ModelPort.stream`. Closing the iterator, or cancelling, closes the connection."""
        fold = StreamFold(request.model)
        try:
            client = await self._opened()
            media = chosen(request.messages)
            loaded = await asyncio.to_thread(load, media) if media else {}
            body = {**body_of(request, request.model.partition(":")[2] or self._name, loaded), "stream": True}
            async with await client.messages.create(**cast("MessageCreateParamsStreaming", body)) as stream:
                async for event in stream:
                    for meant in fold.feed(event):
                        yield meant
                    if fold.done:
                        return
        except Exception as error:
            yield self._broken(error)
            return
        yield Broken(reason="truncated", message="the server closed the stream before the end of the message")

    async def aclose(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def _opened(self) -> AsyncAnthropic:
        async with self._opening:
            if self._client is None:
                # In a thread, so that other agents of this process are served meanwhile.
                await asyncio.to_thread(__import__, "anthropic")
                self._client = self._new_client()
            return self._client

    def _new_client(self) -> AsyncAnthropic:
        """The key goes as a bearer token; to a server of one's own also in the older header, which many read alone."""
        import anthropic
        import httpx2

        parts = urlsplit(self._base_url)
        older = {"x-api-key": self._api_key} if self._api_key and self._base_url != OFFICIAL else None
        return anthropic.AsyncAnthropic(
            api_key=self._api_key,
            auth_token=self._auth_token,
            base_url=self._base_url,
            max_retries=0,
            timeout=httpx2.Timeout(_LONGEST_MESSAGE, connect=self._connect_timeout_s, read=self._read_timeout_s),
            default_headers=older,
            http_client=anthropic.DefaultAsyncHttpxClient(trust_env=parts.hostname not in _LOOPBACK),
        )

    def _broken(self, error: Exception) -> Broken:
        """Every way to fail as data; the library's own exceptions end here."""
        import anthropic
        import httpx2

        match error:
            case anthropic.APIStatusError():
                return self._refused(error)
            case anthropic.APIConnectionError() | httpx2.TransportError():
                cause = error.__cause__ or error
                text = f"connection to {self._base_url}: {_named(cause)}"
                return Broken(reason="dropped", message=self._safe(text))
            case anthropic.APIError() | ValueError() | httpx2.HTTPError():
                text = f"{self._base_url} sent what is no stream of events: {_named(error)}"
                return Broken(reason="server_error", message=self._safe(text))
            case _:
                return Broken(reason="invalid_request", message=self._safe(f"the request failed: {_named(error)}"))

    def _refused(self, error: APIStatusError) -> Broken:
        """An error in mid-stream comes with the status 200 of the stream, so the type decides before the status."""
        by_type = reason_of_type(error.type)
        in_stream = error.status_code < 400
        reason = by_type if by_type and (in_stream or by_type == "expectation") else None
        if reason is None:
            reason = "server_error" if in_stream else reason_of_status(error.status_code)
        where = "in mid-stream" if in_stream else f"status {error.status_code}"
        text = f"{error.api_message or error.message} ({error.type or 'no type'}, {where})"
        wish = None if in_stream else retry_after_s(error.response.headers, self._now())
        return Broken(reason=reason, message=self._safe(text), retry_after_s=wish)

    def _safe(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text if len(text) <= 1_000 else f"{text[:1_000]}…"


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """What the server asks for, in milliseconds, seconds or as a date; None when there is nothing that can be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            return max(0.0, float(headers[name]) * unit)
        except (KeyError, ValueError):
            continue
    try:
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now)
    except (KeyError, ValueError):
        return None


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
