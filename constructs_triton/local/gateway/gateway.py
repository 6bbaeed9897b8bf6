"""SageMaker's runtime API on loopback, in front of real Triton servers.

Bodies and content types pass through unread. Source: botocore's service model of sagemaker-runtime for
paths, headers and errors; AWS documentation for the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
from aiohttp import web

from constructs_triton.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton.local.gateway.async_inference import AsyncInvocations, BucketFolder
from constructs_triton.local.gateway.multi_model import TARGET_MODEL_HEADER
from constructs_triton.local.gateway.relay import body_of, headers_to_container, relay, relay_as_events
from constructs_triton.local.gateway.running_endpoint import LocalVariant, RunningEndpoint
from constructs_triton.local.gateway.runtime_errors import RuntimeApiError, model_error, validation_error

__all__ = ["gateway_application"]

_LARGE_BLOCK_BYTES = 4 << 20
_TARGET_VARIANT_HEADER = "X-Amzn-SageMaker-Target-Variant"
_Relay = Callable[[web.Request, aiohttp.ClientResponse, str], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class _Invocation:
    """A caller's request, on its way to a container."""

    endpoint: RunningEndpoint
    target_model: str | None
    headers: Mapping[str, str]
    body: bytes | AsyncIterator[bytes]
    shadows: tuple[LocalVariant, ...]


class _Gateway:
    def __init__(
        self,
        endpoints: Mapping[str, RunningEndpoint],
        session: aiohttp.ClientSession,
        bucket_folder: Path | None,
    ) -> None:
        self._endpoints = endpoints
        self._session = session
        self._mirrors: set[asyncio.Task[None]] = set()
        self._queues = {} if bucket_folder is None else self._make_queues(BucketFolder(bucket_folder))

    def _make_queues(self, folder: BucketFolder) -> dict[str, AsyncInvocations]:
        return {
            name: AsyncInvocations(each.spec.asynchronous, folder, partial(self._send, each))
            for name, each in self._endpoints.items()
            if each.spec.asynchronous is not None
        }

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, relay)

    async def invoke_with_response_stream(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, relay_as_events)

    async def invoke_async(self, request: web.Request) -> web.StreamResponse:
        try:
            endpoint = self._endpoint(request.match_info["name"])
            if endpoint.spec.asynchronous is None:
                raise validation_error(
                    f"Endpoint {endpoint.spec.name} is not an asynchronous endpoint; call invoke_endpoint"
                )
            if endpoint.spec.name not in self._queues:
                raise validation_error(
                    "Asynchronous invocations need a folder that stands for S3; "
                    "start the local run with --bucket-folder"
                )
            return await self._queues[endpoint.spec.name].accept(request)
        except RuntimeApiError as error:
            return error.response()

    async def _send(
        self, endpoint: RunningEndpoint, headers: Mapping[str, str], body: bytes, timeout: float
    ) -> bytes:
        """A queued request's way to the container."""
        call = _Invocation(endpoint, None, headers, body, ())
        async with self._call(call, endpoint.choose(None), aiohttp.ClientTimeout(timeout)) as answer:
            return await answer.read()

    async def ping(self, _: web.Request) -> web.Response:
        """200 while every container is ready; for scripts that wait, not part of SageMaker's API."""
        servers = [v.server for endpoint in self._endpoints.values() for v in endpoint.variants.values()]
        return web.Response(status=200 if all(server.is_ready for server in servers) else 503)

    async def _answer(self, request: web.Request, send: _Relay) -> web.StreamResponse:
        try:
            invocation = await self._read(request)
            variant = invocation.endpoint.choose(request.headers.get(_TARGET_VARIANT_HEADER))
            for shadow in invocation.shadows:
                self._mirror(invocation, shadow)
            async with self._call(invocation, variant) as answer:
                return await send(request, answer, variant.spec.name)
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
            known = next(iter(self._endpoints.values())).spec
            raise validation_error(f"Endpoint {name} of account {known.account} not found.")
        return self._endpoints[name]

    @asynccontextmanager
    async def _call(
        self, call: _Invocation, variant: LocalVariant, timeout: aiohttp.ClientTimeout | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The container's answer, which is a good one. Raises ``RuntimeApiError`` for any other."""
        spec = call.endpoint.spec
        timeout = timeout or self._session.timeout
        try:
            async with (
                variant.use(call.target_model) as path,
                self._session.post(
                    variant.server.url + path, data=call.body, headers=call.headers, timeout=timeout
                ) as answer,
            ):
                if answer.status != 200:
                    message = await answer.read()
                    variant.explain(message)
                    raise model_error(spec, answer.status, message)
                yield answer
        except TimeoutError:
            raise model_error(
                spec, 0, "Your invocation timed out while waiting for a response from container primary."
            ) from None
        except aiohttp.ClientError as error:
            raise model_error(spec, 500, f"The container closed the connection: {error}") from error

    def _mirror(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        task = asyncio.create_task(self._send_to_shadow(invocation, shadow))
        self._mirrors.add(task)
        task.add_done_callback(self._mirrors.discard)

    async def _send_to_shadow(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        try:
            async with self._call(invocation, shadow) as answer:
                await answer.read()
        except RuntimeApiError as error:
            shadow.server.settings.report(f"{shadow.server.label}: the shadow answered: {error}")


def gateway_application(
    endpoints: Mapping[str, RunningEndpoint],
    session: aiohttp.ClientSession,
    bucket_folder: Path | None = None,
) -> web.Application:
    """The web application that answers for these endpoints.

    ``bucket_folder`` stands for S3 where endpoints are asynchronous.
    """
    keep_freed_memory()
    gateway = _Gateway(endpoints, session, bucket_folder)
    application = web.Application(client_max_size=INVOCATION_PAYLOAD_BYTES)
    application.router.add_post("/endpoints/{name}/invocations", gateway.invoke)
    application.router.add_post(
        "/endpoints/{name}/invocations-response-stream", gateway.invoke_with_response_stream
    )
    application.router.add_post("/endpoints/{name}/async-invocations", gateway.invoke_async)
    application.router.add_get("/ping", gateway.ping)
    return application


def keep_freed_memory() -> None:
    """Make glibc reuse the memory of request bodies instead of returning it to the kernel each time.

    asyncio reads a body into blocks of 256 KiB. glibc takes each block above its mmap threshold (128 KiB at
    first) from the kernel and returns it when it is freed, so every request pays for fresh pages: about a
    fifth of its time in the gateway. Freeing one larger block raises the threshold to that block's size
    (mallopt(3), M_MMAP_THRESHOLD), and later blocks come from memory that the process keeps.
    """
    bytearray(_LARGE_BLOCK_BYTES)
