"""Passes requests to a container and its responses back, without reading the bodies.

Only the headers that SageMaker passes on are kept, in both directions.

Frames of ``application/vnd.amazon.eventstream``, in which a response stream arrives.

Source: AWS documentation, event stream encoding; checked against botocore's decoder.
"""

from __future__ import annotations

import asyncio
import json
import struct
import zlib
from collections.abc import AsyncIterator, Coroutine, Mapping
from typing import Any
from uuid import uuid4

import aiohttp
from aiohttp import web
from multidict import CIMultiDict

from constructs_triton_core.facts.limits import INVOCATION_PAYLOAD_BYTES
from constructs_triton_tools.local.gateway.runtime_errors import RuntimeApiError

_STRING_TYPE = 7
_VARIANT_HEADER = "x-Amzn-Invoked-Production-Variant"
#: The caller's headers that the container receives. SageMaker does not pass on signatures and the
#: rest.
_TO_CONTAINER = ("Content-Type", "Content-Length", "Accept")
_SAGEMAKER_PREFIX = "x-amzn-sagemaker-"
_CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
_CONNECTION_CHECK_SECONDS = 0.1
#: How long a caller may take to read the event that ends a stream.
_LAST_EVENT_SECONDS = 1.0
# Up to this, waiting for the whole body takes less time than a task that passes on its pieces.
_SMALL_BODY_BYTES = 64 * 2**10


def payload_part(payload: bytes) -> bytes:
    """Encode one ``PayloadPart`` event."""
    headers = {
        ":message-type": "event",
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
    }
    return _frame(headers, payload)


def model_stream_error(code: str, message: str) -> bytes:
    """Encode the ``ModelStreamError`` exception, which ends a stream.

    ``code`` is ``ModelInvocationTimeExceeded`` or ``StreamBroken`` (botocore's service model).
    """
    headers = {
        ":message-type": "exception",
        ":exception-type": "ModelStreamError",
        ":content-type": "application/json",
    }
    return _frame(headers, json.dumps({"Message": message, "ErrorCode": code}).encode())


def _frame(headers: dict[str, str], payload: bytes) -> bytes:
    encoded = b"".join(_header(name, value) for name, value in headers.items())
    # Two lengths and their checksum, headers, payload, and a checksum over everything before it.
    prelude = struct.pack(">II", 12 + len(encoded) + len(payload) + 4, len(encoded))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return (
        struct.pack(">B", len(name))
        + name.encode()
        + struct.pack(">BH", _STRING_TYPE, len(text))
        + text
    )


async def relay(
    request: web.Request, answer: aiohttp.ClientResponse, variant: str, seconds: float
) -> web.StreamResponse:
    """Send the container's response on, piece by piece as it arrives, or whole if it is small.

    A caller that has not read it after this many seconds is disconnected.
    """
    length = answer.content_length
    if length is not None and length <= _SMALL_BODY_BYTES:
        return web.Response(
            body=await answer.read(), headers=_headers_to_caller(answer.headers, variant)
        )
    response = web.StreamResponse(headers=_headers_to_caller(answer.headers, variant))
    response.content_length = length
    await response.prepare(request)
    try:
        # The timeout of the session ends a read, but not a write to a caller that does not read.
        async with asyncio.timeout(seconds):
            async for piece in _pieces(answer.content):
                await response.write(piece)
    except (aiohttp.ClientError, TimeoutError):
        # The caller has received status 200 already, so only a broken connection can report the
        # failure.
        _disconnect(request)
    return response


def _disconnect(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def relay_as_events(
    request: web.Request, answer: aiohttp.ClientResponse, variant: str, seconds: float
) -> web.StreamResponse:
    """Send the container's response as an event stream of payload parts.

    A failure after the first byte becomes a ``ModelStreamError`` event, as on SageMaker. A caller
    that has not read the stream after this many seconds is disconnected.
    """
    headers = _headers_to_caller(answer.headers, variant)
    headers["X-Amzn-SageMaker-Content-Type"] = headers["Content-Type"]
    headers["Content-Type"] = "application/vnd.amazon.eventstream"
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    try:
        async with asyncio.timeout(seconds):
            async for piece in _pieces(answer.content):
                await response.write(payload_part(piece))
    except (aiohttp.ClientPayloadError, aiohttp.ClientOSError) as failure:
        await response.write(
            model_stream_error("StreamBroken", f"The container closed the stream: {failure}")
        )
    except TimeoutError:
        message = "The container did not finish its response in time."
        error = model_stream_error("ModelInvocationTimeExceeded", message)
        try:
            async with asyncio.timeout(_LAST_EVENT_SECONDS):
                await response.write(error)
        except TimeoutError:
            _disconnect(request)
    return response


async def while_connected(
    request: web.Request, answer: Coroutine[Any, Any, web.StreamResponse]
) -> web.StreamResponse:
    """Return the answer; end it when the caller leaves, so that the model stops generating.

    Without this, only the failed write of the next piece would end it.

    Raises:
        ConnectionResetError: the caller left before its request was complete.
    """
    task = asyncio.create_task(answer)
    try:
        while not (await asyncio.wait({task}, timeout=_CONNECTION_CHECK_SECONDS))[0]:
            if request.transport is None:
                raise ConnectionResetError
        return task.result()
    except ConnectionResetError:
        if not request.content.is_eof():
            raise
        return web.Response()  # which has no receiver
    finally:
        if task.cancel():
            await asyncio.wait({task})


async def _pieces(stream: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yield the stream as it was received; other ways to read it join, and so copy,
    the pieces first.
    """
    async for piece, _ in stream.iter_chunks():
        if piece:
            yield piece


async def body_of(request: web.Request, *, is_copied: bool) -> bytes | AsyncIterator[bytes]:
    """Return the body to relay as it arrives, or as bytes if it is small or
    ``is_copied`` to others.
    """
    length = request.content_length
    if (
        length is not None
        and _SMALL_BODY_BYTES < length <= INVOCATION_PAYLOAD_BYTES
        and not is_copied
    ):
        return _pieces(request.content)
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise RuntimeApiError(
            413, "413", f"HTTP content length exceeded {INVOCATION_PAYLOAD_BYTES} bytes."
        ) from None


def headers_to_container(request: web.Request) -> dict[str, str]:
    """Return the headers that the container receives."""
    kept = {name: request.headers[name] for name in _TO_CONTAINER if name in request.headers}
    sagemaker = {
        name: value
        for name, value in request.headers.items()
        if name.lower().startswith(_SAGEMAKER_PREFIX)
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
