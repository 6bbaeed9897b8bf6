"""Records the calls that the gateway answers, for a page that shows them.

A call costs one tuple. Nothing is counted or sorted until a page asks for the figures.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from constructs_triton_tools.local.gateway.gateway import CHOSEN
from constructs_triton_tools.local.gateway.multi_model import TARGET_MODEL_HEADER
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError

#: Calls that are kept while no page is open.
_MOST_CALLS = 20_000
_MOST_ERROR_BYTES = 8192
#: The status of an asynchronous call that was put into the queue.
_ACCEPTED = 202


class Call(NamedTuple):
    """A call that was answered.

    Args:
        endpoint: Name of the endpoint.
        target: The target model that the caller named, else the variant or component; empty if none was
            chosen.
        ended_at: Seconds since 1970.
        seconds: Time until the last byte of the response.
        status: HTTP status.
        error: Body of the response if it is an error, else empty.
        is_multi_model: Whether the caller named a target model.
    """

    endpoint: str
    target: str
    ended_at: float
    seconds: float
    status: int
    error: bytes
    is_multi_model: bool = False


class CallRecord:
    """Keeps the last calls until they are taken."""

    def __init__(self) -> None:
        self._calls: deque[Call] = deque(maxlen=_MOST_CALLS)

    def take(self) -> list[Call]:
        """Return the calls since the last time, oldest first."""
        calls = list(self._calls)
        self._calls.clear()
        return calls

    def add(self, call: Call) -> None:
        """Record a call."""
        self._calls.append(call)

    def add_queued(self, endpoint: str, target: str, seconds: float, error: RuntimeApiError | None) -> None:
        """Record an asynchronous call that has ended."""
        status, body = (200, b"") if error is None else (error.status, error.body())
        self.add(Call(endpoint, target, time.time(), seconds, status, body[:_MOST_ERROR_BYTES]))

    def middleware(self) -> Middleware:
        """Return the middleware that records each call of an endpoint."""

        @web.middleware
        async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not request.path.startswith("/endpoints/"):
                return await handler(request)
            start = time.perf_counter()
            response = await handler(request)
            seconds = time.perf_counter() - start
            if response.status == _ACCEPTED:  # the queued call is recorded when it has ended
                return response
            name = request.match_info.get("name", "")
            model = request.headers.get(TARGET_MODEL_HEADER)
            target = model or request.match_info.get(CHOSEN, "")
            error = _error(response)
            self.add(Call(name, target, time.time(), seconds, response.status, error, model is not None))
            return response

        return record


def _error(response: web.StreamResponse) -> bytes:
    if response.status < 400 or not isinstance(response, web.Response):
        return b""
    return response.body[:_MOST_ERROR_BYTES] if isinstance(response.body, bytes) else b""
