"""Rejects requests that a foreign web page has caused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web

from constructs_triton_core.untrusted.web_pages import foreign_header
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError

__all__ = ["refuse_foreign_requests"]

_HEADERS = ("Host", "Origin", "Sec-Fetch-Site")


@web.middleware
async def refuse_foreign_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 unless the host, and the origin if there is one, are loopback."""
    headers = (request.headers.getall(name, []) for name in _HEADERS)
    wrong = foreign_header(*headers)
    if wrong is not None:
        message = f"{wrong}; call the address that `local up` prints"
        return RuntimeApiError(403, "AccessDeniedException", message).response()
    return await handler(request)
