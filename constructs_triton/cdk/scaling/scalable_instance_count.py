"""Auto scaling of a variant's instance count."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Unpack

from aws_cdk import Duration, Stack, TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.scaling import checks, targets
from constructs_triton.cdk.scaling.backlog_scaling import add_first_instance_policy
from constructs_triton.cdk.scaling.checks import TrackedMetric
from constructs_triton.cdk.scaling.service_linked_role import service_linked_role_arn
from constructs_triton.cdk.scaling.target_tracking import ScalingPolicyOptions, TargetTracking
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.facts.instance_types import InstanceType

__all__ = ["ScalingPolicyOptions", "TrackedMetric", "TritonScalableInstanceCount"]

_PREDEFINED = appscaling.PredefinedMetric
_SCALABLE_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


class TritonScalableInstanceCount(Construct):
    """The instance count of one variant as a target of Application Auto Scaling.

    Made by ``auto_scale_instance_count``; takes any number of policies, each on a metric of its own. With
    several, capacity grows when any of them wants it and shrinks when all of them agree.
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
        targets.check_capacity(min_capacity, max_capacity, is_asynchronous=is_asynchronous)
        super().__init__(scope, id)
        self.min_capacity = min_capacity
        self.max_capacity = max_capacity
        self._instance_type = instance_type
        self._is_asynchronous = is_asynchronous
        self._is_guarded = is_guarded
        self.scalable_target = appscaling.ScalableTarget(
            self,
            "Resource",
            service_namespace=appscaling.ServiceNamespace.SAGEMAKER,
            scalable_dimension=_SCALABLE_DIMENSION,
            # Built from the endpoint's attribute, so that the target is made after the endpoint and is gone
            # before it.
            resource_id=f"endpoint/{endpoint_name}/variant/{variant_name}",
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            role=self._service_linked_role(),
        )
        self._tracking = TargetTracking(self, self.scalable_target, endpoint_name, variant_name)

    @property
    def tracked_metrics(self) -> tuple[TrackedMetric, ...]:
        """The metrics that policies keep at a target, in the order the policies were added."""
        return self._tracking.metrics

    # Policies that keep a metric at a target.

    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        gpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the GPUs busy to ``target_utilization_percent`` of **each** GPU.

        SageMaker reports GPU utilisation from 0 to 100 times the number of GPUs, so that the target is
        multiplied by the GPUs of the instance type; a type that is not known, or a token, needs
        ``gpu_count``. Cool-downs are 600 s in and 200 s out unless given.
        """
        gpus = targets.gpus_of(self._instance_type, gpu_count)
        target = targets.utilization_target(target_utilization_percent, gpus)
        return self._tracking.keep_published(
            "GPUUtilization", id, target, _slow_to_shrink(options), units=gpus
        )

    def scale_on_gpu_memory_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        gpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the memory of **each** GPU filled to ``target_utilization_percent``.

        Multiplied and cooled down as :meth:`scale_on_gpu_utilization` does. It helps a multi-model endpoint,
        whose models spread over more instances; a single model fills each new GPU just as much.
        """
        gpus = targets.gpus_of(self._instance_type, gpu_count)
        target = targets.utilization_target(target_utilization_percent, gpus)
        return self._tracking.keep_published(
            "GPUMemoryUtilization", id, target, _slow_to_shrink(options), units=gpus
        )

    def scale_on_cpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        vcpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the CPUs busy to ``target_utilization_percent`` of **each** vCPU.

        SageMaker reports CPU utilisation from 0 to 100 times the number of vCPUs, so that the target is
        multiplied by those of the instance type; a type that is not known, or a token, needs ``vcpu_count``.
        """
        vcpus = targets.vcpus_of(self._instance_type, vcpu_count)
        target = targets.utilization_target(target_utilization_percent, vcpus)
        return self._tracking.keep_published("CPUUtilization", id, target, options, units=vcpus)

    def scale_on_invocations_per_instance(
        self,
        id: str,
        *,
        target_invocations_per_minute: float | None = None,
        max_requests_per_second: float | None = None,
        safety_factor: float = 0.5,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the invocations of each instance at a number a minute.

        Give it as ``target_invocations_per_minute``, or as what a load test found one instance to bear
        (``max_requests_per_second``), of which ``safety_factor`` times 60 becomes the target. Raises
        ``InvalidValueError`` for an asynchronous endpoint, which does not publish the metric.
        """
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
        """Keep the requests under way at once in each model, those queued in it included, at a number.

        The metric is published every 10 s, so that instances are added sooner; they go as slowly as with any
        other. Raises ``InvalidValueError`` for an asynchronous endpoint.
        """
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
        """Keep the time the container takes to answer at ``target_latency``.

        Latency has to fall when instances are added, which it does where requests wait for each other, and
        not where a single one takes as long. ``statistic`` may be a percentile.
        """
        target = targets.microseconds("target_latency", target_latency)
        return self._tracking.keep_published("ModelLatency", id, target, options, statistic=statistic)

    def scale_on_backlog(
        self, id: str, *, target_backlog_per_instance: float, **options: Unpack[ScalingPolicyOptions]
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the queue of an asynchronous endpoint, per instance, at a number of requests.

        Where ``min_capacity`` is zero, or known only at deployment, a second policy ``<id>FirstInstance``
        brings the first instance once a request has waited for two minutes: without instances there is no
        backlog per instance. Raises ``InvalidValueError`` for a real-time endpoint, which has no queue.
        """
        checks.check_published("ApproximateBacklogSizePerInstance", is_asynchronous=self._is_asynchronous)
        targets.check_positive("target_backlog_per_instance", target_backlog_per_instance)
        needs_first = self.min_capacity == 0 or not is_concrete(self.min_capacity)
        if needs_first:
            checks.check_unguarded(id, is_guarded=self._is_guarded)
        policy = self._tracking.keep_published(
            "ApproximateBacklogSizePerInstance", id, target_backlog_per_instance, options
        )
        if needs_first:
            waiting = self._tracking.published_metric("HasBacklogWithoutCapacity")
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
        """Keep any metric, metric math and percentiles included, at ``target_value``.

        The metric has to fall in proportion when instances are added. Its period is not used: the service
        looks at each minute.
        """
        return self._tracking.keep(id, metric, target_value, options)

    # Policies of other kinds.

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
        """Change the count in steps, by how far a metric is above or below; needs two steps at least."""
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
        """Change the bounds at a time; policies go on working between them. Times are UTC unless given."""
        bounds = (min_capacity, max_capacity)
        times: dict[str, Any] = {
            "schedule": schedule,
            "start_time": start_time,
            "end_time": end_time,
            "time_zone": time_zone,
        }
        checks.check_schedule(id, *bounds, is_asynchronous=self._is_asynchronous)
        checks.check_schedule_times(id, times)
        self.scalable_target.scale_on_schedule(
            id, min_capacity=min_capacity, max_capacity=max_capacity, **times
        )

    def suspend(
        self,
        *,
        dynamic_scaling_in: bool = True,
        dynamic_scaling_out: bool = True,
        scheduled_scaling: bool = True,
    ) -> None:
        """Stop policies from taking or adding instances, and schedules from changing bounds."""
        target = self.scalable_target.node.default_child
        assert isinstance(target, appscaling.CfnScalableTarget)
        target.suspended_state = appscaling.CfnScalableTarget.SuspendedStateProperty(
            dynamic_scaling_in_suspended=dynamic_scaling_in,
            dynamic_scaling_out_suspended=dynamic_scaling_out,
            scheduled_scaling_suspended=scheduled_scaling,
        )

    def _service_linked_role(self) -> iam.IRole:
        stack = Stack.of(self)
        arn = service_linked_role_arn(stack.partition, stack.account)
        return iam.Role.from_role_arn(self, "ServiceLinkedRole", arn, mutable=False)


def _slow_to_shrink(options: ScalingPolicyOptions) -> ScalingPolicyOptions:
    """With the cool-downs of AWS's example for GPUs: loading models onto a new instance takes its time."""
    scale_in, scale_out = options.get("scale_in_cooldown"), options.get("scale_out_cooldown")
    return {
        **options,
        "scale_in_cooldown": Duration.seconds(600) if scale_in is None else scale_in,
        "scale_out_cooldown": Duration.seconds(200) if scale_out is None else scale_out,
    }
