"""What Application Auto Scaling does to components: in to zero when they are idle, out by an alarm.

The instances of a variant follow the bounds of its scalable target. Nothing else happens by itself:
the user says when a component has been idle, and when its alarms are evaluated.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...errors import StackError
from ...moto_account import application_autoscaling
from ...moto_account.application_autoscaling import COPIES
from ...moto_account.differences import Replacement
from .api import InferenceComponents
from .runtime import Runtime

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

    def patches(self) -> list[Replacement]:
        """Bring fleets into the bounds of their targets while the simulated account runs."""
        return [application_autoscaling.registered_before(self._adjust)]

    def _adjust(self, target: Any) -> None:
        """Bring the instances of a variant into the bounds of its scalable target."""
        place = target.resource_id.split("/")
        if place[0] != "endpoint":
            return
        endpoint = self._api.backend("sagemaker").endpoints.get(place[1])
        if endpoint is None:
            return
        for variant in endpoint.production_variants:
            if variant["VariantName"] == place[3] and "DesiredInstanceCount" in variant:
                count = max(variant["DesiredInstanceCount"], target.min_capacity)
                count = min(count, target.max_capacity)
                variant["DesiredInstanceCount"] = count
                variant["CurrentInstanceCount"] = count

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
            dimensions = {dimension.name: dimension.value for dimension in alarm.dimensions or ()}
            if alarm.metric_name == _METRIC and dimensions == {"InferenceComponentName": name}:
                yield alarm

    def _carry_out(self, name: str, policy_arn: str) -> None:
        """Change the copies of a component as a step scaling policy says."""
        policies = self._api.backend("applicationautoscaling").policies.values()
        (policy,) = [policy for policy in policies if policy.policy_arn == policy_arn]
        if policy.resource_id != f"inference-component/{name}":
            raise StackError(f"The alarm of {name} fires a policy of {policy.resource_id}")
        change = _first_step(policy.step_scaling_policy_configuration)
        wanted = self._components.find(name).copies + change
        self._components.set_copies(name, min(wanted, self._target(name).max_capacity))

    def _target(self, name: str) -> Any:
        targets = self._api.backend("applicationautoscaling").targets.get(COPIES, {})
        if f"inference-component/{name}" not in targets:
            raise StackError(f"{name} is no scalable target")
        return targets[f"inference-component/{name}"]


def _first_step(policy: Mapping[str, Any]) -> int:
    """Return the change of the step for a metric that is just above the threshold."""
    assert policy["AdjustmentType"] == "ChangeInCapacity"
    changes = []
    for step in policy["StepAdjustments"]:
        # The bounds are differences from the threshold.
        lowest = step.get("MetricIntervalLowerBound", 0)
        highest = step.get("MetricIntervalUpperBound", float("inf"))
        if lowest <= 0 < highest:
            changes.append(int(step["ScalingAdjustment"]))

    (change,) = changes
    return change
