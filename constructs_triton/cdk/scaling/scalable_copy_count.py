"""Auto scaling of a component's number of copies."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from aws_cdk import Annotations
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct

from constructs_triton.cdk.metrics.component_metrics import component_metric
from constructs_triton.cdk.scaling import targets
from constructs_triton.cdk.scaling.effect import ScalingAtSynthesis
from constructs_triton.cdk.scaling.scalable_capacity import ScalableCapacity
from constructs_triton.cdk.scaling.stepped_scaling import add_first_copy_policy
from constructs_triton.cdk.scaling.target_tracking import (
    ScalingPolicyOptions,
    check_policy,
    with_gpu_cooldowns,
)
from constructs_triton_core.facts.limits import MIN_CAPACITY_COMPONENT
from constructs_triton_core.tokens import is_token

_PREDEFINED = appscaling.PredefinedMetric


class TritonScalableCopyCount(ScalableCapacity):
    """The number of copies of one component, scaled by Application Auto Scaling.

    Created by ``auto_scale_copy_count``. It may have several policies, each on another metric.
    Copies are added when any policy asks for them, and removed when all policies agree. SageMaker
    adds and removes instances to fit the copies.

    Args:
        inference_component_name: Name of the component.
        min_capacity: Minimum number of copies, 0 or more.
        max_capacity: Maximum number of copies.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        inference_component_name: str,
        min_capacity: float,
        max_capacity: float,
    ) -> None:
        super().__init__(
            scope,
            id,
            scalable_dimension="sagemaker:inference-component:DesiredCopyCount",
            resource_id=f"inference-component/{inference_component_name}",
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            least=MIN_CAPACITY_COMPONENT,
            metric=partial(component_metric, inference_component_name=inference_component_name),
        )
        # Application Auto Scaling uses its service-linked role anyway.
        self._cfn_target.add_property_deletion_override("RoleARN")
        self._wake_up: appscaling.StepScalingAction | None = None
        self._has_stop = False
        if min_capacity == 0 or is_token(min_capacity):
            self._add_wake_up()

    def scale_on_invocations_per_copy(
        self,
        id: str,
        *,
        target_invocations_per_minute: float | None = None,
        max_requests_per_second: float | None = None,
        safety_factor: float = 0.5,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of invocations per copy and minute at a target.

        Set either ``target_invocations_per_minute`` or ``max_requests_per_second``.

        Args:
            id: Construct id of the policy.
            target_invocations_per_minute: Target value of the metric.
            max_requests_per_second: Requests per second that one copy can serve according to a load
                test. The target is this times ``safety_factor`` times 60.
            safety_factor: Fraction of that load to aim at, above 0 and at most 1.

        Raises:
            InvalidValueError: both targets or none are set, or a value is out of range.
        """
        check_policy(self.scale_on_invocations_per_copy, id, options)
        target = targets.invocations_target(
            target_invocations_per_minute, max_requests_per_second, safety_factor
        )
        predefined = _PREDEFINED.SAGEMAKER_INFERENCE_COMPONENT_INVOCATIONS_PER_COPY
        return self._tracking.keep_published(
            "InvocationsPerCopy", id, target, options, predefined=predefined
        )

    def scale_on_concurrent_requests_per_copy(
        self, id: str, *, target_concurrent_requests: float, **options: Unpack[ScalingPolicyOptions]
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of concurrent requests per copy at a target.

        SageMaker publishes the metric every 10 seconds, also when there are no requests. So it adds
        copies sooner than other metrics, and it is the metric to scale to zero with, and for
        streamed responses.

        Args:
            id: Construct id of the policy.
            target_concurrent_requests: Requests per copy that are processed or queued at a time.

        Raises:
            InvalidValueError: a value is out of range.
        """
        check_policy(self.scale_on_concurrent_requests_per_copy, id, options)
        targets.check_positive("target_concurrent_requests", target_concurrent_requests)
        predefined = (
            _PREDEFINED.SAGEMAKER_INFERENCE_COMPONENT_CONCURRENT_REQUESTS_PER_COPY_HIGH_RESOLUTION
        )
        return self._tracking.keep_published(
            "ConcurrentRequestsPerCopy",
            id,
            target_concurrent_requests,
            options,
            predefined=predefined,
        )

    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the average utilization of the reserved GPUs at a target.

        The metric is normalized, so the number of GPUs does not matter. Cooldowns default to 600
        seconds for scaling in and 200 seconds for scaling out.

        Args:
            id: Construct id of the policy.
            target_utilization_percent: Target value, 1 to 100.

        Raises:
            InvalidValueError: a value is out of range.
        """
        check_policy(self.scale_on_gpu_utilization, id, options)
        policy = self._tracking.keep_utilization(
            "GPUUtilizationNormalized",
            id,
            target_utilization_percent,
            1,
            with_gpu_cooldowns(options),
        )
        if self._wake_up is not None:
            Annotations.of(self).add_warning_v2(
                "constructs-triton:no-utilization-at-zero",
                f"{id}: SageMaker publishes no utilization of a component without copies, so this "
                "policy alone may not reach min_capacity 0; add "
                "scale_on_concurrent_requests_per_copy, or acknowledge this warning",
            )
        return policy

    def _at_synthesis(self) -> ScalingAtSynthesis:
        return ScalingAtSynthesis(
            self,
            (self.min_capacity, self.max_capacity),
            "copies",
            self._tracking.metrics,
            automatic_policies=0 if self._wake_up is None else 1,
            example="scale_on_concurrent_requests_per_copy",
        )

    def _after_schedule(self, min_capacity: float | None, max_capacity: float | None) -> None:
        if max_capacity == 0:
            self._has_stop = True
        elif min_capacity == 0:
            self._add_wake_up()

    def _add_wake_up(self) -> None:
        if self._wake_up is None:
            failures = self._metric("NoCapacityInvocationFailures", statistic="Sum")
            self._wake_up = add_first_copy_policy(self, "WakeUp", self.scalable_target, failures)


def reaches_zero(count: TritonScalableCopyCount | None) -> bool:
    """Return whether the component may have no copies.

    A policy and an alarm then start the first one, except while a schedule keeps the maximum at 0.
    """
    return count is not None and (count._wake_up is not None or count._has_stop)
