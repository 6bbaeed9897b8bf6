"""Asynchronous invocations: requests are read from S3 and responses written to it.

A folder takes the place of S3: ``s3://bucket/key`` is ``<folder>/bucket/key``. Sources: botocore's service
model of sagemaker-runtime for headers and limits; AWS documentation on asynchronous inference.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from aiohttp import web

from constructs_triton.local.gateway.runtime_errors import RuntimeApiError, validation_error
from constructs_triton.local.sources.specs import AsyncInferenceSpec

__all__ = ["AsyncInvocations", "BucketFolder", "Send"]

_PREFIX = "X-Amzn-SageMaker-"
_INPUT, _TIMEOUT, _TTL = (
    f"{_PREFIX}InputLocation",
    f"{_PREFIX}InvocationTimeoutSeconds",
    f"{_PREFIX}RequestTTLSeconds",
)
#: The defaults of InvocationTimeoutSeconds and RequestTTLSeconds (AWS documentation).
_DEFAULT_TIMEOUT_SECONDS, _DEFAULT_TTL_SECONDS = 900, 21600
#: Headers of the API that a local endpoint does not support.
_UNSUPPORTED = (f"{_PREFIX}S3OutputPathExtension", f"{_PREFIX}Filename")

#: More digits than any accepted number has; ``int`` itself rejects thousands of them with another error.
_MOST_DIGITS = 9

Send = Callable[[Mapping[str, str], bytes, float], Awaitable[bytes]]
"""Sends headers and a body to the container, with a timeout in seconds, and returns the response body."""


class BucketFolder:
    """A folder in place of S3, with a subfolder for each bucket."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def path_of(self, location: str) -> Path:
        """Return the file for ``s3://bucket/key``.

        Raises:
            RuntimeApiError: the location has another form, or is outside the bucket's folder.
        """
        scheme, _, rest = location.partition("://")
        bucket, _, key = rest.partition("/")
        path = (self._root / bucket / key).resolve()
        if scheme != "s3" or not bucket or not key or not path.is_relative_to(self._root / bucket):
            raise validation_error(f"InputLocation must be s3://bucket/key, got {location!r}")
        return path

    def write(self, location: str, content: bytes) -> None:
        """Write an object. Readers never see a part of it."""
        path = self.path_of(location)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        partial.write_bytes(content)
        partial.replace(path)


class AsyncInvocations:
    """The queue of one asynchronous endpoint."""

    def __init__(self, output: AsyncInferenceSpec, folder: BucketFolder, send: Send) -> None:
        self._output = output
        self._folder = folder
        self._send = send
        self._slots = asyncio.Semaphore(output.max_concurrent_invocations)
        self._running: set[asyncio.Task[None]] = set()

    async def accept(self, request: web.Request) -> web.Response:
        """Queue a request and answer where its output will be written.

        Raises:
            RuntimeApiError: a header is wrong or not supported, or there is no request body.
        """
        read = await self._reader(request)
        timeout = _seconds(request, _TIMEOUT, 1, 3600, _DEFAULT_TIMEOUT_SECONDS)
        ttl = _seconds(request, _TTL, 60, 21600, _DEFAULT_TTL_SECONDS)
        name = str(uuid4())
        locations = {"OutputLocation": f"{self._output.output_path.rstrip('/')}/{name}.out"}
        if self._output.failure_path:
            locations["FailureLocation"] = f"{self._output.failure_path.rstrip('/')}/{name}-error.out"
        task = asyncio.create_task(self._run(read, _headers(request), locations, timeout, ttl))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        inference_id = request.headers.get(f"{_PREFIX}Inference-Id", name)
        headers = {f"{_PREFIX}{name}": location for name, location in locations.items()}
        body = json.dumps({"InferenceId": inference_id})
        return web.Response(status=202, text=body, content_type="application/json", headers=headers)

    async def _reader(self, request: web.Request) -> Callable[[], bytes]:
        """Return a function that reads the request body when the request is sent."""
        for name in _UNSUPPORTED:
            if name in request.headers:
                raise validation_error(
                    f"{name.removeprefix(_PREFIX)} is not supported by a local endpoint; leave it out"
                )
        location = request.headers.get(_INPUT)
        body = await request.read()
        if location is not None:
            return self._folder.path_of(location).read_bytes
        if not body:
            raise validation_error(
                "An asynchronous invocation needs InputLocation or a body; set one of them"
            )
        return lambda: body

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
        except (RuntimeApiError, OSError, TimeoutError) as error:
            reason = "the request expired in the queue" if isinstance(error, TimeoutError) else str(error)
            if "FailureLocation" in locations:
                await self._write(locations["FailureLocation"], reason.encode())
        else:
            await self._write(locations["OutputLocation"], answer)

    async def _write(self, location: str, content: bytes) -> None:
        with suppress(OSError, RuntimeApiError):  # the folder was removed, so there is nowhere to report it
            await asyncio.to_thread(self._folder.write, location, content)


def _headers(request: web.Request) -> dict[str, str]:
    """Return the container's headers, with the content type of the queued request."""
    kept = {"Content-Type": request.headers.get(f"{_PREFIX}Content-Type", "application/octet-stream")}
    if f"{_PREFIX}Accept" in request.headers:
        kept["Accept"] = request.headers[f"{_PREFIX}Accept"]
    for name in (f"{_PREFIX}Custom-Attributes", f"{_PREFIX}Inference-Id"):
        if name in request.headers:
            kept[name] = request.headers[name]
    return kept


def _seconds(request: web.Request, name: str, least: int, most: int, default: int) -> int:
    text = request.headers.get(name, str(default))
    if not text.isdecimal() or len(text) > _MOST_DIGITS or not least <= int(text) <= most:
        raise validation_error(f"{name.removeprefix(_PREFIX)} must be {least} to {most}, got {text!r}")
    return int(text)
