"""Auto scaling of a variant's instance count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Unpack

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.metrics.metrics import variant_metric
from constructs_triton.cdk.scaling import checks, instance_pools, targets
from constructs_triton.cdk.scaling.checks import TrackedMetric
from constructs_triton.cdk.scaling.custom_metric_scaling import CustomMetricScaling
from constructs_triton.cdk.scaling.effect import ScalingAtSynthesis, may_be_zero
from constructs_triton.cdk.scaling.stepped_scaling import add_first_instance_policy
from constructs_triton.cdk.scaling.target_tracking import (
    ScalingPolicyOptions,
    check_policy,
    with_gpu_cooldowns,
)
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.facts.instance_types import InstanceType

_PREDEFINED = appscaling.PredefinedMetric


class TritonScalableInstanceCount(CustomMetricScaling):
    """The instance count of one variant, scaled by Application Auto Scaling.

    Created by ``auto_scale_instance_count``. It may have several policies, each on another metric.
    Instances are added when any policy asks for them, and removed when all policies agree.
    ``simulate`` shows what they do on a traffic pattern.

    Args:
        endpoint_name: Name of the endpoint.
        variant_name: Name of the variant.
        instance_type: Type of its instances.
        pools: Types of all instance pools, in order of priority. Default: ``instance_type``.
        min_capacity: Minimum number of instances.
        max_capacity: Maximum number of instances.
        is_asynchronous: Whether the endpoint has asynchronous inference.
        is_guarded: Whether ``scaling_guard`` protects updates.
        serves_many: Whether it is a multi-model endpoint.
        container_metrics: Triton's own metrics, if the variant publishes them.
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
        serves_many: bool = False,
        pools: Sequence[InstanceType] = (),
        container_metrics: ContainerMetrics | None = None,
    ) -> None:
        super().__init__(
            scope,
            id,
            scalable_dimension="sagemaker:variant:DesiredInstanceCount",
            resource_id=f"endpoint/{endpoint_name}/variant/{variant_name}",
            min_capacity=min_capacity,
            max_capacity=max_capacity,
            least=targets.least_instances(is_asynchronous=is_asynchronous),
            metric=partial(variant_metric, endpoint_name=endpoint_name, variant_name=variant_name),
        )
        self._instance_type = instance_type
        self._pools = tuple(pools) or (instance_type,)
        self._backlog_id: str | None = None
        self._starts_first = False
        self.missing_data_alarms: tuple[cloudwatch.Alarm, ...] = ()
        self._is_asynchronous = is_asynchronous
        self._may_reach_zero = is_asynchronous and may_be_zero(min_capacity)
        self._is_guarded = is_guarded
        self._serves_many = serves_many
        self._container_metrics, self._queue_policies = container_metrics, []

    def scale_on_gpu_utilization(
        self,
        id: str,
        *,
        target_utilization_percent: float = 60,
        gpu_count: float | None = None,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the average GPU utilization at a target.

        SageMaker reports GPU utilization from 0 to 100 times the number of GPUs, so the target is
        multiplied by the GPUs of the instance type. Cooldowns default to 600 seconds for scaling in
        and 200 seconds for scaling out.

        Args:
            id: Construct id of the policy.
            target_utilization_percent: Target value, 1 to 100 percent of **each** GPU.
            gpu_count: GPUs of one instance. Required if the instance type is unknown or a token.

        Raises:
            InvalidValueError: the type has no GPUs, their number is unknown, or a value is out of
                range.
        """
        check_policy(self.scale_on_gpu_utilization, id, options)
        instance_pools.check_same_units("GPUUtilization", "gpus", self._pools)
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

        The cooldowns are those of ``scale_on_gpu_utilization``. Use it for multi-model endpoints,
        whose models spread over more instances. A single model fills each new GPU just as much.

        Args:
            id: Construct id of the policy.
            target_utilization_percent: Target value, 1 to 100 percent of the memory of **each**
                GPU.
            gpu_count: GPUs of one instance. Required if the instance type is unknown or a token.

        Raises:
            InvalidValueError: the type has no GPUs, their number is unknown, or a value is out of
                range.
        """
        check_policy(self.scale_on_gpu_memory_utilization, id, options)
        instance_pools.check_same_units("GPUMemoryUtilization", "gpus", self._pools)
        gpus = targets.gpus_of(self._instance_type, gpu_count)
        return self._tracking.keep_utilization(
            "GPUMemoryUtilization",
            id,
            target_utilization_percent,
            gpus,
            with_gpu_cooldowns(options),
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

        SageMaker reports CPU utilization from 0 to 100 times the number of vCPUs, so the target is
        multiplied by the vCPUs of the instance type.

        Args:
            id: Construct id of the policy.
            target_utilization_percent: Target value, 1 to 100 percent of **each** vCPU.
            vcpu_count: vCPUs of one instance. Required if the instance type is unknown or a token.

        Raises:
            InvalidValueError: the number of vCPUs is unknown, or a value is out of range.
        """
        check_policy(self.scale_on_cpu_utilization, id, options)
        instance_pools.check_same_units("CPUUtilization", "vcpus", self._pools)
        vcpus = targets.vcpus_of(self._instance_type, vcpu_count)
        return self._tracking.keep_utilization(
            "CPUUtilization", id, target_utilization_percent, vcpus, options
        )

    def scale_on_invocations_per_instance(
        self,
        id: str,
        *,
        target_invocations_per_minute: float | None = None,
        max_requests_per_second: float | Mapping[str, float] | None = None,
        safety_factor: float = 0.5,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of invocations per instance and minute at a target.

        Set either ``target_invocations_per_minute`` or ``max_requests_per_second``.

        Args:
            id: Construct id of the policy.
            target_invocations_per_minute: Target value of the metric.
            max_requests_per_second: Requests per second that one instance can serve according to a
                load test. The target is this times ``safety_factor`` times 60. With
                ``instance_pools``, a number for each instance type; the slowest type decides.
            safety_factor: Fraction of that load to aim at, above 0 and at most 1.

        Raises:
            InvalidValueError: both targets or none are set, a value is out of range, or the
                endpoint is asynchronous and does not publish the metric.
        """
        check_policy(self.scale_on_invocations_per_instance, id, options)
        checks.check_published("InvocationsPerInstance", is_asynchronous=self._is_asynchronous)
        per_second = instance_pools.slowest_load(
            "max_requests_per_second", max_requests_per_second, self._pools
        )
        target = targets.invocations_target(
            target_invocations_per_minute, per_second, safety_factor
        )
        if not isinstance(max_requests_per_second, Mapping):
            instance_pools.warn_of_one_load(self, id, self._pools)
        predefined = _PREDEFINED.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE
        return self._tracking.keep_published(
            "InvocationsPerInstance", id, target, options, predefined=predefined
        )

    def scale_on_concurrent_requests(
        self, id: str, *, target_concurrent_requests: float, **options: Unpack[ScalingPolicyOptions]
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of concurrent requests per model at a target.

        The metric is published every 10 seconds, so instances are added sooner than with other
        metrics, and removed as slowly. It is the metric for streamed responses, each of which
        occupies a model for long.

        Args:
            id: Construct id of the policy.
            target_concurrent_requests: Requests that a model is processing or has queued at a time.

        Raises:
            InvalidValueError: a value is out of range, or the endpoint is asynchronous.
        """
        check_policy(self.scale_on_concurrent_requests, id, options)
        checks.check_published("ConcurrentRequestsPerModel", is_asynchronous=self._is_asynchronous)
        targets.check_positive("target_concurrent_requests", target_concurrent_requests)
        if self._serves_many:
            checks.warn_of_unsettled_concurrency(self)
        predefined = _PREDEFINED.SAGEMAKER_VARIANT_CONCURRENT_REQUESTS_PER_MODEL_HIGH_RESOLUTION
        return self._tracking.keep_published(
            "ConcurrentRequestsPerModel",
            id,
            target_concurrent_requests,
            options,
            predefined=predefined,
        )

    def scale_on_concurrent_requests_by_type(
        self,
        id: str,
        *,
        max_concurrent_requests: Mapping[str, float],
        target_utilization_percent: float = 70,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the load of the busiest instance type at a share of what it can process.

        For an endpoint with ``instance_pools``. The metric is the maximum over all types of their
        concurrent requests, divided by what an instance of the type can process. It is derived, not
        measured on AWS. A type without data counts as idle; an alarm of ``missing_data_alarms``
        reports that no type has any.

        Args:
            id: Construct id of the policy.
            max_concurrent_requests: Concurrent requests that an instance can process according to a
                load test, by the name of each instance type.
            target_utilization_percent: Target value, 1 to 100 percent of these requests.

        Raises:
            InvalidValueError: a number is missing or out of range, or the variant has one instance
                type or is asynchronous.
        """
        check_policy(self.scale_on_concurrent_requests_by_type, id, options)
        checks.check_published("ConcurrentRequestsPerModel", is_asynchronous=self._is_asynchronous)
        loads = instance_pools.check_loads(
            "max_concurrent_requests", max_concurrent_requests, self._pools
        )
        target = targets.utilization_target(target_utilization_percent, 1)
        metric = instance_pools.busiest_share(self._metric, loads)
        policy = self._tracking.keep(id, metric, target, options)
        alarm = instance_pools.add_missing_data_alarm(
            self, f"{id}MissingData", self._metric, self._pools
        )
        self.missing_data_alarms = (*self.missing_data_alarms, alarm)
        return policy

    def scale_on_model_latency(
        self,
        id: str,
        *,
        target_latency: Duration,
        statistic: str = "Average",
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the time that the container needs to answer at a target.

        Latency must fall when instances are added. This is so if requests wait for each other, but
        not if each request is slow.

        Args:
            id: Construct id of the policy.
            target_latency: Target value; CloudWatch has it in microseconds.
            statistic: ``"Average"``, or a percentile such as ``"p90"``.

        Raises:
            InvalidValueError: the latency is not a duration above 0, or a token.
        """
        check_policy(self.scale_on_model_latency, id, options)
        check_type("statistic", statistic, (str, '"Average"'))
        target = targets.microseconds("target_latency", target_latency)
        return self._tracking.keep_published(
            "ModelLatency", id, target, options, statistic=statistic
        )

    def scale_on_backlog(
        self,
        id: str,
        *,
        target_backlog_per_instance: float,
        **options: Unpack[ScalingPolicyOptions],
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Keep the number of queued requests per instance of an asynchronous endpoint at a target.

        If ``min_capacity``, or that of a schedule, is 0 or a token, a second policy
        ``<id>FirstInstance`` starts the first instance once a request has waited for two minutes:
        without instances there is no backlog per instance.

        Args:
            id: Construct id of the policy.
            target_backlog_per_instance: Queued requests for each instance.

        Raises:
            InvalidValueError: a value is out of range, or the endpoint is a real-time endpoint.
        """
        check_policy(self.scale_on_backlog, id, options)
        checks.check_published(
            "ApproximateBacklogSizePerInstance", is_asynchronous=self._is_asynchronous
        )
        targets.check_positive("target_backlog_per_instance", target_backlog_per_instance)
        if self._may_reach_zero:
            checks.check_unguarded(id, is_guarded=self._is_guarded)
        policy = self._tracking.keep_published(
            "ApproximateBacklogSizePerInstance", id, target_backlog_per_instance, options
        )
        self._backlog_id = id
        self._start_first_instance()
        return policy

    def _start_first_instance(self) -> None:
        """Add the policy that starts the first instance, once something scales on the backlog."""
        if self._backlog_id is None or not self._may_reach_zero or self._starts_first:
            return
        self._starts_first = True
        waiting = self._metric("HasBacklogWithoutCapacity")
        add_first_instance_policy(
            self, f"{self._backlog_id}FirstInstance", self.scalable_target, waiting
        )

    def _after_schedule(self, min_capacity: float | None, max_capacity: float | None) -> None:
        if not self._is_asynchronous or not (may_be_zero(min_capacity) or max_capacity == 0):
            return
        self._may_reach_zero = True
        if self._backlog_id is not None:
            checks.check_unguarded(self._backlog_id, is_guarded=self._is_guarded)
        self._start_first_instance()

    def _at_synthesis(self) -> ScalingAtSynthesis:
        is_asynchronous = self._is_asynchronous
        return ScalingAtSynthesis(
            self,
            (self.min_capacity, self.max_capacity),
            "instances",
            self._tracking.metrics,
            automatic_policies=int(self._starts_first),
            example="scale_on_backlog" if is_asynchronous else "scale_on_invocations_per_instance",
        )


def tracked_metrics(count: TritonScalableInstanceCount | None) -> tuple[TrackedMetric, ...]:
    """Return the metrics that policies keep at a target, in the order of the policies."""
    return () if count is None else count._tracking.metrics
