"""The files of the pages, the headers of their responses, and the form of an event."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import PurePath

from aiohttp import web
from aiohttp.typedefs import Handler

#: No script, style, picture or connection of another host, and nothing inside the HTML.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
    "blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


def event(name: str, data: object) -> bytes:
    """Return a server-sent event with the data as one line of JSON."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


@web.middleware
async def secure(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the headers of the pages to each response, also to errors."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        error.headers.update(HEADERS)
        raise
    if not response.prepared:
        response.headers.update(HEADERS)
    return response


class PageFiles:
    """Serves the files of the package's folder ``static``; ``index`` is the HTML of the page."""

    def __init__(self, index: str) -> None:
        folder = files("constructs_triton_tools.local.page") / "static"
        self._files = {
            file.name: file.read_bytes()
            for file in folder.iterdir()
            if PurePath(file.name).suffix in _TYPES
        }
        self._index = index

    async def serve(self, request: web.Request) -> web.Response:
        """Answer with the file that the path names."""
        name = request.match_info["name"] or self._index
        if name not in self._files:
            raise web.HTTPNotFound
        kind = _TYPES[PurePath(name).suffix]
        return web.Response(body=self._files[name], content_type=kind, charset="utf-8")

    def add_to(self, application: web.Application) -> None:
        """Add the route of the files."""
        application.router.add_get("/{name:[a-zA-Z0-9._-]*}", self.serve)
