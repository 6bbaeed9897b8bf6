"""Policies that keep metrics at their targets."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from aws_cdk import Annotations, Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct

from constructs_triton.cdk.metrics.metric_values import Metric, MetricValue
from constructs_triton.cdk.scaling.checks import TrackedMetric, check_untracked
from constructs_triton.cdk.scaling.customized_metric import (
    customized_metric,
    metric_key,
    metric_name_of,
)
from constructs_triton.cdk.scaling.targets import utilization_target
from constructs_triton.cdk.validation.limit_checks import seconds
from constructs_triton.cdk.validation.properties import check_properties
from constructs_triton.cdk.validation.read_once import duration_of
from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import COOLDOWN_SECONDS, SCALING_POLICY_NAME, RangeLimit
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_token

_Configuration = appscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty
_PLACEHOLDER = appscaling.PredefinedMetric.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE
_LOW_UTILIZATION_PERCENT = 10


_COOLDOWN: Any = {
    "default_text": "300 seconds, the service's default; GPU policies have longer ones",
    "example": "Duration.seconds(300)",
    "limit": COOLDOWN_SECONDS,
}


class ScalingPolicyOptions(TypedDict, total=False):
    """Options of every target tracking policy."""

    scale_in_cooldown: Annotated[
        Duration | None, Value("Time between two scale-in activities.", **_COOLDOWN)
    ]
    scale_out_cooldown: Annotated[
        Duration | None, Value("Time between two scale-out activities.", **_COOLDOWN)
    ]
    disable_scale_in: Annotated[
        bool,
        Value(
            "Whether the policy only adds instances. "
            "Another policy or a schedule must then remove them.",
            example="True",
        ),
    ]
    policy_name: Annotated[
        str | None,
        Value(
            "Name of the policy.",
            default_text="generated from the construct's path",
            limit=SCALING_POLICY_NAME,
        ),
    ]


def check_policy(method: Callable[..., object], id: str, options: ScalingPolicyOptions) -> None:
    """Check the options of the policy ``id`` that a method takes as ``**options``.

    Raises:
        TypeError: an unknown keyword; the message suggests one of the method's keywords or of the
            options.
        InvalidValueError: a wrong type, or a cooldown or name that Application Auto Scaling
            refuses.
    """
    parameters = inspect.signature(method).parameters.values()
    own = [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]
    callee = f"{method.__name__}()"
    check_properties(callee, options, ScalingPolicyOptions, others=own, owner=f"{id}.")


PublishedMetric = Callable[..., MetricValue]
"""Returns a metric that SageMaker publishes for a variant or a component, by its name."""


class TargetTracking:
    """The target tracking policies of one scalable target, each on another metric."""

    def __init__(
        self, scope: Construct, target: appscaling.ScalableTarget, published_metric: PublishedMetric
    ) -> None:
        self._scope = scope
        self._target = target
        self._published_metric = published_metric
        self._tracked: dict[str, TrackedMetric] = {}

    @property
    def metrics(self) -> tuple[TrackedMetric, ...]:
        """The metrics that are kept at a target, in the order in which the policies were added."""
        return tuple(self._tracked.values())

    def keep_published(
        self,
        metric_name: str,
        id: str,
        target_value: float,
        options: ScalingPolicyOptions,
        *,
        units: float = 1,
        statistic: str | None = None,
        predefined: appscaling.PredefinedMetric | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Add a policy on a metric that SageMaker publishes; otherwise like :meth:`keep`."""
        metric = self._published_metric(metric_name, statistic=statistic)
        return self.keep(id, metric, target_value, options, units=units, predefined=predefined)

    def keep_utilization(
        self, metric_name: str, id: str, percent: float, units: float, options: ScalingPolicyOptions
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Add a policy on a utilization, with a warning for a very low target.

        ``percent`` is the target for one GPU or vCPU, and ``units`` their number in an instance.
        """
        target = utilization_target(percent, units)
        policy = self.keep_published(metric_name, id, target, options, units=units)
        if not is_token(percent) and percent < _LOW_UTILIZATION_PERCENT:
            Annotations.of(self._scope).add_warning_v2(
                "constructs-triton:low-utilization-target",
                f"{id}: target_utilization_percent is {percent:g}, so scaling keeps instances "
                "almost idle and may reach max_capacity; "
                "raise it to 60, or acknowledge this warning",
            )
        return policy

    def keep(
        self,
        id: str,
        metric: Metric,
        target_value: float,
        options: ScalingPolicyOptions,
        *,
        units: float = 1,
        predefined: appscaling.PredefinedMetric | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Add a policy.

        ``predefined`` is the service's name of the metric, if it has one. ``target_value`` is in
        the metric's own unit; for a utilization its range is 0 to 100 times ``units``, the GPUs or
        vCPUs of an instance.

        Raises:
            InvalidValueError: the metric has a policy already.
        """
        check_range(f"{id}.target_value", target_value, RangeLimit(None, None))
        key = metric_key(self._scope, metric)
        check_untracked(id, self._tracked.get(key))
        policy = self._target.scale_to_track_metric(
            id,
            # CDK's class supports fewer metrics than the service. A metric that is not predefined
            # is set on the L1 resource below.
            predefined_metric=predefined or _PLACEHOLDER,
            target_value=target_value,
            **options,
        )
        if predefined is None:
            resource = policy.node.default_child
            assert isinstance(resource, appscaling.CfnScalingPolicy)
            resource.target_tracking_scaling_policy_configuration = _Configuration(
                customized_metric_specification=customized_metric(metric),
                target_value=target_value,
                disable_scale_in=options.get("disable_scale_in"),
                scale_in_cooldown=seconds(options.get("scale_in_cooldown")),
                scale_out_cooldown=seconds(options.get("scale_out_cooldown")),
            )
        self._tracked[key] = TrackedMetric(id, metric_name_of(metric), target_value, units)
        return policy


def with_gpu_cooldowns(options: ScalingPolicyOptions) -> ScalingPolicyOptions:
    """Add the cooldowns of AWS's example for GPUs,
    where loading models onto a new instance takes long.
    """
    scale_in = options.get("scale_in_cooldown")
    if scale_in is None:
        scale_in = duration_of(600)
    scale_out = options.get("scale_out_cooldown")
    if scale_out is None:
        scale_out = duration_of(200)
    return {**options, "scale_in_cooldown": scale_in, "scale_out_cooldown": scale_out}
