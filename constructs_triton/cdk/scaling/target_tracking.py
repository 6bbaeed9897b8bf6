"""Policies that keep metrics of a variant at their targets."""

from __future__ import annotations

from typing import TypedDict

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metrics import variant_metric
from constructs_triton.cdk.scaling.checks import TrackedMetric, check_policy, check_untracked
from constructs_triton.cdk.scaling.customized_metric import customized_metric, metric_key, metric_name_of
from constructs_triton.cdk.validation.durations import seconds
from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import check_has, check_known
from constructs_triton.facts.limits import RangeLimit

__all__ = ["ScalingPolicyOptions", "TargetTracking"]

_PLACEHOLDER = appscaling.PredefinedMetric.SAGEMAKER_VARIANT_INVOCATIONS_PER_INSTANCE


class ScalingPolicyOptions(TypedDict, total=False):
    """What every policy takes that keeps a metric at its target.

    ``scale_in_cooldown``, ``scale_out_cooldown``
        Time after an instance went or came before the next one goes or comes; 300 s unless given, which is
        the service's own default.
    ``disable_scale_in``
        Only ever add instances; another policy, or a schedule, has to take them away.
    ``policy_name``
        By default made from the construct's path.
    """

    scale_in_cooldown: Duration | None
    scale_out_cooldown: Duration | None
    disable_scale_in: bool
    policy_name: str | None


class TargetTracking:
    """The target tracking policies of one scalable target, each on a metric of its own."""

    def __init__(
        self, scope: Construct, target: appscaling.ScalableTarget, endpoint_name: str, variant_name: str
    ) -> None:
        self._scope = scope
        self._target = target
        self._endpoint_name = endpoint_name
        self._variant_name = variant_name
        self._tracked: dict[str, TrackedMetric] = {}

    @property
    def metrics(self) -> tuple[TrackedMetric, ...]:
        """What is kept at a target, in the order the policies were added."""
        return tuple(self._tracked.values())

    def published_metric(self, metric_name: str, statistic: str | None = None) -> cloudwatch.Metric:
        """A metric that SageMaker publishes of the variant."""
        return variant_metric(
            metric_name,
            endpoint_name=self._endpoint_name,
            variant_name=self._variant_name,
            statistic=statistic,
        )

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
        """Add a policy on a metric that SageMaker publishes; else as :meth:`keep`."""
        metric = self.published_metric(metric_name, statistic)
        return self.keep(id, metric, target_value, options, units=units, predefined=predefined)

    def keep(
        self,
        id: str,
        metric: cloudwatch.IMetric,
        target_value: float,
        options: ScalingPolicyOptions,
        *,
        units: float = 1,
        predefined: appscaling.PredefinedMetric | None = None,
    ) -> appscaling.TargetTrackingScalingPolicy:
        """Add a policy; ``predefined`` is what the service calls the metric, where it has a name for it.

        ``target_value`` is in the metric's own range, which is ``units`` times that of a GPU or vCPU. Raises
        ``InvalidValueError`` for options that the service refuses and for a metric that is tracked already.
        """
        check_known(options, ScalingPolicyOptions.__annotations__, f'policy "{id}"')
        check_policy(id, options)
        check_has(f"{id}.metric", metric, "to_metric_config", "endpoint.metric_model_latency()")
        check_range(f"{id}.target_value", target_value, RangeLimit(None, None))
        key = metric_key(self._scope, metric)
        check_untracked(id, self._tracked.get(key))
        policy = self._target.scale_to_track_metric(
            id,
            # CDK's class takes fewer kinds of metric than the service does, so that those that are not
            # predefined are set on the resource itself.
            predefined_metric=predefined or _PLACEHOLDER,
            target_value=target_value,
            **options,
        )
        if predefined is None:
            resource = policy.node.default_child
            assert isinstance(resource, appscaling.CfnScalingPolicy)
            resource.target_tracking_scaling_policy_configuration = _configuration(
                metric, target_value, options
            )
        self._tracked[key] = TrackedMetric(id, metric_name_of(metric), target_value, units)
        return policy


def _configuration(
    metric: cloudwatch.IMetric, target_value: float, options: ScalingPolicyOptions
) -> appscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty:
    return appscaling.CfnScalingPolicy.TargetTrackingScalingPolicyConfigurationProperty(
        customized_metric_specification=customized_metric(metric),
        target_value=target_value,
        disable_scale_in=options.get("disable_scale_in"),
        scale_in_cooldown=seconds(options.get("scale_in_cooldown")),
        scale_out_cooldown=seconds(options.get("scale_out_cooldown")),
    )
