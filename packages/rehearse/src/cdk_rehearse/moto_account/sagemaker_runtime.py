"""Amazon SageMaker Runtime: calls of endpoints.

Sources: SageMaker API reference, InvokeEndpoint and InvokeEndpointAsync.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.sagemakerruntime.responses import SageMakerRuntimeResponse

from constructs_triton_core.facts.inference_components import COMPONENT_HEADER

from .differences import Difference, Replacement

_BINARY = Difference(
    SageMakerRuntimeResponse,
    "setup_class",
    "takes bodies that are no text, such as SageMaker's binary format",
    since="5.2.5",
)
_INVOKE = Difference(
    SageMakerRuntimeResponse,
    "invoke_endpoint",
    "refuses calls without the inference component that an endpoint needs, or without a copy of it",
    since="5.0.0",
)
_INVOKE_ASYNC = Difference(
    SageMakerRuntimeResponse,
    "invoke_endpoint_async",
    "refuses calls without the inference component that an endpoint needs, or without a copy of it",
    since="5.1.0",
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    return [_BINARY.wrapped_by(_read_binary_body)]


def invoked_after(check: Callable[[str, str | None], None]) -> list[Replacement]:
    """Answer a call after a check, which gets the endpoint's name and the component's, if any."""

    def around(original: Callable[[Any], Any], response: Any) -> Any:
        endpoint = response.path.split("/")[2]
        check(endpoint, response.headers.get(COMPONENT_HEADER))
        return original(response)

    return [_INVOKE.wrapped_by(around), _INVOKE_ASYNC.wrapped_by(around)]


def _read_binary_body(
    original: Callable[..., None], response: Any, *given: Any, **named: Any
) -> None:
    is_raw = named.pop("use_raw_body", None)
    original(response, *given, use_raw_body=True, **named)
    is_raw = response.use_raw_body if is_raw is None else is_raw
    if isinstance(response.body, bytes) and not is_raw:
        response.body = response.body.decode("utf-8", "surrogateescape")
