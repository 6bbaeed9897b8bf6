"""The policies and alarms that start the first instance or the first copy.

Target tracking cannot leave zero: its metrics are per instance or per copy, and there is none.
"""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

__all__ = ["add_first_copy_policy", "add_first_instance_policy"]

_Aggregation = appscaling.MetricAggregationType


def add_first_instance_policy(
    scope: Construct, id: str, target: appscaling.ScalableTarget, waiting: cloudwatch.Metric
) -> appscaling.StepScalingAction:
    """Add one instance after ``HasBacklogWithoutCapacity`` has been 1 for two minutes.

    Source: SageMaker developer guide, "Autoscale an asynchronous endpoint".
    """
    action = _add_one(scope, id, target, _Aggregation.AVERAGE, cooldown_seconds=300)
    text = "Requests are queued and no instance is running: scales out from zero."
    _start_on(waiting, action, text, minutes=2)
    return action


def add_first_copy_policy(
    scope: Construct, id: str, target: appscaling.ScalableTarget, failures: cloudwatch.Metric
) -> appscaling.StepScalingAction:
    """Add one copy after a minute in which a request found none.

    Source: SageMaker developer guide, "Scale an endpoint to zero instances". Its alarm needs two failed
    requests in a minute (above 1); AWS's samples need one, and so does this one.
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
    metric: cloudwatch.Metric, action: appscaling.StepScalingAction, description: str, *, minutes: int
) -> None:
    """Run the action when the metric has been at least 1 for some minutes."""
    alarm = metric.create_alarm(
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
