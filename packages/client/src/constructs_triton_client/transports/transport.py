"""The interface between the client and what carries its bytes to the server.

A transport does not know tensors, and the client does not know HTTP, so users can write their own
transport.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from constructs_triton_core.errors import InvalidValueError

__all__ = ["Invocation", "Reply", "Transport", "checked_transport", "checked_url"]

# What a transport adds to its address. That of a container may be an endpoint of `local up`.
_PATHS = {"endpoint_url": r"(/endpoints/[^/]+)?(/invocations)?/*$", "url": "(/invocations)?/*$"}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A request to send.

    Args:
        body: The encoded request.
        content_type: ``Content-Type`` of the request; it contains the size of the JSON at the start
            of ``body``.
        options: Parameters of InvokeEndpoint under its names, such as ``TargetModel``.
    """

    body: bytes
    content_type: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """A response as received.

    Args:
        body: The whole response, not decoded.
        content_type: ``Content-Type`` of the response; it contains the size of the JSON at the
            start of ``body``.
        metadata: What InvokeEndpoint returns besides the body, under its names.
    """

    body: bytes
    content_type: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Transport(Protocol):
    """Sends invocations and returns replies.

    Both methods raise ``InvocationError`` when the request fails.

    Args:
        invocation: The request to send.
    """

    def invoke(self, invocation: Invocation) -> Reply:
        """Send the request and wait for the whole response."""
        ...

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        """Send the request and yield the bytes of the response in the parts
        in which they arrive.
        """
        ...


def checked_transport(transport: Transport) -> Transport:
    """Return a transport; raises ``InvalidValueError`` if it is none,
    such as the name of an endpoint.
    """
    if not hasattr(transport, "invoke"):
        raise InvalidValueError(
            f"transport: must have a method invoke, got {transport!r:.80}; for an endpoint of "
            "SageMaker, write TritonClient.for_endpoint(name), for a container "
            "TritonClient(HttpTransport(address))"
        )
    return transport


def checked_url(name: str, url: str) -> str:
    """Return an address without a slash at its end; raises ``InvalidValueError`` if it is none."""
    address = re.sub(_PATHS[name], "", url, count=1)
    if not url.startswith(("http://", "https://")):
        wrong = "must start with http:// or https://"
        fix = "http://host:port"
    elif address != url.rstrip("/"):
        wrong = "must not have the path of a call"
        fix = address
    else:
        return address
    raise InvalidValueError(f"{name}: {wrong}, got {url!r}; write it as {fix}")
