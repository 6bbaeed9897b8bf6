"""Auto scaling of a variant's instance count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Unpack

from aws_cdk import Duration, TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metrics import variant_metric
from constructs_triton.cdk.scaling import checks, targets
from constructs_triton.cdk.scaling.checks import TrackedMetric
from constructs_triton.cdk.scaling.scalable_target import add_schedule, cfn_target, make_scalable_target
from constructs_triton.cdk.scaling.scaling_from_zero import add_first_instance_policy
from constructs_triton.cdk.scaling.simulated_scaling import SimulatedScaling
from constructs_triton.cdk.scaling.target_tracking import (
    ScalingPolicyOptions,
    TargetTracking,
    check_options,
    with_gpu_cooldowns,
)
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.tokens import is_token

__all__ = ["ScalingPolicyOptions", "TrackedMetric", "TritonScalableInstanceCount"]

_PREDEFINED = appscaling.PredefinedMetric
_SCALABLE_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class TritonScalableInstanceCount(SimulatedScaling):
    """The instance count of one variant, scaled by Application Auto Scaling.

    Created by ``auto_scale_instance_count``. It may have several policies, each on another metric. Instances
    are added when any policy asks for them, and removed when all policies agree. ``simulate`` shows what they
    do with a traffic.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        variant_name: str,
        instance_type: InstanceType,
        min_capacity: float,
        max_capacity: float,
        is_asynchronous: bool = False,
        is_guarded: bool = False,
    ) -> None:
        least = targets.least_instances(is_asynchronous=is_asynchronous)
        targets.check_capacity(min_capacity, max_capacity, least)
        super().__init__(scope, id)
        self._least = least
        self.min_capacity = min_capacity
        self.max_capacity = max_capacity
        self._instance_type = instance_type
        self._is_asynchronous = is_asynchronous
        self._is_guarded = is_guarded
        self.scalable_target = make_scalable_target(
            self,
            scalable_dimension=_SCALABLE_DIMENSION,
            resource_id=f"endpoint/{endpoint_name}/variant/{variant_name}",
            min_capacity=min_capacity,
            max_capacity=max_capacity,
        )
        self._metric = partial(variant_metric, endpoint_name=endpoint_name, variant_name=variant_name)
        self._tracking = TargetTracking(self, self.scalable_target, self._metric)

    @property
    def tracked_metrics(self) -> tuple[TrackedMetric, ...]:
        """The metrics that policies keep at a target, in the order in which the policies were added."""
        return self._tracking.metrics

    # Target tracking policies.

    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        gpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the average GPU utilization at a target.

        ``target_utilization_percent`` is 1 to 100 percent of **each** GPU; 60 by default. SageMaker reports
        GPU utilization from 0 to 100 times the number of GPUs, so the target is multiplied by the GPUs of the
        instance type. Set ``gpu_count``, the GPUs of one instance, if the type is unknown or a token.
        Cooldowns default to 600 seconds for scaling in and 200 seconds for scaling out.

        Raises:
            InvalidValueError: the type has no GPUs, their number is unknown, or a value is out of range.
        """
        check_options(self.scale_on_gpu_utilization, options)
        gpus = targets.gpus_of(self._instance_type, gpu_count)
        return self._tracking.keep_utilization(
            "GPUUtilization", id, target_utilization_percent, gpus, with_gpu_cooldowns(options)
        )

    def scale_on_gpu_memory_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        gpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the average GPU memory utilization at a target.

        ``target_utilization_percent`` is 1 to 100 percent of the memory of **each** GPU; 60 by default.
        ``gpu_count`` and the cooldowns are those of :meth:`scale_on_gpu_utilization`. Use it for multi-model
        endpoints, whose models spread over more instances. A single model fills each new GPU just as much.

        Raises:
            InvalidValueError: the type has no GPUs, their number is unknown, or a value is out of range.
        """
        check_options(self.scale_on_gpu_memory_utilization, options)
        gpus = targets.gpus_of(self._instance_type, gpu_count)
        return self._tracking.keep_utilization(
            "GPUMemoryUtilization", id, target_utilization_percent, gpus, with_gpu_cooldowns(options)
        )

    def scale_on_cpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        vcpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the average CPU utilization at a target.

        ``target_utilization_percent`` is 1 to 100 percent of **each** vCPU; 60 by default. SageMaker reports
        CPU utilization from 0 to 100 times the number of vCPUs, so the target is multiplied by the vCPUs of
        the instance type. Set ``vcpu_count``, the vCPUs of one instance, if the type is unknown or a token.

        Raises:
            InvalidValueError: the number of vCPUs is unknown, or a value is out of range.
        """
        check_options(self.scale_on_cpu_utilization, options)
        vcpus = targets.vcpus_of(self._instance_type, vcpu_count)
        return self._tracking.keep_utilization(
            "CPUUtilization", id, target_utilization_percent, vcpus, options
        )

    def scale_on_invocations_per_instance(
        self,
        id: str,
        *,
        target_invocations_per_minute: float | None = None,
        max_requests_per_second: float | None = None,
        safety_factor: float = 0.5,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of invocations per instance and minute at a target.

        Set ``target_invocations_per_minute``, or the requests per second that one instance can serve
        according to a load test: the target is then ``max_requests_per_second`` times ``safety_factor`` (0.5
        by default) times 60.

        Raises:
            InvalidValueError: both targets or none are set, a value is out of range, or the endpoint is
                asynchronous and does not publish the metric.
        """
        check_options(self.scale_on_invocations_per_instance, options)
        checks.check_published("InvocationsPerInstance", is_asynchronous=self._is_asynchronous)
        target = targets.invocations_target(
            target_invocations_per_minute, max_requests_per_second, safety_factor
        )
        predefined = _PREDEFINED.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE
        return self._tracking.keep_published(
            "InvocationsPerInstance", id, target, options, predefined=predefined
        )

    def scale_on_concurrent_requests(
        self, id: str, *, target_concurrent_requests: float, **options: Unpack[ScalingPolicyOptions]
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of concurrent requests per model at a target.

        ``target_concurrent_requests`` counts the requests that a model is processing or has queued. The
        metric is published every 10 seconds, so instances are added sooner than with other metrics. They are
        removed as slowly as with other metrics.

        Raises:
            InvalidValueError: a value is out of range, or the endpoint is asynchronous.
        """
        check_options(self.scale_on_concurrent_requests, options)
        checks.check_published("ConcurrentRequestsPerModel", is_asynchronous=self._is_asynchronous)
        targets.check_positive("target_concurrent_requests", target_concurrent_requests)
        predefined = _PREDEFINED.SAGEMAKER_VARIANT_CONCURRENT_REQUESTS_PER_MODEL_HIGH_RESOLUTION
        return self._tracking.keep_published(
            "ConcurrentRequestsPerModel", id, target_concurrent_requests, options, predefined=predefined
        )

    def scale_on_model_latency(
        self,
        id: str,
        *,
        target_latency: Duration,
        statistic: str = "Average",
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the time that the container needs to answer at ``target_latency``.

        ``statistic`` is ``"Average"`` by default and may be a percentile such as ``"p90"``. Latency must fall
        when instances are added. This is so if requests wait for each other, but not if each request is slow.

        Raises:
            InvalidValueError: the latency is not a duration above 0, or a token.
        """
        check_options(self.scale_on_model_latency, options)
        target = targets.microseconds("target_latency", target_latency)
        return self._tracking.keep_published("ModelLatency", id, target, options, statistic=statistic)

    def scale_on_backlog(
        self, id: str, *, target_backlog_per_instance: float, **options: Unpack[ScalingPolicyOptions]
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of queued requests per instance of an asynchronous endpoint at a target.

        If ``min_capacity`` is 0 or a token, a second policy ``<id>FirstInstance`` starts the first instance
        once a request has waited for two minutes: without instances there is no backlog per instance.

        Raises:
            InvalidValueError: a value is out of range, or the endpoint is a real-time endpoint.
        """
        check_options(self.scale_on_backlog, options)
        checks.check_published("ApproximateBacklogSizePerInstance", is_asynchronous=self._is_asynchronous)
        targets.check_positive("target_backlog_per_instance", target_backlog_per_instance)
        needs_first = self.min_capacity == 0 or is_token(self.min_capacity)
        if needs_first:
            checks.check_unguarded(id, is_guarded=self._is_guarded)
        policy = self._tracking.keep_published(
            "ApproximateBacklogSizePerInstance", id, target_backlog_per_instance, options
        )
        if needs_first:
            waiting = self._metric("HasBacklogWithoutCapacity")
            add_first_instance_policy(self, f"{id}FirstInstance", self.scalable_target, waiting)
        return policy

    def scale_to_track_metric(
        self,
        id: str,
        *,
        metric: cloudwatch.IMetric,
        target_value: float,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep any metric at ``target_value``, which is in the metric's unit.

        Metric math and percentiles are supported. The metric must fall in proportion when instances are
        added. Its period is ignored, because the service evaluates each minute.

        Raises:
            InvalidValueError: not a metric, a metric that has a policy, or options out of range.
        """
        check_options(self.scale_to_track_metric, options)
        return self._tracking.keep(id, metric, target_value, options)

    # Other policies.

    def scale_on_metric(
        self,
        id: str,
        *,
        metric: cloudwatch.IMetric,
        scaling_steps: Sequence[appscaling.ScalingInterval],
        adjustment_type: appscaling.AdjustmentType | None = None,
        cooldown: Duration | None = None,
        evaluation_periods: float | None = None,
        datapoints_to_alarm: float | None = None,
        metric_aggregation_type: appscaling.MetricAggregationType | None = None,
        min_adjustment_magnitude: float | None = None,
    ) -> appscaling.StepScalingPolicy:
        """Change the instance count in steps that depend on a metric.

        ``scaling_steps`` needs at least two steps. Their bounds are in the metric's unit.

        Raises:
            InvalidValueError: fewer than two steps, options of the wrong type, or ``scaling_guard`` is set.
        """
        options: dict[str, Any] = {
            "adjustment_type": adjustment_type,
            "cooldown": cooldown,
            "evaluation_periods": evaluation_periods,
            "datapoints_to_alarm": datapoints_to_alarm,
            "metric_aggregation_type": metric_aggregation_type,
            "min_adjustment_magnitude": min_adjustment_magnitude,
        }
        checks.check_steps(scaling_steps)
        checks.check_step_options(id, options)
        check_has(f"{id}.metric", metric, "to_metric_config", "endpoint.metric_model_latency()")
        checks.check_unguarded(id, is_guarded=self._is_guarded)
        return self.scalable_target.scale_on_metric(
            id, metric=metric, scaling_steps=list(scaling_steps), **options
        )

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
        """Change the minimum or maximum instance count at a time.

        Other policies keep working between the new bounds. Times are in UTC unless ``time_zone`` is set.

        Raises:
            InvalidValueError: no bounds are set, bounds are out of range, or a time has the wrong type.
        """
        add_schedule(
            self.scalable_target,
            id,
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            least=self._least,
            schedule=schedule,
            start_time=start_time,
            end_time=end_time,
            time_zone=time_zone,
        )

    def suspend(
        self,
        *,
        dynamic_scaling_in: bool = True,
        dynamic_scaling_out: bool = True,
        scheduled_scaling: bool = True,
    ) -> None:
        """Suspend scaling in, scaling out and schedules; pass ``False`` to keep one of them active."""
        cfn_target(
            self.scalable_target
        ).suspended_state = appscaling.CfnScalableTarget.SuspendedStateProperty(
            dynamic_scaling_in_suspended=dynamic_scaling_in,
            dynamic_scaling_out_suspended=dynamic_scaling_out,
            scheduled_scaling_suspended=scheduled_scaling,
        )
