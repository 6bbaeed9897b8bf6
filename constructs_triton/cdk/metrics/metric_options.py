"""What metrics of variants and of components have in common."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypedDict

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from constructs_triton.cdk.metrics.metric_definitions import metric_definition

__all__ = ["MetricOptions", "number_metric", "or_p99", "publication_period", "published_metric"]


class MetricOptions(TypedDict, total=False):
    """Options of every ``metric`` method.

    ``statistic``
        CloudWatch's name, such as ``"Average"``, ``"Sum"`` or ``"p99"``. Default: the usual statistic of the
        metric.
    ``period``
        Time over which values are aggregated. Default: one minute, the interval at which SageMaker publishes.
    ``label``, ``color``
        Label and color in graphs. Default: chosen by CloudWatch.
    ``instance_type``
        Name of one instance type of an endpoint with ``instance_pools``. Default: all types together.
    """

    statistic: str | None
    period: Duration | None
    label: str | None
    color: str | None
    instance_type: str | None


@cache
def publication_period() -> Duration:
    """Return the interval at which SageMaker publishes: one minute, created once."""
    return Duration.minutes(1)


def published_metric(
    metric_name: str, dimensions: dict[str, str], options: MetricOptions
) -> cloudwatch.Metric:
    """Return a metric of SageMaker with its usual statistic and unit."""
    definition = metric_definition(metric_name)
    statistic, period = options.get("statistic"), options.get("period")
    if (instance_type := options.get("instance_type")) is not None:
        dimensions = {**dimensions, "InstanceType": instance_type}
    return cloudwatch.Metric(
        namespace=definition.namespace,
        metric_name=metric_name,
        dimensions_map=dimensions,
        statistic=definition.statistic if statistic is None else statistic,
        unit=definition.unit,
        period=publication_period() if period is None else period,
        label=options.get("label"),
        color=options.get("color"),
    )


def number_metric(
    metrics: Mapping[str, cloudwatch.IMetric], period: Duration | None, label: str
) -> cloudwatch.MathExpression:
    """Return metric math for a number of instances or copies: ``total`` divided by ``share``."""
    return cloudwatch.MathExpression(
        # Rounded, because three times a third is not exactly 1 in floating point.
        expression="FLOOR(total / share + 0.5)",
        using_metrics={**metrics},
        period=publication_period() if period is None else period,
        label=label,
    )


def or_p99(options: MetricOptions) -> MetricOptions:
    """Return the options with ``p99`` as the default statistic."""
    return options if options.get("statistic") is not None else {**options, "statistic": "p99"}
