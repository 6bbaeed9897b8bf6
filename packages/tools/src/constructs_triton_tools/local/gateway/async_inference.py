"""Asynchronous invocations: requests are read from S3 and responses written to it.

A folder takes the place of S3: ``s3://bucket/key`` is ``<folder>/bucket/key``. The execution role
decides what is read and written there. Sources: botocore's service model of sagemaker-runtime for
headers and limits; AWS documentation on asynchronous inference.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from uuid import uuid4

from aiohttp import web

from constructs_triton_tools.local.gateway.bucket_folder import BucketFolder
from constructs_triton_tools.local.gateway.runtime_errors import (
    RuntimeApiError,
    body_limit,
    check_headers,
    validation_error,
)
from constructs_triton_tools.local.sources.specs import AsyncInferenceSpec

_PREFIX = "X-Amzn-SageMaker-"
_INPUT = f"{_PREFIX}InputLocation"
_EXTENSION = f"{_PREFIX}S3OutputPathExtension"
_FILE_NAME = f"{_PREFIX}Filename"
_TIMEOUT = f"{_PREFIX}InvocationTimeoutSeconds"
_TTL = f"{_PREFIX}RequestTTLSeconds"
#: The defaults of InvocationTimeoutSeconds and RequestTTLSeconds (AWS documentation).
_DEFAULT_TIMEOUT_SECONDS = 900
_DEFAULT_TTL_SECONDS = 21600
_OPERATION = "InvokeEndpointAsync"

Send = Callable[[Mapping[str, str], bytes, float], Awaitable[bytes]]
"""Sends headers and a body to the container, with a timeout in seconds,
and returns the response body.
"""


class AsyncInvocations:
    """The queue of one asynchronous endpoint. ``report`` prints a line for the user."""

    def __init__(
        self,
        output: AsyncInferenceSpec,
        folder: BucketFolder,
        send: Send,
        report: Callable[[str], None],
    ) -> None:
        self._output = output
        self._report = report
        self._folder = folder
        self._send = send
        self._slots = asyncio.Semaphore(output.max_concurrent_invocations)
        self._running: set[asyncio.Task[None]] = set()

    async def accept(self, request: web.Request) -> web.Response:
        """Queue a request and answer where its output will be written."""
        check_headers(_OPERATION, request.headers)
        read = await self._reader(request)
        timeout = int(request.headers.get(_TIMEOUT, _DEFAULT_TIMEOUT_SECONDS))
        ttl = int(request.headers.get(_TTL, _DEFAULT_TTL_SECONDS))
        name = str(uuid4())
        locations = {"OutputLocation": self._output_location(request.headers, name)}
        if self._output.failure_path:
            locations["FailureLocation"] = (
                f"{self._output.failure_path.rstrip('/')}/{name}-error.out"
            )
        task = asyncio.create_task(self._run(read, _headers(request), locations, timeout, ttl))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        inference_id = request.headers.get(f"{_PREFIX}Inference-Id", name)
        headers = {f"{_PREFIX}{name}": location for name, location in locations.items()}
        body = json.dumps({"InferenceId": inference_id})
        return web.Response(status=202, text=body, content_type="application/json", headers=headers)

    async def _reader(self, request: web.Request) -> Callable[[], bytes]:
        """Return a function that reads the request body when the request is sent."""
        location = request.headers.get(_INPUT)
        body = await request.read()
        if (location is not None) == bool(body):
            raise validation_error(
                "An asynchronous invocation needs either InputLocation or a body; set one of them"
            )
        if len(body) > body_limit(_OPERATION):
            raise validation_error(
                "1 validation error detected: Value at 'body' failed to satisfy constraint: Member "
                f"must have length less than or equal to {body_limit(_OPERATION)}"
            )
        if location is None:
            return lambda: body
        self._folder.path_of(location)
        return partial(self._read, location)

    def _read(self, location: str) -> bytes:
        self._check_permission("s3:GetObject", location)
        return self._folder.read(location)

    def _output_location(self, headers: Mapping[str, str], name: str) -> str:
        """Return where the response will be: below the endpoint's path,
        as the caller extends it.
        """
        folders = [self._output.output_path.rstrip("/"), headers.get(_EXTENSION, "").strip("/")]
        location = "/".join([*filter(None, folders), headers.get(_FILE_NAME, f"{name}.out")])
        self._folder.path_of(location)
        return location

    async def _run(
        self,
        read: Callable[[], bytes],
        headers: Mapping[str, str],
        locations: Mapping[str, str],
        timeout: float,
        ttl: float,
    ) -> None:
        try:
            async with asyncio.timeout(ttl):
                await self._slots.acquire()
            try:
                body = await asyncio.to_thread(read)
                answer = await self._send(headers, body, timeout)
            finally:
                self._slots.release()
            await self._write(locations["OutputLocation"], answer)
        except (RuntimeApiError, TimeoutError) as error:
            is_late = isinstance(error, TimeoutError)
            reason = "the request expired in the queue" if is_late else str(error)
            if "FailureLocation" in locations:
                with suppress(RuntimeApiError):  # reported already
                    await self._write(locations["FailureLocation"], reason.encode())

    async def _write(self, location: str, content: bytes) -> None:
        self._check_permission("s3:PutObject", location)
        with suppress(OSError):  # the folder was removed, so there is nowhere to report it
            await asyncio.to_thread(self._folder.write, location, content)

    def _check_permission(self, action: str, location: str) -> None:
        permissions = self._output.permissions
        if permissions is None or permissions.allows(action, location):
            return
        denied = (
            f"AccessDenied: role {permissions.role} is not authorized to perform: {action} on "
            f'resource: "{location.replace("s3://", "arn:aws:s3:::", 1)}"'
        )
        allowed = ", ".join(permissions.allowed_prefixes(action)) or "none"
        self._report(f"{denied}; use a location below one of {allowed}, or grant the role {action}")
        raise RuntimeApiError(403, "AccessDenied", denied)


def _headers(request: web.Request) -> dict[str, str]:
    """Return the container's headers, with the content type of the queued request."""
    kept = {
        "Content-Type": request.headers.get(f"{_PREFIX}Content-Type", "application/octet-stream")
    }
    if f"{_PREFIX}Accept" in request.headers:
        kept["Accept"] = request.headers[f"{_PREFIX}Accept"]
    for name in (f"{_PREFIX}Custom-Attributes", f"{_PREFIX}Inference-Id"):
        if name in request.headers:
            kept[name] = request.headers[name]
    return kept
