"""The policy and the alarm that start the first copy of a component that has none."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

__all__ = ["add_wake_up"]

_COOLDOWN_SECONDS = 60


def add_wake_up(
    scope: Construct, target: appscaling.ScalableTarget, failures: cloudwatch.Metric
) -> appscaling.StepScalingAction:
    """Add one copy when a request finds none: target tracking cannot leave zero.

    Source: SageMaker developer guide, "Scale an endpoint to zero instances". Its alarm needs two failed
    requests in a minute (above 1); AWS's samples need one, and so does this one.
    """
    action = appscaling.StepScalingAction(
        scope,
        "WakeUp",
        scaling_target=target,
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        metric_aggregation_type=appscaling.MetricAggregationType.MAXIMUM,
        cooldown=Duration.seconds(_COOLDOWN_SECONDS),
    )
    action.add_adjustment(adjustment=1, lower_bound=0)
    alarm = failures.create_alarm(
        action,
        "Alarm",
        alarm_description="A request found no copy of the component: starts the first one.",
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        threshold=1,
        evaluation_periods=1,
        datapoints_to_alarm=1,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    )
    alarm.add_alarm_action(actions.ApplicationScalingAction(action))
    return action
