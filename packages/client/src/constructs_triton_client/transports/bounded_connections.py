"""Connections that read a bounded number of bytes for one response, in a bounded time.

http.client, with which urllib3 and botocore read, has no bound for interim responses and trailers,
and a chunk with a negative size has no end. botocore reads the body of an error whole. So
everything is counted where it arrives from the socket.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from http.client import HTTPResponse
from io import BufferedReader, RawIOBase
from typing import TYPE_CHECKING, Any, ClassVar

from constructs_triton_client.transports.bounded_reader import BoundedReader
from constructs_triton_client.transports.event_stream_body import EventStreamBody
from constructs_triton_core.errors import InvocationError

if TYPE_CHECKING:
    from urllib3 import HTTPConnectionPool

MAXIMUM_HEAD_BYTES = 1024**2
MAXIMUM_ERROR_BYTES = 1024**2
MAXIMUM_SECONDS = 3600.0


def bound_pools(
    pools: Mapping[str, type[HTTPConnectionPool]], reader: BoundedReader
) -> dict[str, type[HTTPConnectionPool]]:
    """Return urllib3's classes of connection pools, by scheme,
    with connections that are bounded.
    """
    response = type("BoundedResponse", (_BoundedResponse,), {"reader": reader})
    return {scheme: _bound_pool(pool, response) for scheme, pool in pools.items()}


def bound_client(client: Any, reader: BoundedReader) -> None:
    """Bound what a boto3 client reads, and pass the parts of a stream on as they arrive.

    botocore has no public access to its connections. Should a later version arrange them
    differently, bodies are still bounded by ``read_body`` and by the event below.
    """
    session = getattr(getattr(client, "_endpoint", None), "http_session", None)
    pools = getattr(session, "_pool_classes_by_scheme", {})
    pools.update(bound_pools(pools, reader))
    client.meta.events.register(
        "before-parse.sagemaker-runtime.InvokeEndpointWithResponseStream",
        lambda response_dict, **_: _stream_as_it_arrives(response_dict, reader),
    )
    client.meta.events.register("request-created.s3.PutObject", _expect_nothing)


def _stream_as_it_arrives(response: dict[str, Any], reader: BoundedReader) -> None:
    if response["status_code"] < 300:
        response["body"] = EventStreamBody(response["body"], reader)


def _expect_nothing(request: Any, **_: Any) -> None:
    # botocore reads the interim response without a bound, and for ever if the connection ends.
    del request.headers["Expect"]


def _bound_pool(pool: type[HTTPConnectionPool], response: type) -> type[HTTPConnectionPool]:
    connection: Any = pool.ConnectionCls
    bounded = type(connection.__name__, (connection,), {"response_class": response})
    return type(pool.__name__, (pool,), {"ConnectionCls": bounded})


class _BoundedResponse(HTTPResponse):
    """A response whose status and headers, body and duration are bounded."""

    reader: ClassVar[BoundedReader]

    def __init__(self, sock: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(sock, *arguments, **options)
        self._received = _ReceivedBytes(self.fp.detach(), self.reader)
        self.fp = BufferedReader(self._received)

    def begin(self) -> None:
        """Read the status and the headers, and any interim responses before them."""
        super().begin()
        self._received.expect_body(self.status)


class _ReceivedBytes(RawIOBase):
    """Counts the bytes of one response, with its headers and the sizes of its chunks."""

    def __init__(self, raw: RawIOBase, reader: BoundedReader) -> None:
        self._raw = raw
        self._reader = reader
        self._status: int | None = None
        self._left = MAXIMUM_HEAD_BYTES
        self._deadline: float | None = None

    def expect_body(self, status: int) -> None:
        """Count the bytes of a body from now on."""
        self._status = status
        if status < 300:
            # Chunks of 4 KiB need 0.2 percent more bytes than their content.
            self._left = self._reader.maximum_bytes * 9 // 8 + MAXIMUM_HEAD_BYTES
        else:
            self._left = MAXIMUM_ERROR_BYTES

    def readinto(self, buffer: Any) -> int | None:
        """Read from the socket; raises ``InvocationError`` if too much has arrived,
        or for too long.
        """
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left < 0:
            raise self._excess()
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + MAXIMUM_SECONDS
        elif now > self._deadline:
            raise InvocationError(
                f"{self._reader.where}: a response may take at most {MAXIMUM_SECONDS:g} s from its "
                "first byte; send a smaller request"
            )
        return count

    def _excess(self) -> InvocationError:
        """Return the error about a response that is larger than allowed."""
        if self._status is None:
            return InvocationError(
                f"{self._reader.where}: the status and headers of a response may have at most "
                f"{MAXIMUM_HEAD_BYTES} bytes; check that the address is that of an endpoint"
            )
        if self._status < 300:
            return self._reader.too_long("got more with the sizes of its chunks")
        return InvocationError(
            f"{self._reader.where}: an error may have at most {MAXIMUM_ERROR_BYTES} bytes, got "
            f"more with status {self._status}; see the endpoint's log for the cause",
            status=self._status,
        )

    def readable(self) -> bool:
        """Whether bytes can be read: always."""
        return True

    def fileno(self) -> int:
        """Return the number of the socket."""
        return self._raw.fileno()

    def close(self) -> None:
        """Close the socket's file."""
        self._raw.close()
        super().close()
