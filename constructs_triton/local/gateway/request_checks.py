"""Rejects requests that a foreign web page has caused.

A web page cannot read from loopback by itself, but a browser sends its requests there: with the page's own
host name if that name resolves to 127.0.0.1 (DNS rebinding), and from any page with its ``Origin``.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from aiohttp import web

from constructs_triton.local.gateway.runtime_errors import RuntimeApiError

__all__ = ["refuse_foreign_requests"]

_LOOPBACK = r"(127\.0\.0\.1|localhost|\[::1\])(:\d{1,5})?"
_HOST = re.compile(_LOOPBACK, re.IGNORECASE)
_ORIGIN = re.compile(f"https?://{_LOOPBACK}", re.IGNORECASE)


@web.middleware
async def refuse_foreign_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 unless the host, and the origin if there is one, are loopback."""
    hosts, origins = request.headers.getall("Host", [""]), request.headers.getall("Origin", [])
    for name, values, pattern in (("Host", hosts, _HOST), ("Origin", origins, _ORIGIN)):
        for value in values:
            if not pattern.fullmatch(value):
                return _access_denied(name, value).response()
    return await handler(request)


def _access_denied(header: str, value: str) -> RuntimeApiError:
    return RuntimeApiError(
        403,
        "AccessDeniedException",
        f"{header}: must be 127.0.0.1, localhost or [::1], got {value[:100]!r}; "
        "call the address that `local up` prints",
    )
