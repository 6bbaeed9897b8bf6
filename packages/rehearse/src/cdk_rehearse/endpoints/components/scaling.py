"""What Application Auto Scaling does to components: in to zero when they are idle, out by an alarm.

The instances of a variant follow the bounds of its scalable target. Nothing else happens by itself:
the user says when a component has been idle, and when its alarms are evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any

from moto.applicationautoscaling import models, responses

from ...errors import StackError
from ...replacement import replaced, wrapped
from .api import InferenceComponents
from .runtime import Runtime

_DIMENSION = "sagemaker:inference-component:DesiredCopyCount"
_METRIC = "NoCapacityInvocationFailures"
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
}


class CopyScaling:
    """Scales the components of one account."""

    def __init__(self, components: InferenceComponents, runtime: Runtime) -> None:
        self._components = components
        self._runtime = runtime
        self._api = components.fleets.api

    def patches(self) -> list[Any]:
        """Add the dimension of components, which moto lacks."""
        known = {each.name: each.value for each in models.ScalableDimensionValueSet}
        dimensions = Enum(  # type: ignore[misc]  # the members are moto's
            "ScalableDimensionValueSet",
            {**known, "SAGEMAKER_COMPONENT_DESIRED_COPY_COUNT": _DIMENSION},
        )
        return [
            *(
                replaced(each, "ScalableDimensionValueSet", dimensions)
                for each in (models, responses)
            ),
            wrapped(
                models.ApplicationAutoscalingBackend, "register_scalable_target", self._register
            ),
        ]

    def _register(
        self, original: Callable[..., Any], backend: Any, *given: Any, **named: Any
    ) -> Any:
        """Adjust the capacity to the new bounds (Application Auto Scaling API:
        RegisterScalableTarget).
        """
        target = original(backend, *given, **named)
        endpoints = self._api.backend("sagemaker").endpoints
        place = target.resource_id.split("/")
        found = endpoints.get(place[1]) if place[0] == "endpoint" else None
        for variant in found.production_variants if found else ():
            if variant["VariantName"] == place[3] and "DesiredInstanceCount" in variant:
                count = min(
                    max(variant["DesiredInstanceCount"], target.min_capacity), target.max_capacity
                )
                variant["DesiredInstanceCount"] = variant["CurrentInstanceCount"] = count
        return target

    def scale_in(self, name: str) -> None:
        """Bring an idle component down to the minimum of its scalable target."""
        self._components.set_copies(name, self._target(name).min_capacity)

    def evaluate_alarms(self, name: str) -> None:
        """Carry out the policies of the alarms that the failed calls of the last minute set off."""
        count = self._runtime.failures.pop(name, 0)
        for alarm in self._alarms(name):
            compare = _COMPARISONS[alarm.comparison_operator]
            if compare(count, alarm.threshold):
                for arn in alarm.alarm_actions:
                    self._carry_out(name, arn)

    def _alarms(self, name: str) -> Iterator[Any]:
        """The alarms on the calls without capacity; their only dimension is the component."""
        for alarm in self._api.backend("cloudwatch").alarms.values():
            dimensions = {each.name: each.value for each in alarm.dimensions or ()}
            if alarm.metric_name == _METRIC and dimensions == {"InferenceComponentName": name}:
                yield alarm

    def _carry_out(self, name: str, policy_arn: str) -> None:
        policies = self._api.backend("applicationautoscaling").policies.values()
        (policy,) = [each for each in policies if each.policy_arn == policy_arn]
        if policy.resource_id != f"inference-component/{name}":
            raise StackError(f"The alarm of {name} fires a policy of {policy.resource_id}")
        change = _first_step(policy.step_scaling_policy_configuration)
        wanted = self._components.find(name).copies + change
        self._components.set_copies(name, min(wanted, self._target(name).max_capacity))

    def _target(self, name: str) -> Any:
        targets = self._api.backend("applicationautoscaling").targets.get(_DIMENSION, {})
        if f"inference-component/{name}" not in targets:
            raise StackError(f"{name} is no scalable target")
        return targets[f"inference-component/{name}"]


def _first_step(policy: Mapping[str, Any]) -> int:
    """Return the change of the step for a metric that is just above the threshold."""
    assert policy["AdjustmentType"] == "ChangeInCapacity"
    (change,) = [
        int(each["ScalingAdjustment"])
        for each in policy["StepAdjustments"]
        if each.get("MetricIntervalLowerBound", 0)
        <= 0
        < each.get("MetricIntervalUpperBound", float("inf"))
    ]
    return change
