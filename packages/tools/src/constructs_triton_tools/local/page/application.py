"""The web application of the page: its files, the forms, and the figures as server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress

from aiohttp import web
from aiohttp.typedefs import Middleware

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError
from constructs_triton_tools.local.options import PAGE_PATH
from constructs_triton_tools.local.page.call_record import CallRecord
from constructs_triton_tools.local.page.figures import HISTORY_SECONDS, Figures
from constructs_triton_tools.local.page.forms import model_form
from constructs_triton_tools.local.page.log_tail import Messages
from constructs_triton_tools.local.page.observation import Observer
from constructs_triton_tools.local.page.page_files import HEADERS, PageFiles, event, secure

_INTERVAL_SECONDS = 1.0
#: Rows of the charts that each event repeats, so that the second that was incomplete is sent again.
_REPEATED_SECONDS = 3


class Page:
    """The page of one run. Create it first: it records the calls and the messages from then on."""

    def __init__(self) -> None:
        self._record = CallRecord()
        self.messages = Messages()
        self._files = PageFiles("index.html")
        self._stopping = asyncio.Event()
        self._endpoints: Mapping[str, RunningEndpoint] = {}

    def middleware(self) -> Middleware:
        """Return what records each call of the gateway."""
        return self._record.middleware()

    def record_queued(
        self, endpoint: str, target: str, seconds: float, error: RuntimeApiError | None
    ) -> None:
        """Record an asynchronous call that has ended."""
        self._record.add_queued(endpoint, target, seconds, error)

    def serve(self, application: web.Application, endpoints: Mapping[str, RunningEndpoint]) -> None:
        """Add the page to the gateway's application, which checks the origin of each request."""
        self._endpoints = endpoints
        self._observer = Observer(endpoints, Figures(self._record), self.messages)
        page = web.Application(middlewares=[secure])
        page.router.add_get("/events", self._events)
        page.router.add_get("/form", self._form)
        self._files.add_to(page)
        page.on_shutdown.append(self._stop)
        for short in ("/", PAGE_PATH.rstrip("/")):
            application.router.add_get(short, _to_page)
        application.add_subapp(PAGE_PATH, page)

    async def _stop(self, _: web.Application) -> None:
        self._stopping.set()

    async def _form(self, request: web.Request) -> web.Response:
        """Answer with the form of a target; the query names the endpoint,
        its server and the target.
        """
        endpoint = self._endpoints.get(request.query.get("endpoint", ""))
        servers = [] if endpoint is None else endpoint.all_servers()
        running = next(
            (server for server in servers if server.spec.name == request.query.get("server")), None
        )
        if endpoint is None or running is None:
            return web.json_response(
                {"error": "the endpoint has no such variant or component"}, status=404
            )
        try:
            form = await asyncio.to_thread(model_form, running, request.query.get("target"))
        except (ConstructsTritonError, RuntimeApiError, OSError) as error:
            return web.json_response({"error": str(error)}, status=422)
        return web.json_response({**form, **_call_of(endpoint, running)})

    async def _events(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):
            await self._send_events(response)
        return response

    async def _send_events(self, response: web.StreamResponse) -> None:
        """Send what changed each second: the state, the rows of the charts,
        the errors and the logs.
        """
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


async def _to_page(_: web.Request) -> web.Response:
    raise web.HTTPFound(PAGE_PATH)
