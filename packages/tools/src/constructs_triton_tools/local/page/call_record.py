"""Records the calls that the gateway answers, for a page that shows them.

A call costs one tuple. Nothing is counted or sorted until a page asks for the figures.

Decides whether a failed call is the fault of its request, of its model or of the server.

This is the only place with that rule. The status alone does not say it. Of the real server 24.10:

======================================  ======================  =========================
call                                    single-model container  multi-model container
======================================  ======================  =========================
``execute`` of a Python model raises    500                     400
``TritonError`` without a code          500                     400
``TritonError`` with ``INVALID_ARG``    400                     400
malformed JSON, missing member          500                     400
wrong name, data type, shape or batch   400                     400
======================================  ======================  =========================

So the text decides first: Triton refuses a request with a text of the catalogue (``is_refusal`` in
``constructs_triton_core/facts/failures.json``), and begins with "in ensemble" only after the
request was accepted. In the statistics of the server, a ``TritonError`` is a success of its model,
and an error of a step counts twice for the ensemble, so they cannot decide.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.facts.failures import known_failures
from constructs_triton_tools.local.gateway.gateway import CHOSEN
from constructs_triton_tools.local.gateway.multi_model import TARGET_MODEL_HEADER
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton_tools.operations.diagnosis import Message, recognize

#: Calls that are kept while no page is open.
_MOST_CALLS = 20_000
_MOST_ERROR_BYTES = 8192
#: The status of an asynchronous call that was put into the queue.
_ACCEPTED = 202
_REQUEST_ID = re.compile(r"\[request id: [^\]]{0,200}\] ")
#: SageMaker's own message about an archive, which is no fault of the request.
_BAD_ARCHIVE = "Failed to extract model data archive"
_NAMES_STEP = re.compile(
    r"Failed to process the request\(s\) for model '(?P<raised>[^']+)'"
    r"|Stub process(?: '(?P<ended>[^']+)')? is (?:not healthy|unhealthy)"
    r"|(?:for model|but model|must be <= \d+ for) '(?P<refused>[^']+)'"
)


class Call(NamedTuple):
    """A call that was answered.

    Args:
        endpoint: Name of the endpoint.
        target: The target model that the caller named, else the variant or component; empty if none
            was chosen.
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

    def add_queued(
        self, endpoint: str, target: str, seconds: float, error: RuntimeApiError | None
    ) -> None:
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
            self.add(
                Call(name, target, time.time(), seconds, response.status, error, model is not None)
            )
            return response

        return record


def _error(response: web.StreamResponse) -> bytes:
    if response.status < 400 or not isinstance(response, web.Response):
        return b""
    return response.body[:_MOST_ERROR_BYTES] if isinstance(response.body, bytes) else b""


class Fault(StrEnum):
    """What a failed call is the fault of.

    The server is at fault if it did not receive the call, for example because it is starting.
    """

    REQUEST = "request"
    MODEL = "model"
    SERVER = "server"


def fault_of(status: int, error: bytes, *, is_multi_model: bool) -> Fault:
    """Return what a call is the fault of that was answered with an error.

    A ``TritonError`` with ``INVALID_ARG`` blames the request, if the container passes its code on.
    Any other error that the catalogue does not know is the model's own.

    ``error`` is the body of the response, whose ``status`` is at least 400. A multi-model container
    has one status for all errors.
    """
    original = original_status(error)
    message = original_message(error)
    if original is None:
        if message.startswith(_BAD_ARCHIVE):
            return Fault.MODEL
        return Fault.REQUEST if status < 500 and status != 429 else Fault.SERVER
    return _fault_of_answer(message, may_blame_request=400 <= original < 500 and not is_multi_model)


@lru_cache(maxsize=256)
def _fault_of_answer(message: str, *, may_blame_request: bool) -> Fault:
    text = _REQUEST_ID.sub("", message, count=1)
    if any(failure.is_refusal and failure.pattern.match(text) for failure in known_failures()):
        return Fault.REQUEST
    if may_blame_request and recognize(Message(message, "the response", is_log=True)) is None:
        return Fault.REQUEST
    return Fault.MODEL


def failed_step(message: str, models: Iterable[str]) -> str:
    """Return the model that an error names, of those of a server; empty if it names none.

    The Python backend names an instance of a model, such as ``resize_0`` or ``resize_0_1``.
    """
    match = _NAMES_STEP.search(message)
    named = "" if match is None else next(filter(None, match.groups()), "")
    fitting = [model for model in models if re.fullmatch(re.escape(model) + r"(_\d+){0,2}", named)]
    return max(fitting, key=len, default="")


def original_status(error: bytes) -> int | None:
    """Return the status of the container in an error of it, 0 if it did not answer;
    ``None`` for others.
    """
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
