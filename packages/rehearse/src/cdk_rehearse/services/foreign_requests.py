"""Rejects requests to moto's server that a foreign web page has caused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from constructs_triton_core.untrusted.web_pages import foreign_header

from ..replacement import wrapped
from .missing_operations import answer_as_aws

__all__ = ["HEADERS", "patches", "refusal"]

HEADERS = ("Host", "Origin", "Sec-Fetch-Site")
"""The headers that a refusal depends on."""

_HINT = "call the address of the simulated account"


def patches() -> list[Any]:
    """The patch of moto's application, which otherwise answers every host and origin."""
    return [wrapped(DomainDispatcherApplication, "__call__", _call)]


def refusal(headers: Mapping[str, str | None]) -> bytes | None:
    """Return the body of a refusal, or ``None`` for a request of this machine."""
    found = ([value] if (value := headers[name]) is not None else [] for name in HEADERS)
    wrong = foreign_header(*found)
    if wrong is None:
        return None
    return json.dumps({"__type": "AccessDeniedException", "message": f"{wrong}; {_HINT}"}).encode()


def _call(
    original: Callable[..., Any], application: Any, environ: dict[str, Any], start_response: Any
) -> Iterable[bytes]:
    body = refusal({name: environ.get(f"HTTP_{name.upper().replace('-', '_')}") for name in HEADERS})
    if body is None:
        return answer_as_aws(lambda start: original(application, environ, start), environ, start_response)
    content = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("403 Forbidden", content)
    return [body]
