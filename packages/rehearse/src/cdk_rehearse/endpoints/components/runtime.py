"""``InvokeEndpoint`` and ``InvokeEndpointAsync``: check the component."""

from __future__ import annotations

from collections import Counter

from constructs_triton_core.facts.inference_components import (
    HEADER_NOT_ALLOWED,
    HEADER_REQUIRED,
    NO_CAPACITY,
)

from ...moto_account import sagemaker_runtime
from ...moto_account.differences import Replacement
from ...moto_account.refusals import InvocationError
from .api import InferenceComponents


class Runtime:
    """Answers calls of endpoints.

    ``failures`` counts the calls of each component that found no copy:
    NoCapacityInvocationFailures. Every call is refused with the message ``refusal``, if it is set.
    Otherwise the answer is a fixed text.
    """

    def __init__(self, components: InferenceComponents) -> None:
        self._components = components
        self.failures: Counter[str] = Counter()
        self.refusal: str | None = None

    def patches(self) -> list[Replacement]:
        """Check calls while the simulated account runs."""
        return sagemaker_runtime.invoked_after(self._expect_answer)

    def _expect_answer(self, endpoint_name: str, component_name: str | None) -> None:
        self._check(endpoint_name, component_name)
        if self.refusal is not None:
            raise InvocationError(self.refusal)

    def _check(self, endpoint_name: str, component_name: str | None) -> None:
        """Refuse a call with a wrong inference component, or one without running copies."""
        if not self._hosts_components(endpoint_name):
            if component_name is not None:
                raise InvocationError(HEADER_NOT_ALLOWED)
            return
        if component_name is None:
            raise InvocationError(HEADER_REQUIRED)
        components = self._components.of_endpoint(endpoint_name)
        by_name = {component.name: component for component in components}
        if component_name not in by_name:
            raise InvocationError(f"Inference Component {component_name} not found.")
        if by_name[component_name].copies == 0:
            self.failures[component_name] += 1
            raise InvocationError(NO_CAPACITY)

    def _hosts_components(self, endpoint_name: str) -> bool:
        backend = self._components.fleets.api.backend("sagemaker")
        endpoint = backend.endpoints.get(endpoint_name)
        if endpoint is None:  # calls need no endpoint in this account
            return False
        config = backend.endpoint_configs[endpoint.endpoint_config_name]
        return not any("ModelName" in each for each in config.production_variants)
