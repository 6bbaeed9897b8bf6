"""What an app may do with any scalable target: keep a metric at a target,
and change the bounds at a time.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Unpack

from aws_cdk import TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.scaling import checks, targets
from constructs_triton.cdk.scaling.customized_metric import metric_value
from constructs_triton.cdk.scaling.effect import ScalingAtSynthesis, may_be_zero
from constructs_triton.cdk.scaling.target_tracking import (
    PublishedMetric,
    ScalingPolicyOptions,
    TargetTracking,
    check_policy,
)
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton.cdk.validation.read_once import environment_of
from constructs_triton.cdk.validation.synthesis_warning import add_warning, at_synthesis
from constructs_triton_core.facts.limits import RangeLimit


class ScalableCapacity(Construct):
    """The instance count of a variant or the copy count of a component, with its scalable target.

    ``resource_id`` refers to the endpoint or the component, so the target is created after it and
    deleted before it. ``least`` is the limit of the minimum. ``metric`` returns the metrics that
    SageMaker publishes.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        scalable_dimension: str,
        resource_id: str,
        min_capacity: float,
        max_capacity: float,
        least: RangeLimit,
        metric: PublishedMetric,
    ) -> None:
        targets.check_capacity(min_capacity, max_capacity, least)
        super().__init__(scope, id)
        self.min_capacity = min_capacity
        self.max_capacity = max_capacity
        here = environment_of(self)
        role_arn = targets.service_linked_role_arn(here.partition, here.account)
        self.scalable_target = appscaling.ScalableTarget(
            self,
            "Resource",
            service_namespace=appscaling.ServiceNamespace.SAGEMAKER,
            scalable_dimension=scalable_dimension,
            resource_id=resource_id,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            # Without a role the CDK would create one that nothing uses.
            role=iam.Role.from_role_arn(self, "ServiceLinkedRole", role_arn, mutable=False),
        )
        self._least = least
        self._metric = metric
        self._tracking = TargetTracking(self, self.scalable_target, metric)
        self._may_reach_zero = may_be_zero(min_capacity)
        at_synthesis(self, self._warn_of_scaling)

    @property
    def _cfn_target(self) -> appscaling.CfnScalableTarget:
        resource = self.scalable_target.node.default_child
        assert isinstance(resource, appscaling.CfnScalableTarget)
        return resource

    def scale_to_track_metric(
        self,
        id: str,
        *,
        metric: cloudwatch.IMetric,
        target_value: float,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep any metric at a target. The metric must fall in proportion when capacity is added.

        Metric math and percentiles are supported. The service ignores the period and evaluates each
        minute.

        Args:
            id: Construct id of the policy.
            metric: The metric.
            target_value: Target value, in the unit of the metric.

        Raises:
            InvalidValueError: not a metric, a metric that has a policy, or options out of range.
        """
        check_policy(self.scale_to_track_metric, id, options)
        check_has(f"{id}.metric", metric, "to_metric_config", "endpoint.metric_model_latency()")
        return self._tracking.keep(id, metric_value(metric), target_value, options)

    def scale_on_schedule(
        self,
        id: str,
        *,
        schedule: appscaling.Schedule,
        min_capacity: float | None = None,
        max_capacity: float | None = None,
        start_time: datetime | None = None,
        end_time: datetime | None = None,
        time_zone: TimeZone | None = None,
    ) -> None:
        """Change the minimum or maximum number of instances or copies at a time.

        Other policies keep working between the new bounds. With a maximum of 0, requests start
        nothing until another schedule raises the maximum.

        Args:
            id: Construct id of the scheduled action.
            schedule: When the bounds change, such as ``Schedule.cron(hour="20", minute="0")``.
            min_capacity: New minimum. Default: unchanged.
            max_capacity: New maximum. Default: unchanged.
            start_time: Time from which the schedule applies. Default: immediately.
            end_time: Time until which the schedule applies. Default: without end.
            time_zone: Time zone of the schedule. Default: UTC.

        Raises:
            InvalidValueError: no bounds are set, bounds are out of range, or a time has the wrong
                type.
        """
        times: dict[str, Any] = {
            "schedule": schedule,
            "start_time": start_time,
            "end_time": end_time,
            "time_zone": time_zone,
        }
        checks.check_schedule(id, min_capacity, max_capacity, self._least)
        checks.check_schedule_times(id, times)
        self.scalable_target.scale_on_schedule(
            id, min_capacity=min_capacity, max_capacity=max_capacity, **times
        )
        self._after_schedule(min_capacity, max_capacity)

    def _at_synthesis(self) -> ScalingAtSynthesis:
        """Return what the target has when everything is added."""
        raise NotImplementedError

    def _warn_of_scaling(self) -> None:
        scaling = self._at_synthesis()
        way_back = scaling.without_way_back(can_reach_zero=self._may_reach_zero)
        for finding in (scaling.without_policy(), way_back):
            if finding is not None:
                add_warning(self, finding)

    def _after_schedule(self, min_capacity: float | None, max_capacity: float | None) -> None:
        """Add what a schedule with these bounds needs."""
