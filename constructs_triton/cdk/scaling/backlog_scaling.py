"""The policy that starts the first instance of an asynchronous endpoint."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

__all__ = ["add_first_instance_policy"]

_COOLDOWN_SECONDS = 300
_EVALUATION_PERIODS = 2


def add_first_instance_policy(
    scope: Construct, id: str, target: appscaling.ScalableTarget, metric: cloudwatch.Metric
) -> appscaling.StepScalingAction:
    """Add one instance after ``HasBacklogWithoutCapacity`` has been 1 for two minutes.

    Source: SageMaker developer guide, "Autoscale an asynchronous endpoint".
    """
    action = appscaling.StepScalingAction(
        scope,
        id,
        scaling_target=target,
        adjustment_type=appscaling.AdjustmentType.CHANGE_IN_CAPACITY,
        metric_aggregation_type=appscaling.MetricAggregationType.AVERAGE,
        cooldown=Duration.seconds(_COOLDOWN_SECONDS),
    )
    action.add_adjustment(adjustment=1, lower_bound=0)
    alarm = metric.create_alarm(
        action,
        "Alarm",
        alarm_description="Requests are queued and no instance is running: scales out from zero.",
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        threshold=1,
        evaluation_periods=_EVALUATION_PERIODS,
        datapoints_to_alarm=_EVALUATION_PERIODS,
        treat_missing_data=cloudwatch.TreatMissingData.MISSING,
    )
    alarm.add_alarm_action(actions.ApplicationScalingAction(action))
    return action
