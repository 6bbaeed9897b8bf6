"""Brings an endpoint to a configuration, and waits for it over several runs of the function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from ..endpoint_state import (
    SETTLE_READS,
    is_changing,
    not_kept,
    running_variants,
    runs,
    variants_of,
)
from ..response import CustomResourceError
from ..retries import make_client
from ..scaling import Scaling, call, typed

KEEP_COUNTS: Mapping[str, Any] = {
    "RetainAllVariantProperties": True,
    "ExcludeRetainedVariantProperties": [
        {"VariantPropertyType": "DesiredWeight"},
        {"VariantPropertyType": "DataCaptureConfig"},
    ],
}
"""Keeps the instance counts, and takes weights and data capture from the configuration."""

_SETTINGS = (
    "DeploymentConfig",
    "ExcludeRetainedVariantProperties",
    "RetainAllVariantProperties",
    "RetainDeploymentConfig",
)
_PAUSE_SECONDS = 10.0


@dataclass
class Adopted:
    """An endpoint that the function updates.

    ``is_time_up`` returns whether this run must end. ``sent`` is the configuration that an earlier
    run of the same request has asked for.
    """

    name: str
    is_time_up: Callable[[], bool]
    sent: str = ""
    sagemaker: Any = field(default_factory=lambda: make_client("sagemaker"))

    def describe(self) -> dict[str, Any]:
        """The endpoint as it is."""
        described: dict[str, Any] = call(self.sagemaker.describe_endpoint, EndpointName=self.name)
        return described

    def config(self, name: str) -> dict[str, Any]:
        """An endpoint configuration."""
        described: dict[str, Any] = call(
            self.sagemaker.describe_endpoint_config, EndpointConfigName=name
        )
        return described

    def settled(self) -> dict[str, Any] | None:
        """The endpoint when nothing changes it; ``None`` if the time of this run is up before."""
        while not self.is_time_up():
            endpoint = self.describe()
            if not is_changing(endpoint):
                return endpoint
            time.sleep(_PAUSE_SECONDS)
        return None

    def bring_to(
        self, config: str, settings: Mapping[str, Any], *, deregisters: bool = False
    ) -> bool:
        """Update the endpoint to a configuration; return ``False`` if the time of this run is up
        before.

        ``settings`` has further members of the request. ``deregisters`` deregisters the variants
        that SageMaker does not change while they are registered for scaling. It waits for an update
        in progress, also one by hand.

        Raises:
            CustomResourceError: SageMaker did not keep the update.
        """
        reads = 0
        while not self.is_time_up():
            endpoint = self.describe()
            if runs(endpoint, config):
                return True
            if not is_changing(endpoint):
                if self.sent != config:
                    if deregisters:
                        self._deregister(config)
                    self._send(config, settings)
                elif (reads := reads + 1) >= SETTLE_READS:
                    raise CustomResourceError(not_kept(endpoint, config))
            elif _pending(endpoint) == config:
                self.sent = config  # an earlier run sent it, and ended before it could say so
            time.sleep(_PAUSE_SECONDS)
        return False

    def restore_scaling(self, saved: Iterable[Mapping[str, Any]], config: str) -> None:
        """Register what is missing of the saved scaling,
        for the variants that a configuration has.
        """
        scaling, present = Scaling(), self.variant_ids(config)
        for each in saved:
            if each["ResourceId"] in present:
                scaling.restore(each)

    def variant_ids(self, config: str) -> list[str]:
        """The resource ids of all variants of a configuration, by which they are registered."""
        return [
            f"endpoint/{self.name}/variant/{name}" for name, _ in variants_of(self.config(config))
        ]

    def _deregister(self, config: str) -> None:
        wanted, scaling = dict(variants_of(self.config(config))), Scaling()
        for name, kind in running_variants(self.name):
            if wanted.get(name) != kind:
                scaling.deregister(f"endpoint/{self.name}/variant/{name}")

    def _send(self, config: str, settings: Mapping[str, Any]) -> None:
        shape = self.sagemaker.meta.service_model.operation_model("UpdateEndpoint").input_shape
        chosen = {name: settings[name] for name in _SETTINGS if name in settings}
        request = {**chosen, "EndpointName": self.name, "EndpointConfigName": config}
        try:
            call(self.sagemaker.update_endpoint, **typed(shape, request))
        except ClientError:
            # A second run for the same event, or an attempt whose response was lost, came first.
            endpoint = self.describe()
            if config not in (_pending(endpoint), endpoint["EndpointConfigName"]):
                raise
        self.sent = config


def _pending(endpoint: Mapping[str, Any]) -> str | None:
    found: str | None = (endpoint.get("PendingDeploymentSummary") or {}).get("EndpointConfigName")
    return found
