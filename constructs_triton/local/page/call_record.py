"""Records the calls that the gateway answers, for a page that shows them.

A call costs one tuple. Nothing is counted or sorted until a page asks for the figures.
"""

from __future__ import annotations

import time
from collections import deque
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from constructs_triton.local.gateway.gateway import CHOSEN
from constructs_triton.local.gateway.multi_model import TARGET_MODEL_HEADER
from constructs_triton_client.bounded_json import parse_bounded_json

__all__ = ["Call", "CallRecord", "original_message", "original_status"]

#: Calls that are kept while no page is open.
_MOST_CALLS = 20_000
_MOST_ERROR_BYTES = 8192


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
    """

    endpoint: str
    target: str
    ended_at: float
    seconds: float
    status: int
    error: bytes


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

    def middleware(self) -> Middleware:
        """Return the middleware that records each call of an endpoint."""

        @web.middleware
        async def record(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not request.path.startswith("/endpoints/"):
                return await handler(request)
            start = time.perf_counter()
            response = await handler(request)
            seconds = time.perf_counter() - start
            name = request.match_info.get("name", "")
            target = request.headers.get(TARGET_MODEL_HEADER) or request.match_info.get(CHOSEN, "")
            self.add(Call(name, target, time.time(), seconds, response.status, _error(response)))
            return response

        return record


def _error(response: web.StreamResponse) -> bytes:
    if response.status < 400 or not isinstance(response, web.Response):
        return b""
    return response.body[:_MOST_ERROR_BYTES] if isinstance(response.body, bytes) else b""


def original_status(error: bytes) -> int | None:
    """Return the status of the container in an error of it, 0 if it did not answer; ``None`` for others."""
    try:
        return int(parse_bounded_json(error)["OriginalStatusCode"])
    except (ValueError, KeyError, TypeError):
        return None


def original_message(error: bytes) -> str:
    """Return the message of an error response: the container's own words if it has them."""
    try:
        members = parse_bounded_json(error)
        found = members.get("OriginalMessage") or members.get("Message") or ""
    except (ValueError, AttributeError):
        return error.decode("utf-8", "replace")
    return _unwrapped(str(found))


def _unwrapped(message: str) -> str:
    """Return the text of ``{"error": TEXT}``, Triton's form of an error."""
    try:
        return str(parse_bounded_json(message)["error"])
    except (ValueError, KeyError, TypeError):
        return message
