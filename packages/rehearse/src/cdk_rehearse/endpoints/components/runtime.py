"""``InvokeEndpoint`` and ``InvokeEndpointAsync``: check the component. The answer is moto's, or a refusal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from moto.sagemaker.models import sagemaker_backends
from moto.sagemakerruntime.responses import SageMakerRuntimeResponse

from constructs_triton_core.facts.inference_components import (
    COMPONENT_HEADER,
    HEADER_NOT_ALLOWED,
    HEADER_REQUIRED,
    NO_CAPACITY,
)

from ...replacement import replaced
from .api import InferenceComponents

__all__ = ["Runtime"]


def _reading_binary_bodies() -> Callable[..., None]:
    """Read bodies in SageMaker's binary format, which moto cannot decode."""
    original = SageMakerRuntimeResponse.setup_class

    def setup_class(
        response: Any, request: Any, full_url: str, headers: Any, use_raw_body: bool | None = None
    ) -> None:
        original(response, request, full_url, headers, use_raw_body=True)
        is_raw = response.use_raw_body if use_raw_body is None else use_raw_body
        if isinstance(response.body, bytes) and not is_raw:
            response.body = response.body.decode("utf-8", "surrogateescape")

    return setup_class


class _RefusedError(Exception):
    """A ``ValidationError`` of the runtime API."""


class Runtime:
    """Answers calls of endpoints.

    ``failures`` counts the calls of each component that found no copy: NoCapacityInvocationFailures. Every
    call is refused with the message ``refusal``, if it is set. Otherwise the answer is moto's fixed text.
    """

    def __init__(self, components: InferenceComponents) -> None:
        self._components = components
        self.failures: Counter[str] = Counter()
        self.refusal: str | None = None

    def patches(self) -> list[Any]:
        """All patches."""
        return [
            replaced(SageMakerRuntimeResponse, "setup_class", _reading_binary_bodies()),
            *(
                replaced(SageMakerRuntimeResponse, name, self._invoking(name))
                for name in ("invoke_endpoint", "invoke_endpoint_async")
            ),
        ]

    def _invoking(self, operation: str) -> Callable[[Any], Any]:
        original = getattr(SageMakerRuntimeResponse, operation)

        def invoke(response: Any) -> Any:
            name = response.path.split("/")[2]
            try:
                self._check(name, response.headers.get(COMPONENT_HEADER))
                if self.refusal is not None:
                    raise _RefusedError(self.refusal)
            except _RefusedError as error:
                headers = {"status": 400, "x-amzn-errortype": "ValidationError"}
                return 400, headers, json.dumps({"Message": str(error)})
            return original(response)

        return invoke

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
        api = self._components.fleets.api
        backend = sagemaker_backends[api.account][api.region]
        endpoint = backend.endpoints.get(endpoint_name)
        if endpoint is None:  # calls need no endpoint in this account
            return False
        config = backend.endpoint_configs[endpoint.endpoint_config_name]
        return not any("ModelName" in each for each in config.production_variants)
