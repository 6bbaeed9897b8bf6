"""``InvokeEndpoint`` and ``InvokeEndpointAsync``: check the component.

The answer is moto's, or a refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from moto.core.exceptions import ServiceException
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse

from constructs_triton_core.facts.inference_components import (
    COMPONENT_HEADER,
    HEADER_NOT_ALLOWED,
    HEADER_REQUIRED,
    NO_CAPACITY,
)

from ...replacement import wrapped
from .api import InferenceComponents


def _read_binary_body(
    original: Callable[..., None], response: Any, *given: Any, **named: Any
) -> None:
    """Read a body in SageMaker's binary format, which moto cannot decode."""
    is_raw = named.pop("use_raw_body", None)
    original(response, *given, use_raw_body=True, **named)
    is_raw = response.use_raw_body if is_raw is None else is_raw
    if isinstance(response.body, bytes) and not is_raw:
        response.body = response.body.decode("utf-8", "surrogateescape")


class _RefusedError(ServiceException):
    """A refusal of the runtime API."""

    code = "ValidationError"


class Runtime:
    """Answers calls of endpoints.

    ``failures`` counts the calls of each component that found no copy:
    NoCapacityInvocationFailures. Every call is refused with the message ``refusal``, if it is set.
    Otherwise the answer is moto's fixed text.
    """

    def __init__(self, components: InferenceComponents) -> None:
        self._components = components
        self.failures: Counter[str] = Counter()
        self.refusal: str | None = None

    def patches(self) -> list[Any]:
        """All patches."""
        response = SageMakerRuntimeResponse
        return [
            wrapped(response, "setup_class", _read_binary_body),
            *(
                wrapped(response, name, self._invoke)
                for name in ("invoke_endpoint", "invoke_endpoint_async")
            ),
        ]

    def _invoke(self, original: Callable[[Any], Any], response: Any) -> Any:
        name = response.path.split("/")[2]
        self._check(name, response.headers.get(COMPONENT_HEADER))
        if self.refusal is not None:
            raise _RefusedError(self.refusal)
        return original(response)

    def _check(self, endpoint_name: str, component_name: str | None) -> None:
        if not self._hosts_components(endpoint_name):
            if component_name is not None:
                raise _RefusedError(HEADER_NOT_ALLOWED)
            return
        if component_name is None:
            raise _RefusedError(HEADER_REQUIRED)
        by_name = {each.name: each for each in self._components.of_endpoint(endpoint_name)}
        if component_name not in by_name:
            raise _RefusedError(f"Inference Component {component_name} not found.")
        if by_name[component_name].copies == 0:
            self.failures[component_name] += 1
            raise _RefusedError(NO_CAPACITY)

    def _hosts_components(self, endpoint_name: str) -> bool:
        backend = self._components.fleets.api.backend("sagemaker")
        endpoint = backend.endpoints.get(endpoint_name)
        if endpoint is None:  # calls need no endpoint in this account
            return False
        config = backend.endpoint_configs[endpoint.endpoint_config_name]
        return not any("ModelName" in each for each in config.production_variants)
