"""Steps that change a variant's instance count, and their suspension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aws_cdk import Duration, IResolvable
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from constructs_triton.cdk.metrics.metric_values import MetricValue
from constructs_triton.cdk.scaling import checks
from constructs_triton.cdk.scaling.simulated_scaling import SimulatedScaling
from constructs_triton.cdk.validation.arguments import check_flag
from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton_core.errors import InvalidValueError


class SteppedScaling(SimulatedScaling):
    """A scalable instance count without its target tracking policies."""

    _is_guarded: bool

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

        Args:
            id: Construct id of the policy.
            metric: The metric.
            scaling_steps: At least two steps; their bounds are in the unit of the metric.
            adjustment_type: Meaning of the numbers in the steps. Default: ``CHANGE_IN_CAPACITY``.
            cooldown: Time after a change before the next one. Default: 300 seconds, the service's
                default.
            evaluation_periods: Periods of the metric that the alarm looks at. Default: 1.
            datapoints_to_alarm: How many of these periods must be over the bound. Default: all.
            metric_aggregation_type: How values are combined. Default: from the metric's statistic.
            min_adjustment_magnitude: Least number of instances that a percentage adds or removes.

        Raises:
            InvalidValueError: fewer than two steps, options of the wrong type, or ``scaling_guard``
                is set.
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
        checks.check_types(id, options, checks.STEP_TYPES)
        if datapoints_to_alarm is not None and evaluation_periods is None:
            raise InvalidValueError(
                f"{id}.datapoints_to_alarm: needs evaluation_periods; set evaluation_periods too"
            )
        check_has(f"{id}.metric", metric, "to_metric_config", "endpoint.metric_model_latency()")
        checks.check_unguarded(id, is_guarded=self._is_guarded)
        return self.scalable_target.scale_on_metric(
            id, metric=metric, scaling_steps=list(scaling_steps), **options
        )

    def suspend(
        self,
        *,
        dynamic_scaling_in: bool | IResolvable = True,
        dynamic_scaling_out: bool | IResolvable = True,
        scheduled_scaling: bool | IResolvable = True,
    ) -> None:
        """Suspend scaling in, scaling out and schedules; pass ``False`` to keep one of them active.

        Each may also be an ``IResolvable`` that is ``"true"`` or ``"false"`` at the deployment.

        Args:
            dynamic_scaling_in: Whether policies no longer remove instances.
            dynamic_scaling_out: Whether policies no longer add instances.
            scheduled_scaling: Whether scheduled actions no longer run.
        """
        flags = {
            "dynamic_scaling_in": dynamic_scaling_in,
            "dynamic_scaling_out": dynamic_scaling_out,
            "scheduled_scaling": scheduled_scaling,
        }
        for name, value in flags.items():
            if not hasattr(value, "resolve"):  # a token that CloudFormation replaces
                check_flag(name, value)
        self._cfn_target.suspended_state = appscaling.CfnScalableTarget.SuspendedStateProperty(
            dynamic_scaling_in_suspended=dynamic_scaling_in,
            dynamic_scaling_out_suspended=dynamic_scaling_out,
            scheduled_scaling_suspended=scheduled_scaling,
        )


_Aggregation = appscaling.MetricAggregationType


def add_first_instance_policy(
    scope: Construct, id: str, target: appscaling.ScalableTarget, waiting: MetricValue
) -> appscaling.StepScalingAction:
    """Add one instance after ``HasBacklogWithoutCapacity`` has been 1 for two minutes.

    Source: SageMaker developer guide, "Autoscale an asynchronous endpoint".
    """
    action = _add_one(scope, id, target, _Aggregation.AVERAGE, cooldown_seconds=300)
    text = "Requests are queued and no instance is running: scales out from zero."
    _start_on(waiting, action, text, minutes=2)
    return action


def add_first_copy_policy(
    scope: Construct, id: str, target: appscaling.ScalableTarget, failures: MetricValue
) -> appscaling.StepScalingAction:
    """Add one copy after a minute in which a request found none.

    Source: SageMaker developer guide, "Scale an endpoint to zero instances". Its alarm needs two
    failed requests in a minute (above 1); AWS's samples need one, and so does this one.
    """
    action = _add_one(scope, id, target, _Aggregation.MAXIMUM, cooldown_seconds=60)
    text = "A request found no copy of the component: starts the first one."
    _start_on(failures, action, text, minutes=1)
    return action


def _add_one(
    scope: Construct,
    id: str,
    target: appscaling.ScalableTarget,
    aggregation: appscaling.MetricAggregationType,
    *,
    cooldown_seconds: int,
) -> appscaling.StepScalingAction:
    action = appscaling.StepScalingAction(
        scope,
        id,
        scaling_target=target,
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        metric_aggregation_type=aggregation,
        cooldown=Duration.seconds(cooldown_seconds),
    )
    action.add_adjustment(adjustment=1, lower_bound=0)
    return action


def _start_on(
    metric: MetricValue, action: appscaling.StepScalingAction, description: str, *, minutes: int
) -> None:
    """Run the action when the metric has been at least 1 for some minutes."""
    alarm = metric.to_cdk().create_alarm(
        action,
        "Alarm",
        alarm_description=description,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        threshold=1,
        evaluation_periods=minutes,
        datapoints_to_alarm=minutes,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    )
    alarm.add_alarm_action(actions.ApplicationScalingAction(action))
