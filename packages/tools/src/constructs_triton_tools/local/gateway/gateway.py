"""SageMaker's runtime API on loopback, in front of real Triton servers.

Bodies and content types pass through unread. Source: botocore's service model of sagemaker-runtime
for paths, headers and errors; AWS documentation for the limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from aiohttp import web
from aiohttp.typedefs import Middleware

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.inference_components import COMPONENT_HEADER
from constructs_triton_core.facts.limits import (
    INVOCATION_PAYLOAD_BYTES,
    INVOCATION_TIMEOUT_SECONDS,
    STREAM_TIMEOUT_SECONDS,
)
from constructs_triton_tools.local.gateway.async_inference import AsyncInvocations
from constructs_triton_tools.local.gateway.bucket_api import add_bucket_routes
from constructs_triton_tools.local.gateway.bucket_folder import BucketFolder
from constructs_triton_tools.local.gateway.freed_memory import keep_freed_memory
from constructs_triton_tools.local.gateway.inference_components import LocalVariant
from constructs_triton_tools.local.gateway.multi_model import TARGET_MODEL_HEADER
from constructs_triton_tools.local.gateway.relay import (
    body_of,
    headers_to_container,
    relay,
    relay_as_events,
    while_connected,
)
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint
from constructs_triton_tools.local.gateway.runtime_errors import (
    RuntimeApiError,
    check_headers,
    model_error,
    refuse_foreign_requests,
    refuse_other_services,
    validation_error,
)
from constructs_triton_tools.local.http_session import READ_BUFFER_BYTES

#: The key of a request's variant or component beside the parts of its path, for who records the
#: request.
CHOSEN = "chosen"
_TARGET_VARIANT_HEADER = "X-Amzn-SageMaker-Target-Variant"
_Relay = Callable[[web.Request, aiohttp.ClientResponse, str, float], Awaitable[web.StreamResponse]]
#: Reading the container's stream pauses above this, while the caller does not read it. Its parts
#: are small.
_STREAM_BUFFER_BYTES = 64 * 2**10


class GatewayPage(Protocol):
    """A web page at the address of the gateway."""

    def middleware(self) -> Middleware:
        """Return what sees each request of the gateway."""

    def serve(self, application: web.Application, endpoints: Mapping[str, RunningEndpoint]) -> None:
        """Add the routes of the page."""

    def record_queued(
        self, endpoint: str, target: str, seconds: float, error: RuntimeApiError | None
    ) -> None:
        """Record an asynchronous call that has ended, which took ``seconds`` in the container."""


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A caller's request, as the container receives it."""

    endpoint: RunningEndpoint
    target_model: str | None
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]
    shadows: tuple[LocalVariant, ...]


class _Gateway:
    """``endpoints`` may change while the gateway runs."""

    def __init__(
        self,
        endpoints: Mapping[str, RunningEndpoint],
        bucket_folder: Path | None,
        page: GatewayPage | None,
    ) -> None:
        self._endpoints = endpoints
        self._page = page
        self._mirrors: set[asyncio.Task[None]] = set()
        self._queues = (
            {} if bucket_folder is None else self._make_queues(BucketFolder(bucket_folder))
        )

    def _make_queues(self, folder: BucketFolder) -> dict[str, AsyncInvocations]:
        return {
            name: AsyncInvocations(
                endpoint.spec.asynchronous, folder, partial(self._send, name), endpoint.report
            )
            for name, endpoint in self._endpoints.items()
            if endpoint.spec.asynchronous is not None
        }

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, relay, "InvokeEndpoint")

    async def invoke_with_response_stream(self, request: web.Request) -> web.StreamResponse:
        answer = self._answer(request, relay_as_events, "InvokeEndpointWithResponseStream")
        return await while_connected(request, answer)

    async def invoke_async(self, request: web.Request) -> web.StreamResponse:
        try:
            endpoint = self._endpoint(request.match_info["name"])
            if endpoint.spec.asynchronous is None:
                raise validation_error(
                    f"Endpoint {endpoint.spec.name} is not an asynchronous "
                    "endpoint; call invoke_endpoint"
                )
            if endpoint.spec.name not in self._queues:
                raise validation_error(
                    "Asynchronous invocations need a folder in place of S3; "
                    "start the local run with --bucket-folder DIR"
                )
            return await self._queues[endpoint.spec.name].accept(request)
        except RuntimeApiError as error:
            return error.response()

    async def _send(
        self, name: str, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> bytes:
        """Send a queued request to the container and return the response body."""
        endpoint = self._endpoint(name)
        call = _Invocation(endpoint, None, headers, body, ())
        variant = endpoint.choose(None)
        start = time.perf_counter()
        failure = None
        try:
            async with self._call(call, variant, aiohttp.ClientTimeout(timeout)) as answer:
                return await answer.read()
        except RuntimeApiError as error:
            failure = error
            raise
        finally:
            if self._page is not None:
                seconds = time.perf_counter() - start
                self._page.record_queued(name, variant.spec.name, seconds, failure)

    async def ping(self, _: web.Request) -> web.Response:
        """Answer 200 while every container is ready.

        For scripts that wait; SageMaker has no such path.
        """
        for endpoint in self._endpoints.values():
            for served in (*endpoint.variants.values(), *endpoint.components.values()):
                if not served.server.is_ready:
                    return web.Response(status=503)
        return web.Response(status=200)

    async def statistics(self, _: web.Request) -> web.Response:
        """Answer with the statistics of each server's models. SageMaker has no such path."""
        found = {name: await endpoint.statistics() for name, endpoint in self._endpoints.items()}
        return web.json_response(found)

    async def stand_ins(self, _: web.Request) -> web.Response:
        """Answer with the models that stand-ins run, by endpoint and variant.

        SageMaker has no such path.
        """
        found: dict[str, dict[str, Any]] = {}
        for name, endpoint in self._endpoints.items():
            found[name] = {
                running.spec.name: running.server.stand_ins for running in endpoint.all_servers()
            }
        return web.json_response(found)

    async def index(self, request: web.Request) -> web.Response:
        """Answer with the names of the models of an endpoint. SageMaker has no such path.

        Without an index, the answer has the prefix of the archives, or null if there is none.
        """
        try:
            endpoint = self._endpoint(request.match_info["name"])
            containers = [
                variant.multi_model for variant in endpoint.variants.values() if variant.multi_model
            ]
            index = await asyncio.to_thread(containers[0].index) if containers else None
        except RuntimeApiError as error:
            return error.response()
        except InvalidValueError as error:
            return validation_error(str(error)).response()
        if index is not None:
            return web.json_response({"version": 1, "target_models": dict(index.target_models)})
        return web.json_response({"prefix": containers[0].url if containers else None})

    async def _answer(
        self, request: web.Request, send: _Relay, operation: str
    ) -> web.StreamResponse:
        try:
            check_headers(operation, request.headers)
            invocation = await self._read(request)
            variant = invocation.endpoint.choose(
                request.headers.get(_TARGET_VARIANT_HEADER), request.headers.get(COMPONENT_HEADER)
            )
            request.match_info[CHOSEN] = variant.spec.name
            variant.explain_encoding(request.headers.get("Content-Encoding"))
            for shadow in invocation.shadows:
                self._mirror(invocation, shadow)
            is_stream = send is relay_as_events
            seconds = _timeout_seconds(variant, is_stream=is_stream)
            timeout = aiohttp.ClientTimeout(seconds) if is_stream else None
            async with self._call(invocation, variant, timeout, is_stream=is_stream) as answer:
                return await send(request, answer, variant.invoked_variant, seconds)
        except RuntimeApiError as error:
            return error.response()

    async def _read(self, request: web.Request) -> _Invocation:
        endpoint = self._endpoint(request.match_info["name"])
        if endpoint.spec.asynchronous is not None:
            raise validation_error(
                f"Endpoint {endpoint.spec.name} is asynchronous; call invoke_endpoint_async"
            )
        shadows = endpoint.shadows_of_next()
        return _Invocation(
            endpoint=endpoint,
            target_model=request.headers.get(TARGET_MODEL_HEADER),
            headers=headers_to_container(request),
            body=await body_of(request, is_copied=bool(shadows)),
            shadows=shadows,
        )

    def _endpoint(self, name: str) -> RunningEndpoint:
        if name not in self._endpoints:
            account = next(iter(self._endpoints.values())).spec.account
            raise validation_error(
                f"Endpoint {name} of account {account} not found. "
                f"Endpoints of this local run: {', '.join(self._endpoints)}"
            )
        return self._endpoints[name]

    @asynccontextmanager
    async def _call(
        self,
        call: _Invocation,
        variant: LocalVariant,
        timeout: aiohttp.ClientTimeout | None = None,
        *,
        is_stream: bool = False,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request and yield the container's response."""
        spec = call.endpoint.spec
        try:
            async with (
                variant.use(call.target_model) as (session, url),
                session.post(
                    url,
                    data=call.body,
                    headers=call.headers,
                    timeout=timeout or session.timeout,
                    read_bufsize=_STREAM_BUFFER_BYTES if is_stream else READ_BUFFER_BYTES,
                ) as answer,
            ):
                if answer.status != 200:
                    message = await answer.read()
                    variant.explain(message)
                    raise model_error(spec, answer.status, message, variant.log_group)
                yield answer
        except TimeoutError:
            why = "Your invocation timed out while waiting for a response from container primary."
            raise model_error(spec, 0, why, variant.log_group) from None
        except aiohttp.ClientError as error:
            why = f"The container closed the connection: {error}"
            raise model_error(spec, 500, why, variant.log_group) from error

    def _mirror(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        task = asyncio.create_task(self._send_to_shadow(invocation, shadow))
        self._mirrors.add(task)
        task.add_done_callback(self._mirrors.discard)

    async def _send_to_shadow(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        try:
            async with self._call(invocation, shadow) as answer:
                await answer.read()
        except RuntimeApiError as error:
            shadow.server.report(f"{shadow.server.label}: the shadow variant failed: {error}")


def _timeout_seconds(variant: LocalVariant, *, is_stream: bool) -> float:
    """Return how long a response may take; the factor of a stream is that of SageMaker."""
    seconds = variant.server.invocations.session.timeout.total or INVOCATION_TIMEOUT_SECONDS
    return seconds * STREAM_TIMEOUT_SECONDS / INVOCATION_TIMEOUT_SECONDS if is_stream else seconds


def gateway_application(
    endpoints: Mapping[str, RunningEndpoint],
    bucket_folder: Path | None = None,
    page: GatewayPage | None = None,
) -> web.Application:
    """Return the web application that serves these endpoints.

    ``bucket_folder`` takes the place of S3. The application serves its objects too. ``page`` is
    added to it.
    """
    keep_freed_memory()
    gateway = _Gateway(endpoints, bucket_folder, page)
    # Without a page nothing is recorded, so a run without one does no work for it.
    recorders: list[Middleware] = [] if page is None else [page.middleware()]
    application = web.Application(
        client_max_size=INVOCATION_PAYLOAD_BYTES, middlewares=[refuse_foreign_requests, *recorders]
    )
    application.router.add_post("/endpoints/{name}/invocations", gateway.invoke)
    application.router.add_post(
        "/endpoints/{name}/invocations-response-stream", gateway.invoke_with_response_stream
    )
    application.router.add_post("/endpoints/{name}/async-invocations", gateway.invoke_async)
    application.router.add_get("/endpoints/{name}/index.json", gateway.index)
    application.router.add_post("/", refuse_other_services)
    application.router.add_get("/ping", gateway.ping)
    application.router.add_get("/statistics", gateway.statistics)
    application.router.add_get("/stand-ins", gateway.stand_ins)
    if bucket_folder is not None:
        add_bucket_routes(application, BucketFolder(bucket_folder))
    if page is not None:
        page.serve(application, endpoints)
    return application
