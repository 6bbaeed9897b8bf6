"""The seam between the client and whatever carries bytes to the server.

A transport knows nothing of tensors, the client nothing of HTTP: users can bring a transport of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

__all__ = ["Invocation", "Reply", "Transport"]


@dataclass(frozen=True, slots=True)
class Invocation:
    """A body to send. ``options`` are InvokeEndpoint's own, by its names: ``TargetModel`` and so on."""

    body: bytes
    content_type: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back. ``metadata`` is what InvokeEndpoint answers beside the body, by its names."""

    body: bytes
    content_type: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Transport(Protocol):
    """Carries invocations; any failure is an ``InvocationError``."""

    def invoke(self, invocation: Invocation) -> Reply:
        """Send and wait for the whole answer."""
        ...

    def stream(self, invocation: Invocation) -> Iterator[bytes]:
        """Send, and hand out the answer's bytes in the parts in which they arrive."""
        ...
