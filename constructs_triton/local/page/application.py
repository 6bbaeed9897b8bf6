"""The web application of the page: its files, the forms, and the figures as server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import PurePath

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from constructs_triton.errors import ConstructsTritonError
from constructs_triton.local.gateway.local_variant import LocalVariant
from constructs_triton.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton.local.options import PAGE_PATH
from constructs_triton.local.page.call_record import CallRecord
from constructs_triton.local.page.figures import HISTORY_SECONDS, Figures
from constructs_triton.local.page.forms import model_form
from constructs_triton.local.page.log_tail import Messages
from constructs_triton.local.page.observation import Observer

__all__ = ["CONTENT_SECURITY_POLICY", "Page", "event"]

_INTERVAL_SECONDS = 1.0
#: Rows of the charts that each event repeats, so that the second that was incomplete is sent again.
_REPEATED_SECONDS = 3
#: No script, style, picture or connection of another host, and nothing inside the HTML.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
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


class Page:
    """The page of one run. Create it first: it records the calls and the messages from then on."""

    def __init__(self) -> None:
        self._record = CallRecord()
        self.messages = Messages()
        self._stopping = asyncio.Event()
        self._endpoints: Mapping[str, RunningEndpoint] = {}
        self._files = _static_files()

    def middleware(self) -> Middleware:
        """Return what records each call of the gateway."""
        return self._record.middleware()

    def serve(self, application: web.Application, endpoints: Mapping[str, RunningEndpoint]) -> None:
        """Add the page to the gateway's application, which checks the origin of each request."""
        self._endpoints = endpoints
        self._observer = Observer(endpoints, Figures(self._record), self.messages)
        page = web.Application(middlewares=[_secure])
        page.router.add_get("/events", self._events)
        page.router.add_get("/form", self._form)
        page.router.add_get("/{name:[a-zA-Z0-9._-]*}", self._file)
        page.on_shutdown.append(self._stop)
        for short in ("/", PAGE_PATH.rstrip("/")):
            application.router.add_get(short, _to_page)
        application.add_subapp(PAGE_PATH, page)

    async def _stop(self, _: web.Application) -> None:
        self._stopping.set()

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"] or "index.html"
        if name not in self._files:
            raise web.HTTPNotFound
        kind = _TYPES[PurePath(name).suffix]
        return web.Response(body=self._files[name], content_type=kind, charset="utf-8")

    async def _form(self, request: web.Request) -> web.Response:
        """Answer with the form of a target; the query names the endpoint, its server and the target."""
        endpoint = self._endpoints.get(request.query.get("endpoint", ""))
        servers = [] if endpoint is None else endpoint.all_servers()
        running = next((each for each in servers if each.spec.name == request.query.get("server")), None)
        if endpoint is None or running is None:
            return web.json_response({"error": "the endpoint has no such variant or component"}, status=404)
        try:
            form = await asyncio.to_thread(model_form, running, request.query.get("target"))
        except (ConstructsTritonError, RuntimeApiError, OSError) as error:
            return web.json_response({"error": str(error)}, status=422)
        return web.json_response({**form, **_call_of(endpoint, running)})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):
            await self._send_events(response)
        return response

    async def _send_events(self, response: web.StreamResponse) -> None:
        """Send what changed each second: the state, the rows of the charts, the errors and the logs."""
        sent: dict[str, object] = {}
        numbers: dict[str, int] = {}
        seconds = HISTORY_SECONDS
        while not self._stopping.is_set():
            state = await self._observer.state()
            figures = self._observer.figures
            rows = {name: figures.rows(name, seconds) for name in self._endpoints}
            seconds = _REPEATED_SECONDS
            log = {label: lines for label, lines in self._observer.log_after(numbers) if lines}
            numbers.update({label: lines[-1][0] for label, lines in log.items()})
            await response.write(event("rows", rows))
            for name, data in (("state", state), ("errors", figures.errors()), ("log", log)):
                if sent.get(name) != data:
                    sent[name] = data
                    await response.write(event(name, data))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), _INTERVAL_SECONDS)


def _call_of(endpoint: RunningEndpoint, running: LocalVariant) -> dict[str, object]:
    """Return what a call needs besides its body."""
    is_component = running.spec.name in endpoint.components
    several = len(endpoint.variants) > 1
    return {
        "region": endpoint.spec.region,
        "component": running.spec.name if is_component else None,
        "variant": running.spec.name if several else None,
        "is_multi_model": running.multi_model is not None,
        "is_shadow": not is_component and running.spec.name not in endpoint.variants,
    }


def _static_files() -> dict[str, bytes]:
    folder = files("constructs_triton.local.page") / "static"
    return {each.name: each.read_bytes() for each in folder.iterdir() if PurePath(each.name).suffix in _TYPES}


@web.middleware
async def _secure(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the headers of the page to each response, also to errors."""
    try:
        response = await handler(request)
    except web.HTTPException as error:
        error.headers.update(_HEADERS)
        raise
    if not response.prepared:
        response.headers.update(_HEADERS)
    return response


async def _to_page(_: web.Request) -> web.Response:
    raise web.HTTPFound(PAGE_PATH)
