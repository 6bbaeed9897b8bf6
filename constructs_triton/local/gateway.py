"""SageMaker's runtime API on loopback, in front of real Triton servers.

Bodies and content types pass through; nothing here looks into them. Source: botocore's service model of
sagemaker-runtime for paths, headers and errors; AWS documentation for the limits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from uuid import uuid4

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from constructs_triton.local.multi_model import TARGET_MODEL_HEADER, MultiModelContainer
from constructs_triton.local.plans import EndpointPlan, VariantPlan
from constructs_triton.local.runtime_errors import (
    RuntimeApiError,
    model_error,
    service_unavailable,
    validation_error,
)
from constructs_triton.local.server import TritonServer
from constructs_triton.local.traffic import ShadowShare, TrafficShare

__all__ = ["MAX_BODY_BYTES", "LocalVariant", "RunningEndpoint", "gateway_application"]

#: AWS documentation, hosting FAQs: 25 MB for real-time endpoints.
MAX_BODY_BYTES = 25 * 1024 * 1024
#: AWS documentation: a container must answer within 60 seconds.
INVOCATION_TIMEOUT_SECONDS = 60.0
_TARGET_VARIANT_HEADER = "X-Amzn-SageMaker-Target-Variant"
_VARIANT_HEADER = "x-Amzn-Invoked-Production-Variant"
#: What of a caller's headers reaches the container; signatures and the rest stay with SageMaker.
_TO_CONTAINER = ("Content-Type", "Accept")
_SAGEMAKER_PREFIX = "x-amzn-sagemaker-"
_CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"


class LocalVariant:
    """A variant's server, and its models' life cycle where it is a multi-model container."""

    def __init__(
        self, plan: VariantPlan, server: TritonServer, multi_model: MultiModelContainer | None
    ) -> None:
        self.plan = plan
        self.server = server
        self.multi_model = multi_model

    async def path_of(self, target_model: str | None) -> str:
        """Where on the server a request goes. Raises ``RuntimeApiError``."""
        if not self.server.is_ready:
            raise service_unavailable(
                f"The container of variant {self.plan.name} is starting; please try again"
            )
        if self.multi_model is None:
            if target_model is not None:
                raise validation_error("TargetModel is only accepted by multi-model endpoints; leave it out")
            return "/invocations"
        if target_model is None:
            raise validation_error("A multi-model endpoint needs TargetModel; name one of its archives")
        return await self.multi_model.path_of(target_model)


class RunningEndpoint:
    """An endpoint whose servers are up."""

    def __init__(self, plan: EndpointPlan, variants: Sequence[LocalVariant]) -> None:
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

    def shadows_of_next(self) -> list[LocalVariant]:
        """The shadow variants that get a copy of the next request."""
        return [shadow for shadow, share in self._shadows if share.takes_next()]


class _Gateway:
    def __init__(self, endpoints: Mapping[str, RunningEndpoint], session: aiohttp.ClientSession) -> None:
        self._endpoints = endpoints
        self._session = session
        self._mirrors: set[asyncio.Task[None]] = set()

    async def invoke(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._invoke(request)
        except RuntimeApiError as error:
            return error.response()

    async def ping(self, _: web.Request) -> web.Response:
        """200 while every container is ready; for scripts that wait, not part of SageMaker's API."""
        servers = [v.server for endpoint in self._endpoints.values() for v in endpoint.variants.values()]
        return web.Response(status=200 if all(server.is_ready for server in servers) else 503)

    async def _invoke(self, request: web.Request) -> web.StreamResponse:
        endpoint = self._endpoint(request)
        body = await _read_body(request)
        variant = endpoint.choose(request.headers.get(_TARGET_VARIANT_HEADER))
        headers = _headers_to_container(request)
        target_model = request.headers.get(TARGET_MODEL_HEADER)
        for shadow in endpoint.shadows_of_next():
            self._mirror(endpoint, shadow, target_model, headers, body)
        status, answer_headers, answer = await self._call(endpoint, variant, target_model, headers, body)
        if status != 200:
            raise model_error(endpoint.plan, status, answer)
        return web.Response(body=answer, headers=_headers_to_caller(answer_headers, variant))

    def _endpoint(self, request: web.Request) -> RunningEndpoint:
        name = request.match_info["name"]
        if name not in self._endpoints:
            known = next(iter(self._endpoints.values())).plan
            raise validation_error(f"Endpoint {name} of account {known.account} not found.")
        return self._endpoints[name]

    async def _call(
        self,
        endpoint: RunningEndpoint,
        variant: LocalVariant,
        target_model: str | None,
        headers: Mapping[str, str],
        body: bytes,
    ) -> tuple[int, Mapping[str, str], bytes]:
        path = await variant.path_of(target_model)
        try:
            async with self._session.post(variant.server.url + path, data=body, headers=headers) as answer:
                return answer.status, answer.headers, await answer.read()
        except TimeoutError:
            raise model_error(
                endpoint.plan,
                0,
                "Your invocation timed out while waiting for a response from container primary.",
            ) from None
        except aiohttp.ClientError as error:
            raise model_error(endpoint.plan, 500, f"The container closed the connection: {error}") from error

    def _mirror(
        self,
        endpoint: RunningEndpoint,
        shadow: LocalVariant,
        target_model: str | None,
        headers: Mapping[str, str],
        body: bytes,
    ) -> None:
        async def send() -> None:
            try:
                status, _, _ = await self._call(endpoint, shadow, target_model, headers, body)
            except RuntimeApiError as error:
                status = error.status
            if status != 200:
                shadow.server.settings.say(f"{shadow.server.label}: the shadow answered {status}")

        task = asyncio.create_task(send())
        self._mirrors.add(task)
        task.add_done_callback(self._mirrors.discard)


async def _read_body(request: web.Request) -> bytes:
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise RuntimeApiError(413, "413", f"HTTP content length exceeded {MAX_BODY_BYTES} bytes.") from None


def _headers_to_container(request: web.Request) -> dict[str, str]:
    kept = {name: request.headers[name] for name in _TO_CONTAINER if name in request.headers}
    sagemaker = {
        name: value for name, value in request.headers.items() if name.lower().startswith(_SAGEMAKER_PREFIX)
    }
    return {"Content-Type": "application/octet-stream", **kept, **sagemaker}


def _headers_to_caller(answer: Mapping[str, str], variant: LocalVariant) -> CIMultiDict[str]:
    headers: CIMultiDict[str] = CIMultiDict()
    headers["Content-Type"] = answer.get("Content-Type", "application/octet-stream")
    headers[_VARIANT_HEADER] = variant.plan.name
    headers["x-amzn-RequestId"] = str(uuid4())
    if _CUSTOM_ATTRIBUTES in answer:
        headers[_CUSTOM_ATTRIBUTES] = answer[_CUSTOM_ATTRIBUTES]
    return headers


def gateway_application(
    endpoints: Mapping[str, RunningEndpoint], session: aiohttp.ClientSession
) -> web.Application:
    """The web application that answers for these endpoints."""
    gateway = _Gateway(endpoints, session)
    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_post("/endpoints/{name}/invocations", gateway.invoke)
    application.router.add_get("/ping", gateway.ping)
    return application
