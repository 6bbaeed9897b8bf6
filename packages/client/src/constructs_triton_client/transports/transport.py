"""The interface between the client and what carries its bytes to the server.

A transport does not know tensors, and the client does not know HTTP, so users can write their own transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Invocation", "Reply", "Transport"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A request to send.

    Args:
        body: The encoded request.
        content_type: ``Content-Type`` of the request; it contains the size of the JSON at the start of
            ``body``.
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
        content_type: ``Content-Type`` of the response; it contains the size of the JSON at the start of
            ``body``.
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
        """Send the request and yield the bytes of the response in the parts in which they arrive."""
        ...
