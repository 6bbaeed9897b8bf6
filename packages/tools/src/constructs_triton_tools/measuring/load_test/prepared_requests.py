"""Requests as boto3 would send them: address, headers and body, ready to be signed and sent many times."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from constructs_triton_client import HttpTransport, Invocation, SageMakerTransport
from constructs_triton_client.transports.http_transport import container_headers, container_path
from constructs_triton_core.errors import InvalidValueError

# What a signature consists of, and what boto3 adds for each attempt. The rest of the headers stays.
_RENEWED = {"authorization", "x-amz-date", "x-amz-security-token"}
_PER_ATTEMPT = {"amz-sdk-invocation-id", "amz-sdk-request", "user-agent", "content-length"}
_SCOPE = re.compile(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/aws4_request")


@dataclass(frozen=True, slots=True)
class SigningScope:
    """Region and service name of a signature (Signature Version 4)."""

    region: str
    service: str


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request to send.

    ``headers`` are without the signature. ``scope`` is the Region and the service of the signature; ``None``
    if the request is not signed.
    """

    url: str
    headers: dict[str, str]
    body: bytes = field(repr=False)
    scope: SigningScope | None = None
    weight: float = 1.0


def prepare(
    transport: SageMakerTransport | HttpTransport,
    invocation: Invocation,
    *,
    weight: float = 1.0,
    is_stream: bool = False,
) -> PreparedRequest:
    """Return the request that a transport would send for an invocation. Nothing is sent.

    boto3 resolves the address, writes the parameters of InvokeEndpoint as headers, and decides whether the
    request is signed.

    Nothing is sent over ``transport``.
    """
    if not weight > 0:
        raise InvalidValueError(f"weight: must be above 0, got {weight}; raise it, or remove the request")
    if isinstance(transport, HttpTransport):
        headers = {"Content-Type": invocation.content_type, **container_headers(invocation.options)}
        url = transport.url + container_path(invocation.options)
        return PreparedRequest(url, headers, invocation.body, weight=weight)
    sent = _capture(transport, invocation, is_stream=is_stream)
    headers = {name: _text(value) for name, value in sent.headers.items()}
    kept = {name: value for name, value in headers.items() if name.lower() not in _RENEWED | _PER_ATTEMPT}
    return PreparedRequest(sent.url, kept, invocation.body, _scope(headers), weight)


def _capture(transport: SageMakerTransport, invocation: Invocation, *, is_stream: bool) -> Any:
    """Let boto3 make the whole request, and take it before it is sent."""
    captured: list[Any] = []

    def answer(request: Any, **_: Any) -> Any:
        from botocore.awsrequest import AWSResponse
        from botocore.compat import HTTPHeaders

        captured.append(request)
        return AWSResponse(request.url, 200, HTTPHeaders(), _EmptyBody())

    events = transport.client("sagemaker-runtime").meta.events
    operation = "InvokeEndpointWithResponseStream" if is_stream else "InvokeEndpoint"
    name = f"before-send.sagemaker-runtime.{operation}"
    events.register(name, answer)
    try:
        if is_stream:
            list(transport.stream(invocation))
        else:
            transport.invoke(invocation)
    finally:
        events.unregister(name, answer)
    return captured[0]


class _EmptyBody:
    """The body of a response with nothing in it."""

    def stream(self, *_: Any, **__: Any) -> Any:
        return iter(())

    def read(self, *_: Any) -> bytes:
        return b""

    def close(self) -> None:
        """There is no connection."""


def _scope(headers: dict[str, str]) -> SigningScope | None:
    match = _SCOPE.search(headers.get("Authorization", ""))
    return SigningScope(*match.groups()) if match else None


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
