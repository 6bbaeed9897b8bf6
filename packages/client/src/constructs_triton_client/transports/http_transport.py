"""Plain HTTP to a container with SageMaker's paths: ``/invocations`` and ``/models/x/invoke``.

Source: AWS documentation, "Build a container for multi-model endpoints"; triton server
``src/sagemaker_server.cc``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from constructs_triton_client.errors import (
    MAXIMUM_PARSED_BYTES,
    build_invocation_error,
    read_model_message,
)
from constructs_triton_client.transports.bounded_reader import MAXIMUM_RESPONSE_BYTES, BoundedReader
from constructs_triton_client.transports.transport import Invocation, Reply, checked_url
from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    MissingDependencyError,
)

if TYPE_CHECKING:
    import urllib3

__all__ = ["HttpTransport", "container_headers", "container_url"]

# The parameters of InvokeEndpoint that reach a container, and their headers.
# Source: botocore sagemaker-runtime service model.
_HEADERS = {
    "Accept": "Accept",
    "CustomAttributes": "X-Amzn-SageMaker-Custom-Attributes",
    "InferenceId": "X-Amzn-SageMaker-Inference-Id",
    "SessionId": "X-Amzn-SageMaker-Session-Id",
    "TargetModel": "X-Amzn-SageMaker-Target-Model",
    "TargetVariant": "X-Amzn-SageMaker-Target-Variant",
}
READ_TIMEOUT_SECONDS = 70.0
MAXIMUM_CONNECTIONS = 50


class HttpTransport:
    """Sends requests to a container over plain HTTP.

    A request with ``TargetModel`` goes to ``/models/<TargetModel>/invoke``, any other to
    ``/invocations``. Requests are not retried. Safe to use from several threads, and from processes
    after a fork.

    Args:
        url: Address of the container, such as ``http://localhost:8080``, or one ending in
            ``/completions``.
        read_timeout_seconds: Longest pause within a response, in seconds.
        maximum_response_bytes: A longer response or stream raises ``InvocationError``, before it is
            read if its length is announced.
        invocation: The request to send; its options must be ones that SageMaker passes on to a
            container.

    Raises:
        InvalidValueError: ``url`` is not an address that starts with ``http://`` or ``https://``.
    """

    def __init__(
        self,
        url: str,
        *,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
        maximum_response_bytes: int = MAXIMUM_RESPONSE_BYTES,
    ) -> None:
        self.url = checked_url("url", url)
        self._reader = BoundedReader(f"endpoint {self.url}", maximum_response_bytes)
        self._read_timeout_seconds = read_timeout_seconds
        self._pools: dict[int, urllib3.PoolManager] = {}

    def prepare(self) -> None:
        """Import urllib3, which the first request otherwise does.

        Raises:
            MissingDependencyError: urllib3 is not installed.
        """
        self._connect()

    def invoke(self, invocation: Invocation) -> Reply:
        """Send the request and wait for the whole response.

        Raises:
            InvalidValueError: an option is not sent over plain HTTP.
            InvocationError: the request failed, or the status is not 200.
        """
        with self._open(invocation) as response:
            body = self._reader.read_whole(response.read, response.length_remaining)
            return Reply(
                body, response.headers.get("Content-Type", ""), {"Headers": dict(response.headers)}
            )

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        """Send the request and yield the bytes of the response as they arrive;
        errors as ``invoke``.
        """
        with self._open(invocation) as response:
            yield from self._reader.iterate_parts(response)

    @contextmanager
    def _open(self, invocation: Invocation) -> Iterator[urllib3.BaseHTTPResponse]:
        """Send a request, and close its response at the end."""
        pool = self._connect()
        try:
            response = pool.request(
                "POST",
                container_url(self.url, invocation.options),
                body=invocation.body,
                headers={
                    "Content-Type": invocation.content_type,
                    **container_headers(invocation.options),
                },
                preload_content=False,
                decode_content=False,
            )
            try:
                if response.status != 200:
                    is_failure = response.status >= 500
                    raise build_invocation_error(
                        self.url,
                        "the model failed" if is_failure else "the request was rejected",
                        status=response.status,
                        model_message=read_model_message(response.read(MAXIMUM_PARSED_BYTES)),
                    )
                yield response
            finally:
                # a connection whose body was read to the end is already back in the pool
                response.close()
        except ConstructsTritonError:
            raise
        except (
            Exception
        ) as error:  # a broken response raises errors of urllib3 and of Python itself
            raise build_invocation_error(
                self.url, "the request failed", code=type(error).__name__, model_message=str(error)
            ) from error

    def _connect(self) -> urllib3.PoolManager:
        """Return the connections of this process, which its first call opens."""
        process = os.getpid()  # processes that share a connection receive each other's responses
        if process not in self._pools:
            try:
                import urllib3  # noqa: PLC0415 - takes 0.1 s, so only the first call imports it
            except ImportError:
                raise MissingDependencyError(
                    "urllib3 is not installed; run `pip install 'constructs-triton-client[http]'`"
                ) from None
            from constructs_triton_client.transports.bounded_connections import bound_pools  # noqa: PLC0415 - likewise

            pool = urllib3.PoolManager(
                maxsize=MAXIMUM_CONNECTIONS,
                retries=False,
                timeout=urllib3.Timeout(connect=5.0, read=self._read_timeout_seconds),
            )
            pool.pool_classes_by_scheme = bound_pools(pool.pool_classes_by_scheme, self._reader)
            self._pools[process] = pool
        return self._pools[process]


def container_url(url: str, options: Mapping[str, Any]) -> str:
    """Return the address of an invocation at a container, or at a server with OpenAI's paths."""
    if url.endswith("/completions"):
        return url
    target_model = options.get("TargetModel")
    return url + (
        f"/models/{quote(target_model, safe='')}/invoke" if target_model else "/invocations"
    )


def container_headers(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers that a container receives for parameters of InvokeEndpoint.

    Raises:
        InvalidValueError: SageMaker does not pass a parameter on.
    """
    for name in options:
        if name not in _HEADERS:
            raise InvalidValueError(
                f"{name}: is not sent over plain HTTP; remove it, or use TritonClient.for_endpoint"
            )
    return {_HEADERS[name]: str(value) for name, value in options.items()}
