"""Simulates the scaling of a variant before it is deployed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from aws_cdk import CfnElement, Stack
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.scaling.scalable_capacity import ScalableCapacity
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton_core.facts.instance_types import InstanceType

if TYPE_CHECKING:
    from constructs_triton_tools.planning import Assumptions, Fleet, Traffic
    from constructs_triton_tools.planning.simulation_result import Simulation

# The properties that a simulation reads, by resource type, in the spelling of Python.
_PROPERTIES: dict[type[CfnElement], tuple[str, ...]] = {
    appscaling.CfnScalableTarget: (
        "min_capacity",
        "max_capacity",
        "resource_id",
        "scheduled_actions",
    ),
    appscaling.CfnScalingPolicy: (
        "scaling_target_id",
        "target_tracking_scaling_policy_configuration",
        "step_scaling_policy_configuration",
    ),
    cloudwatch.CfnAlarm: (
        "alarm_actions",
        "comparison_operator",
        "evaluation_periods",
        "metric_name",
        "period",
        "statistic",
        "threshold",
    ),
}


class SimulatedScaling(ScalableCapacity):
    """A scalable instance count whose policies can be simulated."""

    _instance_type: InstanceType

    def simulate(
        self, traffic: Traffic, fleet: Fleet, *, assumptions: Assumptions | None = None
    ) -> Simulation:
        """Simulate the policies and schedules of this variant on a traffic pattern.

        The arguments are those of ``constructs_triton_tools.planning.simulate``. Use it in the
        tests of your app::

            result = count.simulate(Traffic.pattern("step", low=1500, high=9000), plan.fleet())
            assert result.failed == 0

        Args:
            traffic: Invocations of each minute.
            fleet: Throughput, start time and price of an instance, for example ``plan.fleet()``.
            assumptions: What no documentation promises. Default: the values that were observed,
                ``Assumptions()``.

        Raises:
            InvalidValueError: a number is known only at deployment, or a policy cannot be
                simulated, such as one on latency, on a backlog or on metric math.
        """
        check_has("traffic", traffic, "invocations", 'Traffic.pattern("step", low=9, high=90)')
        check_has("fleet", fleet, "invocations_per_minute", "plan.fleet()")
        check_has("assumptions", assumptions, "wait_minutes", "Assumptions()")
        # Here, because no synth simulates.
        from constructs_triton_tools.planning import simulate as simulate_scaling
        from constructs_triton_tools.planning.template_scaling import scaling_of_resources

        stack = Stack.of(self)
        resources = dict(_render(stack, self.node.find_all()))
        target_id = stack.resolve(self._cfn_target.logical_id)
        scaling = scaling_of_resources(resources, target_id, instance_type=self._instance_type)
        return simulate_scaling(traffic, scaling, fleet, assumptions)


def _render(stack: Stack, constructs: Iterable[Any]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the logical id and the resource of what scales, as a template has them."""
    for construct in constructs:
        names = _PROPERTIES.get(type(construct))
        if names is not None:
            values = {_pascal(name): stack.resolve(getattr(construct, name)) for name in names}
            properties = {
                name: _capitalized(value) for name, value in values.items() if value is not None
            }
            resource = {"Type": construct.cfn_resource_type, "Properties": properties}
            yield stack.resolve(construct.logical_id), resource


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _capitalized(value: Any) -> Any:
    """Return resolved properties with CloudFormation's spelling:
    ``targetValue`` becomes ``TargetValue``.
    """
    if isinstance(value, dict):
        return {name[:1].upper() + name[1:]: _capitalized(each) for name, each in value.items()}
    return [_capitalized(each) for each in value] if isinstance(value, list) else value
