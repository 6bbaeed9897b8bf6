"""SageMaker's runtime API on loopback, in front of real Triton servers.

Bodies and content types pass through; nothing here looks into them. Source: botocore's service model of
sagemaker-runtime for paths, headers and errors; AWS documentation for the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from constructs_triton.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton.local.gateway.async_inference import AsyncInvocations, BucketFolder
from constructs_triton.local.gateway.event_stream import payload_part
from constructs_triton.local.gateway.multi_model import TARGET_MODEL_HEADER, MultiModelContainer
from constructs_triton.local.gateway.runtime_errors import (
    RuntimeApiError,
    model_error,
    service_unavailable,
    validation_error,
)
from constructs_triton.local.gateway.traffic import ShadowShare, TrafficShare
from constructs_triton.local.server.server import TritonServer
from constructs_triton.local.sources.specs import EndpointSpec, VariantSpec

__all__ = ["LocalVariant", "RunningEndpoint", "gateway_application"]

#: AWS documentation: a container must answer within 60 seconds.
INVOCATION_TIMEOUT_SECONDS = 60.0
# asyncio reads into blocks of 256 KiB. glibc maps and faults in each anew until a larger one was freed, which
# raises its threshold for good (mallopt(3), M_MMAP_THRESHOLD): a fifth of a request's way through here.
_LARGE_BLOCK_BYTES = 4 << 20
_TARGET_VARIANT_HEADER = "X-Amzn-SageMaker-Target-Variant"
_VARIANT_HEADER = "x-Amzn-Invoked-Production-Variant"
#: What of a caller's headers reaches the container; signatures and the rest stay with SageMaker.
_TO_CONTAINER = ("Content-Type", "Content-Length", "Accept")
_SAGEMAKER_PREFIX = "x-amzn-sagemaker-"
_CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
_Relay = Callable[[web.Request, aiohttp.ClientResponse, str], Awaitable[web.StreamResponse]]


class LocalVariant:
    """A variant's server, and its models' life cycle where it is a multi-model container."""

    def __init__(
        self, plan: VariantSpec, server: TritonServer, multi_model: MultiModelContainer | None
    ) -> None:
        self.plan = plan
        self.server = server
        self.multi_model = multi_model
        self._has_explained = False

    def explain(self, message: bytes) -> None:
        """Tell the user once what the server's words mean for the real endpoint."""
        if b"is not healthy" in message and not self._has_explained:
            self._has_explained = True
            self.server.settings.say(
                f"{self.server.label}: a model ended its process. The server does not start it again while "
                "/ping stays 200, so on SageMaker too it fails until the container or the model is replaced"
            )

    @asynccontextmanager
    async def use(self, target_model: str | None) -> AsyncIterator[str]:
        """Where on the server a request goes, while the block lasts. Raises ``RuntimeApiError``."""
        if not self.server.is_ready:
            raise service_unavailable(
                f"The container of variant {self.plan.name} is starting; please try again"
            )
        if self.multi_model is None:
            if target_model is not None:
                raise validation_error("TargetModel is only accepted by multi-model endpoints; leave it out")
            yield "/invocations"
            return
        if target_model is None:
            raise validation_error("A multi-model endpoint needs TargetModel; name one of its archives")
        async with self.multi_model.use(target_model) as path:
            yield path


class RunningEndpoint:
    """An endpoint whose servers are up."""

    def __init__(self, plan: EndpointSpec, variants: Sequence[LocalVariant]) -> None:
        self.plan = plan
        production = {variant.name for variant in plan.variants}
        self.variants = {each.plan.name: each for each in variants if each.plan.name in production}
        self._traffic = TrafficShare(plan.variants)
        self._shadows = [
            (each, ShadowShare(plan.variants[0], each.plan))
            for each in variants
            if each.plan.name not in production
        ]

    def choose(self, target_variant: str | None) -> LocalVariant:
        """The variant that takes a request: the one that is asked for, else by weight."""
        if target_variant is None:
            return self.variants[self._traffic.next()]
        if target_variant not in self.variants:
            raise validation_error(f"Variant {target_variant} not found for endpoint {self.plan.name}")
        return self.variants[target_variant]

    def shadows_of_next(self) -> tuple[LocalVariant, ...]:
        """The shadow variants that get a copy of the next request."""
        return tuple(shadow for shadow, share in self._shadows if share.takes_next())


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
            name: AsyncInvocations(each.plan, each.plan.asynchronous, folder, partial(self._send, each))
            for name, each in self._endpoints.items()
            if each.plan.asynchronous is not None
        }

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, _relay)

    async def invoke_with_response_stream(self, request: web.Request) -> web.StreamResponse:
        return await self._answer(request, _relay_as_events)

    async def invoke_async(self, request: web.Request) -> web.StreamResponse:
        try:
            endpoint = self._endpoint(request.match_info["name"])
            if endpoint.plan.asynchronous is None:
                raise validation_error(
                    f"Endpoint {endpoint.plan.name} is not an asynchronous endpoint; call invoke_endpoint"
                )
            if endpoint.plan.name not in self._queues:
                raise validation_error(
                    "Asynchronous invocations need a folder that stands for S3; "
                    "start the local run with --bucket-folder"
                )
            return await self._queues[endpoint.plan.name].accept(request)
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

    async def _answer(self, request: web.Request, relay: _Relay) -> web.StreamResponse:
        try:
            invocation = await self._read(request)
            variant = invocation.endpoint.choose(request.headers.get(_TARGET_VARIANT_HEADER))
            for shadow in invocation.shadows:
                self._mirror(invocation, shadow)
            async with self._call(invocation, variant) as answer:
                return await relay(request, answer, variant.plan.name)
        except RuntimeApiError as error:
            return error.response()

    async def _read(self, request: web.Request) -> _Invocation:
        endpoint = self._endpoint(request.match_info["name"])
        if endpoint.plan.asynchronous is not None:
            raise validation_error(
                f"Endpoint {endpoint.plan.name} is asynchronous; call invoke_endpoint_async"
            )
        shadows = endpoint.shadows_of_next()
        return _Invocation(
            endpoint=endpoint,
            target_model=request.headers.get(TARGET_MODEL_HEADER),
            headers=_headers_to_container(request),
            body=await _body_of(request, is_copied=bool(shadows)),
            shadows=shadows,
        )

    def _endpoint(self, name: str) -> RunningEndpoint:
        if name not in self._endpoints:
            known = next(iter(self._endpoints.values())).plan
            raise validation_error(f"Endpoint {name} of account {known.account} not found.")
        return self._endpoints[name]

    @asynccontextmanager
    async def _call(
        self, call: _Invocation, variant: LocalVariant, timeout: aiohttp.ClientTimeout | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The container's answer, which is a good one. Raises ``RuntimeApiError`` for any other."""
        plan = call.endpoint.plan
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
                    raise model_error(plan, answer.status, message)
                yield answer
        except TimeoutError:
            raise model_error(
                plan, 0, "Your invocation timed out while waiting for a response from container primary."
            ) from None
        except aiohttp.ClientError as error:
            raise model_error(plan, 500, f"The container closed the connection: {error}") from error

    def _mirror(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        task = asyncio.create_task(self._send_to_shadow(invocation, shadow))
        self._mirrors.add(task)
        task.add_done_callback(self._mirrors.discard)

    async def _send_to_shadow(self, invocation: _Invocation, shadow: LocalVariant) -> None:
        try:
            async with self._call(invocation, shadow) as answer:
                await answer.read()
        except RuntimeApiError as error:
            shadow.server.settings.say(f"{shadow.server.label}: the shadow answered: {error}")


async def _relay(request: web.Request, answer: aiohttp.ClientResponse, variant: str) -> web.StreamResponse:
    """The container's answer piece by piece as it arrives."""
    response = web.StreamResponse(headers=_headers_to_caller(answer.headers, variant))
    response.content_length = answer.content_length
    await response.prepare(request)
    try:
        async for piece in _pieces(answer.content):
            await response.write(piece)
    except (aiohttp.ClientError, TimeoutError):
        # The caller has the head of a good answer already; a broken connection is all that can be said.
        if request.transport is not None:
            request.transport.abort()
    return response


async def _relay_as_events(
    request: web.Request, answer: aiohttp.ClientResponse, variant: str
) -> web.StreamResponse:
    """The container's answer as an event stream of payload parts."""
    headers = _headers_to_caller(answer.headers, variant)
    headers["X-Amzn-SageMaker-Content-Type"] = headers["Content-Type"]
    headers["Content-Type"] = "application/vnd.amazon.eventstream"
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    async for piece in _pieces(answer.content):
        await response.write(payload_part(piece))
    return response


async def _pieces(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """The stream as it was received; reading what is there at once would join, that is copy, it first."""
    async for piece, _ in stream.iter_chunks():
        if piece:
            yield piece


async def _body_of(request: web.Request, *, is_copied: bool) -> bytes | AsyncIterator[bytes]:
    """The body, to be relayed as it arrives; read first where several containers get it."""
    length = request.content_length
    if length is not None and length <= INVOCATION_PAYLOAD_BYTES and not is_copied:
        return _pieces(request.content)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise RuntimeApiError(
            413, "413", f"HTTP content length exceeded {INVOCATION_PAYLOAD_BYTES} bytes."
        ) from None


def _headers_to_container(request: web.Request) -> dict[str, str]:
    kept = {name: request.headers[name] for name in _TO_CONTAINER if name in request.headers}
    sagemaker = {
        name: value for name, value in request.headers.items() if name.lower().startswith(_SAGEMAKER_PREFIX)
    }
    return {"Content-Type": "application/octet-stream", **kept, **sagemaker}


def _headers_to_caller(answer: Mapping[str, str], variant: str) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    headers["Content-Type"] = answer.get("Content-Type", "application/octet-stream")
    headers[_VARIANT_HEADER] = variant
    headers["x-amzn-RequestId"] = str(uuid4())
    if _CUSTOM_ATTRIBUTES in answer:
        headers[_CUSTOM_ATTRIBUTES] = answer[_CUSTOM_ATTRIBUTES]
    return headers


def gateway_application(
    endpoints: Mapping[str, RunningEndpoint],
    session: aiohttp.ClientSession,
    bucket_folder: Path | None = None,
) -> web.Application:
    """The web application that answers for these endpoints.

    ``bucket_folder`` stands for S3 where endpoints are asynchronous.
    """
    bytearray(_LARGE_BLOCK_BYTES)  # made and freed
    gateway = _Gateway(endpoints, session, bucket_folder)
    application = web.Application(client_max_size=INVOCATION_PAYLOAD_BYTES)
    application.router.add_post("/endpoints/{name}/invocations", gateway.invoke)
    application.router.add_post(
        "/endpoints/{name}/invocations-response-stream", gateway.invoke_with_response_stream
    )
    application.router.add_post("/endpoints/{name}/async-invocations", gateway.invoke_async)
    application.router.add_get("/ping", gateway.ping)
    return application
