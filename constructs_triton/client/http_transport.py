"""Plain HTTP, to a container that speaks SageMaker's contract: ``/invocations``, ``/models/x/invoke``.

Source: AWS documentation, "Build a container for multi-model endpoints"; triton server
``src/sagemaker_server.cc``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from constructs_triton.client.invocation_errors import build_invocation_error, read_model_message
from constructs_triton.client.transport import Invocation, Reply
from constructs_triton.errors import InvalidValueError, InvocationError, MissingDependencyError

if TYPE_CHECKING:
    import urllib3

__all__ = ["HttpTransport"]

# InvokeEndpoint's options that reach a container, and the headers in which they do.
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
MAXIMUM_RESPONSE_BYTES = 1024**3
MAXIMUM_CONNECTIONS = 50
_CHUNK_BYTES = 1024 * 1024


class HttpTransport:
    """Sends to the container at ``url``, such as ``http://localhost:8080``.

    ``TargetModel`` goes to ``/models/<TargetModel>/invoke``, everything else to ``/invocations``. A
    response beyond ``maximum_response_bytes`` is refused before it is read. Nothing is retried.
    """

    def __init__(
        self,
        url: str,
        *,
        read_timeout_seconds: float = READ_TIMEOUT_SECONDS,
        maximum_response_bytes: int = MAXIMUM_RESPONSE_BYTES,
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise InvalidValueError(f"url: must start with http:// or https://, got {url!r}; add it")
        self.url = url.rstrip("/")
        self.maximum_response_bytes = maximum_response_bytes
        self._read_timeout_seconds = read_timeout_seconds
        self._pool: urllib3.PoolManager | None = None

    def invoke(self, invocation: Invocation) -> Reply:
        with self._open(invocation) as response:
            body = b"".join(self._iterate(response))
            return Reply(body, response.headers.get("Content-Type", ""), {"Headers": dict(response.headers)})

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        with self._open(invocation) as response:
            yield from response.stream(amt=None)

    @contextmanager
    def _open(self, invocation: Invocation) -> Iterator[urllib3.BaseHTTPResponse]:
        pool = self._connect()
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as in _connect

        try:
            response = pool.request(
                "POST",
                self.url + _path(invocation.options),
                body=invocation.body,
                headers={"Content-Type": invocation.content_type, **_headers(invocation.options)},
                preload_content=False,
                decode_content=False,
            )
            try:
                self._refuse_failure(response)
                yield response
            finally:
                response.close()  # of a body read to its end, the connection is back in the pool by then
        except HTTPError as error:
            raise build_invocation_error(
                self.url, "the request failed", code=type(error).__name__, model_message=str(error)
            ) from error

    def _connect(self) -> urllib3.PoolManager:
        if self._pool is None:
            try:
                import urllib3  # noqa: PLC0415 - 0.1 s that only the first call should pay
            except ImportError:
                raise MissingDependencyError(
                    "urllib3: is not installed, got ImportError; pip install 'constructs-triton[client]'"
                ) from None
            self._pool = urllib3.PoolManager(
                maxsize=MAXIMUM_CONNECTIONS,
                retries=False,
                timeout=urllib3.Timeout(connect=5.0, read=self._read_timeout_seconds),
            )
        return self._pool

    def _refuse_failure(self, response: urllib3.BaseHTTPResponse) -> None:
        if response.status != 200:
            body = b"".join(self._iterate(response))
            raise build_invocation_error(
                self.url,
                "the model failed" if response.status >= 500 else "the request was refused",
                status=response.status,
                model_message=read_model_message(body),
            )

    def _iterate(self, response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        self._refuse_size(response.length_remaining or 0)
        total = 0
        for chunk in response.stream(_CHUNK_BYTES):
            total += len(chunk)
            self._refuse_size(total)
            yield chunk

    def _refuse_size(self, size: int) -> None:
        if size > self.maximum_response_bytes:
            raise InvocationError(
                f"endpoint {self.url}: a response may have {self.maximum_response_bytes} bytes, got {size}; "
                "raise maximum_response_bytes"
            )


def _path(options: Mapping[str, Any]) -> str:
    target_model = options.get("TargetModel")
    return f"/models/{quote(target_model, safe='')}/invoke" if target_model else "/invocations"


def _headers(options: Mapping[str, Any]) -> dict[str, str]:
    for name in options:
        if name not in _HEADERS:
            raise InvalidValueError(
                f"{name}: does not reach a container over plain HTTP, got {options[name]!r}; remove it"
            )
    return {_HEADERS[name]: str(value) for name, value in options.items()}
