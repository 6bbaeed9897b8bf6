"""An endpoint whose servers are running, and the variant or component that
receives each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.gateway.inference_components import (
    LocalComponent,
    LocalVariant,
    choose_component,
    refuse_component,
)
from constructs_triton_tools.local.gateway.runtime_errors import validation_error
from constructs_triton_tools.local.running_container import RunningContainer
from constructs_triton_tools.local.sources.specs import EndpointSpec, VariantSpec


async def _statistics(server: RunningContainer) -> dict[str, Any]:
    try:
        return {"model_stats": [model.to_dict() for model in await server.statistics()]}
    except LocalEndpointError as error:
        return {"error": str(error)}


class RunningEndpoint:
    """An endpoint whose servers are running. It has either ``variants`` or ``components``."""

    def __init__(self, spec: EndpointSpec, running: Sequence[LocalVariant]) -> None:
        self.spec = spec
        self.variants: dict[str, LocalVariant] = {}
        self.components: dict[str, LocalComponent] = {}
        self._shadows: list[tuple[LocalVariant, ShadowShare]] = []
        self._traffic = TrafficShare(spec.variants)

        production_names = {variant.name for variant in spec.variants}
        shadow_names = {variant.name for variant in spec.shadow_variants}
        for served in running:
            name = served.spec.name
            if name in production_names:
                self.variants[name] = served
            if name in shadow_names:
                self._shadows.append((served, ShadowShare(spec.variants[0], served.spec)))
            if isinstance(served, LocalComponent):
                self.components[name] = served

    def all_servers(self) -> list[LocalVariant]:
        """Return everything that has a server: production and shadow variants, or components."""
        return [
            *self.variants.values(),
            *(shadow for shadow, _ in self._shadows),
            *self.components.values(),
        ]

    async def statistics(self) -> dict[str, Any]:
        """Return what each variant or component counted of its models, or why that is unknown."""
        return {server.spec.name: await _statistics(server.server) for server in self.all_servers()}

    def report(self, line: str) -> None:
        """Print a line about the endpoint for the user."""
        self.all_servers()[0].server.report(f"{self.spec.name}: {line}")

    def choose(self, target_variant: str | None, component: str | None = None) -> LocalVariant:
        """Return the component for a request, or its variant: ``target_variant``,
        else chosen by weight.
        """
        if self.components:
            return choose_component(self.components, component, target_variant, self.spec.not_run)
        refuse_component(component)
        if target_variant is None:
            return self.variants[self._traffic.next()]
        if target_variant not in self.variants:
            raise validation_error(
                f"Variant {target_variant} not found for endpoint {self.spec.name}. "
                f"Its variants: {', '.join(self.variants)}"
            )
        return self.variants[target_variant]

    def keep_copies_of(self, previous: RunningEndpoint) -> None:
        """Keep the copies that components have: an update does not bring them back to zero."""
        for name, component in self.components.items():
            if name in previous.components:
                component.copies = previous.components[name].copies

    def shadows_of_next(self) -> tuple[LocalVariant, ...]:
        """Return the shadow variants that receive a copy of the next request."""
        return tuple(shadow for shadow, share in self._shadows if share.takes_next())


class TrafficShare:
    """Chooses variants by smooth weighted round robin.

    Over any sequence of requests each variant's share is as close to its weight as whole requests
    allow. A variant with weight 0 receives only requests that name it in ``TargetVariant``.
    """

    def __init__(self, variants: Sequence[VariantSpec]) -> None:
        self._weights = {variant.name: variant.weight for variant in variants}
        self._credits = dict.fromkeys(self._weights, 0.0)

    def next(self) -> str:
        """Return the variant for the next request; the first one if all weights are 0."""
        total = sum(self._weights.values())
        for name, weight in self._weights.items():
            self._credits[name] += weight
        chosen = max(
            self._credits,
            key=lambda name: self._credits[name] if self._weights[name] else -total - 1,
        )
        self._credits[chosen] -= total
        return chosen


class ShadowShare:
    """Chooses the requests that a shadow variant receives: its weight relative to production's."""

    def __init__(self, production: VariantSpec, shadow: VariantSpec) -> None:
        self._fraction = min(1.0, shadow.weight / production.weight) if production.weight else 0.0
        self._credit = 0.0

    def takes_next(self) -> bool:
        """Return whether the next request is copied."""
        self._credit += self._fraction
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True
