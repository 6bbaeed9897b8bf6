"""Scaling that cannot act: bounds without a policy, and no way back from zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct, IConstruct

from constructs_triton.cdk.scaling.checks import TrackedMetric
from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton_core.facts.scaling_metrics import METRICS_OF_INSTANCES
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.tokens import is_token


@dataclass(frozen=True)
class ScalingAtSynthesis:
    """What a scalable target has when everything is added.

    Args:
        scope: The construct of the target, below which its policies are.
        bounds: Its minimum and its maximum.
        unit: What it counts: instances or copies.
        tracked: The metrics that its target tracking policies keep.
        automatic_policies: The number of policies that the library adds itself, which only start
            the first instance or copy.
        example: A method that adds a policy.
    """

    scope: Construct
    bounds: tuple[float, float]
    unit: str
    tracked: Sequence[TrackedMetric]
    automatic_policies: int
    example: str

    def without_policy(self) -> Finding | None:
        """Return a warning if neither a policy nor a schedule changes the count."""
        is_fixed = self.bounds[0] == self.bounds[1]
        if is_fixed or self._actions or self._policies() > self.automatic_policies:
            return None
        return Finding(
            "scaling-without-policy",
            Severity.WARNING,
            "max_capacity",
            f"no policy and no schedule changes the number of {self.unit} within these bounds",
            f"add one, such as {self.example}, or acknowledge this if scaling outside of this app "
            "has one",
        )

    def without_way_back(self, *, can_reach_zero: bool) -> Finding | None:
        """Return a warning if nothing starts the first instance or copy again.

        Source: SageMaker developer guide, "Autoscale an asynchronous endpoint": only a step policy
        on a metric of the queue scales out from zero.
        """
        actions = self._actions
        is_started = any(_is_above_zero(each.get("minCapacity")) for each in actions)
        is_raised = is_started or any(_is_above_zero(each.get("maxCapacity")) for each in actions)
        if not is_raised and any(each.get("maxCapacity") == 0 for each in actions):
            return self._stopped()
        if not can_reach_zero or is_started or not self.tracked:
            return None
        others = self._policies() - len(self.tracked) - self.automatic_policies
        names = [metric.metric_name for metric in self.tracked]
        if others or self.automatic_policies or not set(names).issubset(METRICS_OF_INSTANCES):
            return None
        return Finding(
            "no-way-back-from-zero",
            Severity.WARNING,
            "min_capacity",
            f"with 0 {self.unit} there is no value of {', '.join(sorted(set(names)))}, so these "
            "policies never start the first one, and requests wait until they expire",
            "add scale_on_backlog, which starts the first instance, set min_capacity to 1, or "
            "add a schedule that raises min_capacity",
            source='SageMaker developer guide, "Autoscale an asynchronous endpoint"',
        )

    def _stopped(self) -> Finding:
        return Finding(
            "no-way-back-from-zero",
            Severity.WARNING,
            "max_capacity",
            f"a schedule sets the maximum to 0 {self.unit}, and no schedule raises it again",
            "add scale_on_schedule with the max_capacity of the day, or acknowledge this if you "
            "raise it by hand",
        )

    @cached_property
    def _constructs(self) -> Sequence[IConstruct]:
        """What the target has, also what is added with the CDK."""
        return self.scope.node.find_all()

    def _policies(self) -> int:
        """The number of policies of the target."""
        return sum(isinstance(each, appscaling.CfnScalingPolicy) for each in self._constructs)

    @cached_property
    def _actions(self) -> Sequence[Mapping[str, Any]]:
        """The new bounds of each schedule."""
        schedules: list[Mapping[str, Any]] = []
        for construct in self._constructs:
            if isinstance(construct, appscaling.CfnScalableTarget):
                schedules += stack_of(self.scope).resolve(construct.scheduled_actions) or []
        return [each.get("scalableTargetAction") or {} for each in schedules]


def _is_above_zero(capacity: Any) -> bool:
    """Whether a schedule sets a bound above 0, or one that is known only at deployment."""
    return capacity is not None and (not isinstance(capacity, int | float) or capacity > 0)


def may_be_zero(capacity: float | None) -> bool:
    """Whether a capacity is 0, or known only at deployment."""
    return capacity is not None and (is_token(capacity) or capacity == 0)
