"""Rejects requests to moto's server that a foreign web page has caused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from constructs_triton.untrusted.web_pages import foreign_header

from ..replacement import replaced

__all__ = ["HEADERS", "patches", "refusal"]

HEADERS = ("Host", "Origin", "Sec-Fetch-Site")
"""The headers that a refusal depends on."""

_HINT = "call the address of the simulated account"


def patches() -> list[Any]:
    """The patch of moto's application, which otherwise answers every host and origin."""
    return [replaced(DomainDispatcherApplication, "__call__", _checking())]


def refusal(headers: Mapping[str, str | None]) -> bytes | None:
    """Return the body of a refusal, or ``None`` for a request of this machine."""
    found = ([value] if (value := headers[name]) is not None else [] for name in HEADERS)
    wrong = foreign_header(*found)
    if wrong is None:
        return None
    return _fault("AccessDeniedException", f"{wrong}; {_HINT}")


def _fault(name: str, message: str) -> bytes:
    return json.dumps({"__type": name, "message": message}).encode()


def _answer(start_response: Any, status: str, body: bytes) -> list[bytes]:
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]


def _checking() -> Callable[..., Iterable[bytes]]:
    original = DomainDispatcherApplication.__call__

    def call(application: Any, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = refusal({name: environ.get(_variable(name)) for name in HEADERS})
        if body is None:
            try:
                answer: Iterable[bytes] = original(application, environ, start_response)
            except NotImplementedError as error:  # moto does not have this operation
                return _answer(start_response, "501 Not Implemented", _fault("NotImplemented", str(error)))
            return answer
        return _answer(start_response, "403 Forbidden", body)

    return call


def _variable(header: str) -> str:
    return f"HTTP_{header.upper().replace('-', '_')}"
